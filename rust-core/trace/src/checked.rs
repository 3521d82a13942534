//! Checks that events are valid in their order, and numbers blocks for a replay.
//!
//! Time never goes back, only live blocks are used and freed, and an id names one block at a time. Ids
//! and streams become small numbers, reused where possible, so that a replay looks blocks up in arrays.
//! Knows no policy.
//!
//! Memory: what is live now, and the streams seen; never the trace.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::{Error, Event, Op, Unit, What};

/// The most that may be live at once, in bytes: 1 PiB. No machine has so much, and sums stay far below
/// the largest `u64`.
pub const MOST_LIVE: u64 = 1 << 50;

/// An event with numbers instead of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its time, in microseconds.
    pub at: u64,
    /// What the program did.
    pub act: Act,
}

/// See [`Op`]. A block has its number until it is freed; then another block may get it. Numbers are
/// below the most blocks that were ever live at once. A stream's number never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// [`Op::Alloc`].
    Alloc {
        /// The block.
        block: u32,
        /// The request in bytes.
        bytes: u64,
    },
    /// [`Op::Free`].
    Free {
        /// The block.
        block: u32,
    },
    /// [`Op::Event`].
    Use {
        /// The block.
        block: u32,
        /// The stream.
        stream: u32,
    },
    /// [`Op::Safe`], [`Op::Wait`], [`Op::Lost`] and all of device memory: nothing that a replay of pinned memory does. It has the streams' work in its own time, since a
    /// recorded time is when the allocator of that run happened to look.
    Note,
    /// [`Op::Clear`].
    Clear,
    /// [`Op::Iter`].
    Iter,
}

#[derive(Debug)]
struct Living {
    number: u32,
    bytes: u64,
    since: u64,
    device: bool,
}

/// Checks events one after the other.
#[derive(Debug, Default)]
pub struct Checker {
    // Ids come from the trace: the standard hash is seeded, so that no trace can make them collide.
    living: HashMap<u64, Living>,
    streams: HashMap<u32, u32>,
    /// Numbers of blocks that were freed, the last one on top.
    vacant: Vec<u32>,
    live_bytes: u64,
    /// In nanoseconds.
    at: u64,
}

impl Checker {
    /// The event on `line`, if it is valid after those before.
    ///
    /// # Errors
    ///
    /// What is not valid; the checker is then unchanged.
    pub fn check(&mut self, line: u64, event: Event) -> Result<Step, Error> {
        let Event { t, op } = event;
        if t < self.at {
            let (before, found) = (self.at, t);
            return Err(What::TimeWentBack { before, found }.on(line));
        }
        let act = match op {
            Op::Alloc { id, bytes, .. } => self.alloc(line, id, bytes, false),
            Op::DeviceAlloc { id, bytes, .. } => {
                self.alloc(line, id, bytes, true).map(|_| Act::Note)
            }
            Op::Free { id, .. } => match self.living.remove(&id) {
                Some(living) => {
                    self.live_bytes -= living.bytes;
                    self.vacant.push(living.number);
                    let block = living.number;
                    Ok(if living.device {
                        Act::Note
                    } else {
                        Act::Free { block }
                    })
                }
                None => Err(What::UnknownId { op: "free", id }),
            },
            Op::Event { id, stream } => match self.living.get(&id) {
                Some(living) if living.device => Ok(Act::Note),
                Some(living) => {
                    let next = self.streams.len() as u32; // at most one a `u32`
                    let stream = *self.streams.entry(stream).or_insert(next);
                    let block = living.number;
                    Ok(Act::Use { block, stream })
                }
                None => Err(What::UnknownId { op: "event", id }),
            },
            Op::Safe { id } if self.living.contains_key(&id) => Err(What::NotFreed { id }),
            Op::Wait { id: Some(id), .. } if !self.living.contains_key(&id) => {
                Err(What::UnknownId { op: "wait", id })
            }
            Op::Safe { .. }
            | Op::Wait { .. }
            | Op::Lost { .. }
            | Op::SegmentAlloc { .. }
            | Op::SegmentFree { .. } => Ok(Act::Note),
            Op::Clear => Ok(Act::Clear),
            Op::Iter => Ok(Act::Iter),
        };
        let act = act.map_err(|what| what.on(line))?;
        self.at = t;
        let at = t / Unit::Microseconds.nanoseconds();
        Ok(Step { at, act })
    }

    /// How many blocks are live.
    pub fn blocks(&self) -> usize {
        self.living.len()
    }

    /// How many bytes are live, as requested.
    pub fn bytes(&self) -> u64 {
        self.live_bytes
    }

    fn alloc(&mut self, line: u64, id: u64, bytes: u64, device: bool) -> Result<Act, What> {
        // Each number is of a live block or vacant.
        let next = self.living.len() as u32;
        let entry = match self.living.entry(id) {
            Entry::Vacant(entry) => entry,
            Entry::Occupied(entry) => {
                let since = entry.get().since;
                return Err(What::IdInUse { id, since });
            }
        };
        let live = self.live_bytes.saturating_add(bytes);
        if live > MOST_LIVE {
            let (most, found) = (MOST_LIVE, live);
            return Err(What::TooMuch { most, found });
        }
        self.live_bytes = live;
        let block = self.vacant.pop().unwrap_or(next);
        entry.insert(Living {
            number: block,
            bytes,
            since: line,
            device,
        });
        Ok(Act::Alloc { block, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MOST_BYTES, Reader};

    fn steps(text: &str) -> Result<Vec<Act>, String> {
        let mut checker = Checker::default();
        Reader::new(text.as_bytes())
            .map(|item| {
                let (line, event) = item?;
                Ok(checker.check(line, event)?.act)
            })
            .collect::<Result<_, Error>>()
            .map_err(|why| why.to_string())
    }

    #[test]
    fn names_become_small_numbers_that_are_used_again() {
        let text = r#"{"t":1,"op":"alloc","id":900,"bytes":10}
{"t":1,"op":"alloc","id":7,"bytes":20}
{"t":2,"op":"free","id":900}
{"t":2,"op":"event","id":7,"stream":55}
{"t":3,"op":"alloc","id":900,"bytes":30}
{"t":3,"op":"alloc","id":8,"bytes":40}"#;
        let expected = [
            Act::Alloc {
                block: 0,
                bytes: 10,
            },
            Act::Alloc {
                block: 1,
                bytes: 20,
            },
            Act::Free { block: 0 },
            Act::Use {
                block: 1,
                stream: 0,
            },
            Act::Alloc {
                block: 0,
                bytes: 30,
            },
            Act::Alloc {
                block: 2,
                bytes: 40,
            },
        ];
        assert_eq!(steps(text), Ok(expected.to_vec()));
    }

    #[test]
    fn what_makes_no_sense_in_its_order_is_refused_with_its_line() {
        let alloc =
            |id, bytes| format!("{{\"t\":5,\"op\":\"alloc\",\"id\":{id},\"bytes\":{bytes}}}\n");
        let one = alloc(1, 10);
        let free = "{\"t\":5,\"op\":\"free\",\"id\":1}\n";
        for (text, said) in [
            (
                one.clone() + free + free,
                "line 3: expected free to name a block that lives, found id 1, which does not",
            ),
            (
                "{\"t\":5,\"op\":\"event\",\"id\":9,\"stream\":0}\n".to_owned(),
                "line 1: expected event to name a block that lives, found id 9, which does not",
            ),
            (
                alloc(2, 5) + &one + &one,
                "line 3: expected alloc to name a new block, found id 1, which lives since line 2",
            ),
            (
                one.clone() + "{\"t\":5,\"op\":\"wait\",\"id\":2,\"took\":1}\n",
                "line 2: expected wait to name a block that lives, found id 2, which does not",
            ),
            (
                one.clone() + "{\"t\":4,\"op\":\"iter\"}\n",
                "line 2: expected t to be at least 5000 ns, as on the line before, found 4000 ns",
            ),
            (
                (0..=1024).map(|id| alloc(id, MOST_BYTES)).collect(),
                "line 1025: expected at most 1125899906842624 bytes to live at once, found 1126999418470400",
            ),
        ] {
            assert_eq!(steps(&text), Err(said.to_owned()));
        }
    }

    #[test]
    fn device_memory_is_checked_and_no_replays_of_pinned_memory() {
        let alloc = r#"{"t":1,"op":"alloc","id":1,"bytes":10,"thread":0,"device":0,"stream":0}"#;
        let text = format!(
            "{alloc}\n{}",
            r#"{"t":1,"op":"segment_alloc","device":0,"bytes":20}
{"t":1,"op":"alloc","id":2,"bytes":20}
{"t":2,"op":"event","id":1,"stream":1}
{"t":2,"op":"free","id":1}
{"t":3,"op":"safe","id":1}
{"t":3,"op":"free","id":2}"#
        );
        let note = Act::Note;
        let pinned = Act::Alloc {
            block: 1,
            bytes: 20,
        };
        let free = Act::Free { block: 1 };
        let expected = vec![note, note, pinned, note, note, note, free];
        assert_eq!(steps(&text), Ok(expected));
        let said = steps(&format!("{alloc}\n{alloc}")).unwrap_err();
        assert!(
            said.contains("found id 1, which lives since line 1"),
            "{said}"
        );
    }

    #[test]
    fn a_refusal_changes_nothing() {
        let mut checker = Checker::default();
        let event = |t, op| Event { t, op };
        let alloc = |id| Op::Alloc {
            id,
            bytes: 10,
            thread: 0,
            private: false,
        };
        checker.check(1, event(3, alloc(1))).unwrap();
        checker.check(2, event(9, alloc(1))).unwrap_err();
        checker
            .check(3, event(9, Op::Free { id: 2, thread: 0 }))
            .unwrap_err();
        assert_eq!((checker.blocks(), checker.bytes()), (1, 10));
        let step = checker.check(4, event(3, alloc(2))).unwrap();
        assert_eq!(
            step.act,
            Act::Alloc {
                block: 1,
                bytes: 10
            }
        );
    }
}
