//! Checks that events are valid in their order, and numbers blocks for a replay.
//!
//! Time never goes back, only live blocks are used and freed, and an id names one block at a time. Blocks and streams get
//! small numbers, those of blocks used again, so that a replay looks them up in arrays. Knows no policy.
//!
//! Memory: what is live or pending now, and the streams seen; never the trace.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::trace::{Error, What};
use crate::{Event, MICROSECOND, Op, Whose};

/// The most that may be live at once, in bytes: 1 PiB. No machine has so much, and sums stay far below
/// the largest `u64`.
pub const MOST_LIVE: u64 = 1 << 50;

/// An event that is valid after those before it, with what is known of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The line of a trace, or the number of an event in a snapshot; from 1 on.
    pub line: u64,
    /// The event. A block's id is the number of requests before its own, a stream's number that of streams before it.
    pub event: Event,
    /// The block's number, if a replay allocates, frees or uses it now. Another block may get it once it is free.
    pub block: Option<u32>,
    /// The block's bytes; 0 of an event without a block.
    pub bytes: u64,
}

impl Item {
    /// When, in microseconds.
    pub const fn at(&self) -> u64 {
        self.event.at / MICROSECOND
    }
}

/// A block that is live, or pending.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// None of memory that is left out.
    known: Option<Known>,
    bytes: u64,
    whose: Whose,
    used: bool,
    since: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    id: u64,
    number: u32,
}

/// Checks events one after the other.
#[derive(Debug)]
pub struct Checker {
    whose: Whose,
    recorded: bool,
    // Ids come from a file: the standard hash is seeded, so that no file can make them collide.
    live: HashMap<u64, Block>,
    /// Blocks that were freed, and are not safe yet.
    pending: HashMap<u64, Block>,
    streams: HashMap<u32, u32>,
    /// How many numbers there are, and those of no block, the last one on top.
    numbers: u32,
    vacant: Vec<u32>,
    requests: u64,
    live_bytes: u64,
    /// In nanoseconds.
    at: u64,
}

impl Default for Checker {
    /// For pinned memory, in a replay's own time.
    fn default() -> Self {
        Self::new(Whose::Host, false)
    }
}

impl Checker {
    /// A checker of all events, which returns those of this memory. `recorded`: the events say when the streams that used a
    /// block were done, and a replay keeps the block until then, since allocators look at that at the same moments, at
    /// requests. Else a replay has the streams' work in its own time. Events of device memory were always recorded.
    pub fn new(whose: Whose, recorded: bool) -> Self {
        Self {
            whose,
            recorded: recorded || whose != Whose::Host,
            live: HashMap::new(),
            pending: HashMap::new(),
            streams: HashMap::new(),
            numbers: 0,
            vacant: Vec::new(),
            requests: 0,
            live_bytes: 0,
            at: 0,
        }
    }

    /// The event on `line`, if it is valid after those before; none if it is of other memory, or about a block that is
    /// free already.
    ///
    /// # Errors
    ///
    /// What is not valid; the checker is then unchanged.
    pub fn check(&mut self, line: u64, event: Event) -> Result<Option<Item>, Error> {
        let block = self.block(line, event).map_err(|what| what.on(line))?;
        let Event { at, whose, op } = event;
        self.at = at;
        let whose = block.map_or(whose, |(block, _)| block.whose);
        let is_wanted = match op {
            Op::Iteration | Op::Lost { .. } => true,
            // Without a block: its free was its end.
            Op::Safe { .. } if block.is_none() => false,
            _ => whose == self.whose,
        };
        Ok(is_wanted.then(|| self.item(line, Event { at, whose, op }, block)))
    }

    /// The block of an event that is valid, and whether a replay does something with it.
    fn block(&mut self, line: u64, event: Event) -> Result<Option<(Block, bool)>, What> {
        let Event { at, whose, op } = event;
        if at < self.at {
            return Err(What::Other(format!(
                "expected t to be at least {} ns, as on the line before, found {at} ns",
                self.at
            )));
        }
        Ok(match op {
            Op::Request { id, bytes, .. } => Some(self.request(line, whose, id, bytes)?),
            Op::Free { id, pending, .. } => Some(self.free(id, pending)?),
            Op::Use { id, .. } => {
                let block = self.live.get_mut(&id).ok_or_else(|| unknown("event", id))?;
                block.used = true;
                Some((*block, !self.recorded))
            }
            Op::Safe { id } if self.live.contains_key(&id) => {
                return Err(What::Other(format!(
                    "expected safe to name a block that was freed, found id {id}, which lives"
                )));
            }
            Op::Safe { id } => self.pending.remove(&id).map(|block| {
                self.give_back(&block);
                (block, true)
            }),
            Op::Wait { id: Some(id), .. } => {
                let block = self.live.get(&id).ok_or_else(|| unknown("wait", id))?;
                Some((*block, false))
            }
            _ => None,
        })
    }

    /// The event with what is known of its block, and whether a replay does something with it.
    fn item(&mut self, line: u64, mut event: Event, checked: Option<(Block, bool)>) -> Item {
        let known = checked.and_then(|(block, _)| block.known);
        let own = known.map_or(0, |it| it.id);
        match &mut event.op {
            Op::Request { id, .. } | Op::Safe { id } => *id = own,
            Op::Free { id, pending, .. } => {
                *id = own;
                *pending = checked.is_some_and(|(_, acts)| !acts);
            }
            Op::Use { id, stream } => {
                *id = own;
                if self.whose == Whose::Host {
                    let next = self.streams.len() as u32; // at most one a `u32`
                    *stream = *self.streams.entry(*stream).or_insert(next);
                }
            }
            Op::Wait { id: Some(id), .. } => *id = own,
            _ => {}
        }
        let acts = checked.is_some_and(|(_, acts)| acts);
        Item {
            line,
            event,
            block: known.filter(|_| acts).map(|it| it.number),
            bytes: checked.map_or(0, |(block, _)| block.bytes),
        }
    }

    /// How many blocks are live.
    pub fn blocks(&self) -> usize {
        self.live.len()
    }

    /// How many bytes are live, as requested.
    pub fn bytes(&self) -> u64 {
        self.live_bytes
    }

    fn request(&mut self, line: u64, whose: Whose, id: u64, bytes: u64) -> Result<(Block, bool), What> {
        let entry = match self.live.entry(id) {
            Entry::Vacant(entry) => entry,
            Entry::Occupied(entry) => {
                let since = entry.get().since;
                return Err(What::Other(format!(
                    "expected alloc to name a new block, found id {id}, which lives since line {since}"
                )));
            }
        };
        let found = self.live_bytes.saturating_add(bytes);
        if found > MOST_LIVE {
            return Err(What::Other(format!("expected at most {MOST_LIVE} bytes to live at once, found {found}")));
        }
        self.live_bytes = found;
        let known = (whose == self.whose).then(|| {
            let id = self.requests;
            self.requests += 1;
            let number = self.vacant.pop().unwrap_or_else(|| {
                let next = self.numbers;
                // No machine has room for as many blocks as a `u32` counts.
                self.numbers = next.saturating_add(1);
                next
            });
            Known { id, number }
        });
        let block = Block { known, bytes, whose, used: false, since: line };
        Ok((*entry.insert(block), true))
    }

    fn give_back(&mut self, block: &Block) {
        self.vacant.extend(block.known.map(|it| it.number));
    }

    /// The freed block, and whether a replay frees it now.
    fn free(&mut self, id: u64, pending: bool) -> Result<(Block, bool), What> {
        let Some(block) = self.live.remove(&id) else {
            return Err(unknown("free", id));
        };
        self.live_bytes -= block.bytes;
        let pending = pending || block.used && self.recorded;
        if pending {
            self.pending.insert(id, block);
        } else {
            self.give_back(&block);
        }
        Ok((block, !pending))
    }
}

#[cold]
fn unknown(op: &str, id: u64) -> What {
    What::Other(format!("expected {op} to name a block that lives, found id {id}, which does not"))
}

#[cfg(test)]
mod tests;
