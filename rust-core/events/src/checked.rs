//! Checks that events are valid in their order, and numbers blocks for a replay.
//!
//! Time never goes back, only live blocks are used and freed, and an id names one block at a time. Blocks and streams get
//! small numbers, those of blocks used again, so that a replay looks them up in arrays. Knows no policy.
//!
//! Memory: what is live or pending now, and the streams seen; never the trace.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::numbers::Numbers;
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
    numbers: Numbers,
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
            numbers: Numbers::default(),
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
        let Event { at, whose, op } = event;
        if at < self.at {
            let (before, found) = (self.at, at);
            return Err(What::TimeWentBack { before, found }.on(line));
        }
        let checked = match op {
            Op::Request { id, bytes, .. } => self.request(line, whose, id, bytes).map(Some),
            Op::Free { id, pending, .. } => self.free(id, pending).map(Some),
            Op::Use { id, .. } => match self.live.get_mut(&id) {
                Some(block) => {
                    block.used = true;
                    Ok(Some((*block, !self.recorded)))
                }
                None => Err(What::UnknownId { op: "event", id }),
            },
            Op::Safe { id } if self.live.contains_key(&id) => Err(What::NotFreed { id }),
            Op::Safe { id } => match self.pending.remove(&id) {
                Some(block) => {
                    block
                        .known
                        .iter()
                        .for_each(|it| self.numbers.give_back(it.number));
                    Ok(Some((block, true)))
                }
                // Its free was its end.
                None => {
                    self.at = at;
                    return Ok(None);
                }
            },
            Op::Wait { id: Some(id), .. } => match self.live.get(&id) {
                Some(block) => Ok(Some((*block, false))),
                None => Err(What::UnknownId { op: "wait", id }),
            },
            _ => Ok(None),
        };
        let checked = checked.map_err(|what| what.on(line))?;
        self.at = at;
        let is_of_none = matches!(op, Op::Iteration | Op::Lost { .. });
        let whose = checked.map_or(whose, |(block, _)| block.whose);
        if whose != self.whose && !is_of_none {
            return Ok(None);
        }
        Ok(Some(self.item(line, Event { at, whose, op }, checked)))
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

    fn request(
        &mut self,
        line: u64,
        whose: Whose,
        id: u64,
        bytes: u64,
    ) -> Result<(Block, bool), What> {
        let entry = match self.live.entry(id) {
            Entry::Vacant(entry) => entry,
            Entry::Occupied(entry) => {
                let since = entry.get().since;
                return Err(What::IdInUse { id, since });
            }
        };
        let found = self.live_bytes.saturating_add(bytes);
        if found > MOST_LIVE {
            let most = MOST_LIVE;
            return Err(What::TooMuch { most, found });
        }
        self.live_bytes = found;
        let known = (whose == self.whose).then(|| {
            let id = self.requests;
            self.requests += 1;
            let number = self.numbers.take();
            Known { id, number }
        });
        let block = Block {
            known,
            bytes,
            whose,
            used: false,
            since: line,
        };
        Ok((*entry.insert(block), true))
    }

    /// The freed block, and whether a replay frees it now.
    fn free(&mut self, id: u64, pending: bool) -> Result<(Block, bool), What> {
        let Some(block) = self.live.remove(&id) else {
            return Err(What::UnknownId { op: "free", id });
        };
        self.live_bytes -= block.bytes;
        let pending = pending || block.used && self.recorded;
        if pending {
            self.pending.insert(id, block);
        } else {
            block
                .known
                .iter()
                .for_each(|it| self.numbers.give_back(it.number));
        }
        Ok((block, !pending))
    }
}

#[cfg(test)]
mod tests;
