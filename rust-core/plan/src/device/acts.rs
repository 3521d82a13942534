//! What was asked of a device, act by act, in little memory.
//!
//! Invariant: blocks have the lowest numbers that are vacant, so those that live have small ones.

use std::collections::HashMap;

use pinbuddy_device::Act;
use pinbuddy_device::planned::Streams;
use pinbuddy_events::Op;
use rustc_hash::FxHashMap;

use super::DeviceRecord;
use super::late::{Late, ends};
use crate::record::Record;

/// An act in little memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    /// Of a request; else 0, and `stream` says what happened.
    pub(super) bytes: u64,
    pub(super) block: u32,
    pub(super) stream: u32,
}

/// What `stream` says where there is no request.
pub(super) const OVER: u32 = 0;
pub(super) const ITERATION: u32 = 1;
pub(super) const CLEAR: u32 = 2;

/// Hardly anything is left: one part of the most in use in so many at most.
pub(super) const LEFT: u64 = 16;

/// What was asked of one device. Streams are small numbers in any order; blocks have the lowest numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct OneDevice {
    pub(super) acts: Vec<Packed>,
    pub(super) live: HashMap<u64, Live>,
    pub(super) vacant: Vec<u32>,
    pub(super) segments: Segments,
    /// What other streams used, in the order in which they were done with it.
    pub(super) late: Vec<Late>,
}

/// A block that lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) block: u32,
    pub(super) stream: u32,
    /// Whether it is as long as plans have places for.
    pub(super) is_planned: bool,
    /// Whether another stream uses it.
    pub(super) is_shared: bool,
    /// The number of the next act when it was freed, if it was shared.
    pub(super) freed: Option<u32>,
}

/// What PyTorch's allocator had of a device. On a full one it gives back what is idle before a request fails: the models of it have
/// a device without end.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    reserved: u64,
    most: u64,
    /// Some was given back, and the cache not emptied since.
    gave: bool,
    was_short: bool,
}

impl Segments {
    pub(super) fn took(&mut self, bytes: u64) {
        self.reserved += bytes;
        self.most = self.most.max(self.reserved);
        self.was_short |= self.gave;
    }

    pub(super) fn gave(&mut self, bytes: u64) {
        self.reserved = self.reserved.saturating_sub(bytes);
        self.gave = true;
    }

    pub(super) fn emptied(&mut self) {
        self.gave = false;
    }

    /// The most that was reserved, if there was no room for more.
    pub(super) fn most_where_short(&self) -> Option<u64> {
        self.was_short.then_some(self.most)
    }
}

/// A stream's part of a record, as plans are made of it.
pub(super) struct StreamRecord {
    pub(super) number: u32,
    pub(super) record: Record,
    /// Of each request, the number of its act.
    acts: Vec<u32>,
    /// Requests, and the acts for which they may be over at first.
    late: Vec<(usize, [u32; 2])>,
}

impl Packed {
    pub(super) fn other(block: u32, what: u32) -> Self {
        Self { bytes: 0, block, stream: what }
    }

    fn act(self) -> Act {
        let Self { bytes, block, stream } = self;
        match (bytes, stream) {
            (0, OVER) => Act::Free { block },
            (0, ITERATION) => Act::Iter,
            (0, _) => Act::Clear,
            _ => Act::Alloc { block, bytes, stream },
        }
    }
}

impl OneDevice {
    pub(super) fn acts(&self) -> impl Iterator<Item = Act> {
        self.acts.iter().map(|it| it.act())
    }

    /// Requests from `threshold` bytes on, of each stream that has some: in the order in which a run with a plan numbers them.
    pub(super) fn streams(&self, threshold: u64) -> Vec<StreamRecord> {
        let mut numbers = Streams::default();
        let mut streams: Vec<StreamRecord> = Vec::new();
        // By block: the stream that it lives on, and the number of its request there.
        let mut live: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
        let mut ends = ends(self.acts(), &self.late).into_iter().peekable();
        for (index, act) in (0..).zip(self.acts()) {
            match act {
                Act::Alloc { block, bytes, stream } if bytes >= threshold => {
                    let number = numbers.number(stream);
                    if number == streams.len() {
                        streams.push(StreamRecord::new(number));
                    }
                    live.insert(block, (number, streams[number].record.len()));
                    streams[number].request(index, block, bytes);
                }
                Act::Free { block } => {
                    let late = ends.next_if(|it| it.0 == index);
                    if let Some((number, request)) = live.remove(&block) {
                        streams[number].record.push(Op::free(block.into()));
                        streams[number].late.extend(late.map(|it| (request, it.1)));
                    }
                }
                Act::Iter => streams.iter_mut().for_each(StreamRecord::iteration),
                Act::Clear => {
                    for it in &mut streams {
                        it.record.push(Op::Clear);
                    }
                }
                _ => {}
            }
        }
        for stream in &mut streams {
            stream.record.forget_the_end();
            stream.set_late();
        }
        streams
    }
}

impl DeviceRecord {
    /// What a run with these acts records of one device. Every block is live when the record ends, as in a process that
    /// is asked at once.
    #[must_use]
    pub fn of(acts: &[Act]) -> Self {
        let mut record = Self::new(u32::MAX);
        for &act in acts {
            match act {
                Act::Alloc { block, bytes, stream } => {
                    record.request((0, stream), u64::from(block), bytes);
                }
                Act::Use { block, stream } => record.used((0, stream), u64::from(block)),
                Act::Free { block } if record.freed(0, u64::from(block)) => {}
                Act::Free { block } | Act::Complete { block } => {
                    record.over(0, u64::from(block));
                }
                Act::Clear => record.cleared(0),
                Act::Iter => record.iteration(),
            }
        }
        record
    }
}

/// The most in use, and whether the program went on after it had emptied its cache when hardly anything was left of that, as
/// behind a model that is gone.
pub(super) fn most_and_whether_let_go(acts: impl Iterator<Item = Act>) -> (u64, bool) {
    let (mut live, mut now, mut most) = (FxHashMap::default(), 0_u64, 0);
    let (mut emptied, mut gone) = (0, 0);
    for act in acts {
        match act {
            Act::Alloc { block, bytes, .. } => {
                gone = gone.max(emptied);
                live.insert(block, bytes);
                now += bytes;
                most = most.max(now);
            }
            Act::Free { block } => now -= live.remove(&block).unwrap_or(0),
            Act::Clear if now <= most / LEFT => emptied = most,
            _ => {}
        }
    }
    // Not what a program frees before it has begun.
    (most, gone > most / 2)
}

impl StreamRecord {
    fn new(number: usize) -> Self {
        Self { number: number as u32, record: Record::new(u32::MAX), acts: Vec::new(), late: Vec::new() }
    }

    fn set_late(&mut self) {
        // Behind the last request before.
        let moment = |act: u32| {
            let before = self.acts.partition_point(|it| *it < act);
            self.record.requests[before.saturating_sub(1)].begin + 1
        };
        let late = self.late.iter();
        self.record.late = late.map(|it| (it.0 as u32, it.1.map(moment))).collect();
    }

    /// The act of the first request from a moment on.
    pub(super) fn act_at(&self, moment: u32) -> Option<usize> {
        let requests = &self.record.requests;
        let first = requests.partition_point(|it| it.begin < moment);
        self.acts.get(first).map(|it| *it as usize)
    }

    /// Marks with nothing between them are one.
    fn iteration(&mut self) {
        let is_new = self.record.marks.last() != self.record.now.checked_sub(1).as_ref();
        if is_new {
            self.record.push(Op::Iteration);
        }
    }

    fn request(&mut self, act: u32, block: u32, bytes: u64) {
        let before = self.record.len();
        self.record.push(Op::request(block.into(), bytes));
        // What is longer than anything that there can be is left out.
        if self.record.len() > before {
            self.acts.push(act);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for blocks of so many MiB, which are numbered in order; 0 empties the cache, a negative number frees that block.
    fn let_go(acts: &[i64]) -> (u64, bool) {
        let mut device = OneDevice::default();
        let mut next = 0;
        for &act in acts {
            device.acts.push(match act {
                0 => Packed::other(0, CLEAR),
                1.. => {
                    next += 1;
                    Packed { bytes: act as u64, block: next, stream: 0 }
                }
                _ => Packed::other(-act as u32, OVER),
            });
        }
        most_and_whether_let_go(device.acts())
    }

    #[test]
    fn a_model_is_let_go_of_where_the_program_goes_on_with_next_to_nothing() {
        let model = [100, 1, -1];
        let and = |rest: &[i64]| let_go(&[&model, rest].concat());
        assert_eq!(and(&[0, 90]), (101, true));
        // A program that ends, one that has freed nothing, and one that has begun with little.
        assert_eq!(and(&[0]), (101, false));
        assert_eq!(let_go(&[100, 7, -2, 0, 90]), (190, false));
        assert_eq!(let_go(&[1, -1, 0, 100, 1]), (101, false));
        assert_eq!(let_go(&[0]), (0, false));
    }
}
