//! Many equal blocks at once, and then one that is as long as all of them: a list that is gathered into and then
//! concatenated.

use super::{Examples, Finding, Watch};
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
    times: u64,
    /// The most that lists and their sum had at once.
    most: u64,
    parts: u64,
    examples: Examples,
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
            self.times += 1;
            self.most = self.most.max(bytes.saturating_mul(2));
            self.parts = self.parts.max(parts);
            self.examples.add(item.line);
        }
        self.bytes = bytes;
        self.list.clear();
        self.list.push(id);
    }

    fn finding(&mut self, _world: &World) -> Option<Finding> {
        (self.times >= LEAST).then(|| Finding {
            id: "gathered_into_a_list",
            what: "Many equal blocks are followed by one as long as all of them, as where a list is gathered and concatenated",
            evidence: format!(
                "{}, up to {} at a time, up to {} for the list and its sum",
                show::count(self.times, "time"),
                show::count(self.parts, "block"),
                show::bytes(self.most),
            ),
            count: self.times,
            bytes: self.most,
            lines: self.examples.0.clone(),
            to_do: "gather into one tensor (all_gather_into_tensor), or take the long block first and fill slices of it"
                .to_owned(),
        })
    }
}
