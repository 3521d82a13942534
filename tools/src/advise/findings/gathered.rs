//! Many equal blocks at once, and then one that is as long as all of them: a list that is gathered into and then
//! concatenated.

use super::{Finding, Seen, Watch};
use crate::advise::world::World;
use crate::show;
use pinbuddy_events::{Item, Op};

/// So many equal blocks are a list, and so often it is gathered.
const BLOCKS: u64 = 4;
const LEAST: u64 = 3;

/// A shorter sum is not worth a word.
const SHORTEST: u64 = 1 << 20;

#[derive(Default)]
pub(super) struct Gathered {
    /// The last requests, as long as they are equal: their bytes, and their ids.
    bytes: u64,
    list: Vec<u64>,
    /// How often, and the most that lists and their sum had at once.
    seen: Seen,
    parts: u64,
}

impl Watch for Gathered {
    fn see(&mut self, item: &Item, world: &World) {
        let Op::Request { id, bytes, .. } = item.event.op else {
            return;
        };
        if bytes == self.bytes {
            self.list.push(id);
            return;
        }
        let parts = self.list.len() as u64;
        let is_sum = parts >= BLOCKS && Some(bytes) == self.bytes.checked_mul(parts);
        if is_sum && bytes >= SHORTEST && self.list.iter().all(|it| world.live.contains_key(it)) {
            self.seen.add(item.line, 0);
            self.seen.bytes = self.seen.bytes.max(bytes.saturating_mul(2));
            self.parts = self.parts.max(parts);
        }
        self.bytes = bytes;
        self.list.clear();
        self.list.push(id);
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        (self.seen.count >= LEAST).then(|| self.seen.found(
            "gathered_into_a_list",
            "Many equal blocks are followed by one as long as all of them, as where a list is gathered and concatenated",
            format!(
                "{}, up to {} at a time, up to {} for the list and its sum",
                show::count(self.seen.count, "time"),
                show::count(self.parts, "block"),
                show::bytes(self.seen.bytes),
            ),
            "gather into one tensor (all_gather_into_tensor), or take the long block first and fill slices of it",
        ))
    }
}
