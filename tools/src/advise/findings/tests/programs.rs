//! Programs of a few lines, each of which does one thing wrong, or nearly does.

use std::collections::VecDeque;

use pinbuddy_events::{Event, Op};

use crate::advise::Finding;
use crate::advise::advise;
use crate::input::{About, Input};

pub(super) const MIB: u64 = 1 << 20;

/// A trace that is written by hand.
#[derive(Clone, Default)]
pub(super) struct Program {
    events: Vec<Event>,
    next: u64,
    /// What the trace says of the run.
    about: About,
}

impl Program {
    pub(super) fn push(&mut self, op: Op) {
        let at = self.events.len() as u64 * 1_000_000;
        self.events.push(Event::host(at, op));
    }

    pub(super) fn alloc(&mut self, bytes: u64) -> u64 {
        self.next += 1;
        self.push(Op::request(self.next, bytes));
        self.next
    }

    fn some(&mut self, count: u64, bytes: u64) -> Vec<u64> {
        (0..count).map(|_| self.alloc(bytes)).collect()
    }

    pub(super) fn copy(&mut self, id: u64, stream: u32) {
        self.push(Op::Use { id, stream });
    }

    pub(super) fn free(&mut self, ids: &[u64]) {
        ids.iter().for_each(|it| self.push(Op::free(*it)));
    }

    pub(super) fn recorded(mut self) -> Self {
        self.about.recorded = true;
        self
    }

    /// With a budget and a limit of the group, in MiB.
    pub(super) fn limited(mut self, budget: u64, group: u64) -> Self {
        self.about.budget = Some(budget * MIB);
        self.about.group_limit = Some(group * MIB);
        self
    }

    /// What is found, by its name.
    pub(super) fn finding(&self, id: &str) -> Option<Finding> {
        let events = self.events.clone();
        let make = move || -> Box<dyn Iterator<Item = _>> { Box::new(events.clone().into_iter()) };
        let mut input = Input::generated("program", Box::new(make));
        (input.about.recorded, input.about.budget) = (self.about.recorded, self.about.budget);
        input.about.group_limit = self.about.group_limit;
        let mut plan = |record: &_| crate::plan::search(record, 0.0, Some(1));
        let found = advise(&input, &mut plan).unwrap().findings;
        found.into_iter().find(|it| it.id == id)
    }
}

/// The same step again and again.
fn repeated(times: u64, step: impl Fn(&mut Program, u64)) -> Program {
    let mut program = Program::default();
    (0..times).for_each(|number| step(&mut program, number));
    program
}

/// A block that is used and stays, and a hundred, each freed when `between` is done.
pub(super) fn brief(bytes: u64, between: impl Fn(&mut Program, u64)) -> Program {
    repeated(101, |it, number| {
        let block = it.alloc(bytes);
        if number == 0 {
            return it.copy(block, 1);
        }
        between(it, block);
        it.free(&[block]);
    })
}

/// Ten iterations of a few buffers; the cache is emptied after some.
pub(super) fn clears(after: impl Fn(u64) -> bool) -> Program {
    repeated(10, |it, iteration| {
        let blocks = it.some(4, 10 * MIB);
        it.free(&blocks);
        if after(iteration) {
            it.push(Op::Clear);
        }
        it.push(Op::Iteration);
    })
}

/// Lists of blocks, of which some are freed before the request for their sum, in MiB.
pub(super) fn gathered(parts: u64, gone: usize, sum: u64, times: u64) -> Program {
    repeated(times, |it, _| {
        let list = it.some(parts, 2 * MIB);
        it.free(&list[..gone]);
        let whole = it.alloc(sum * MIB);
        it.free(&list[gone..]);
        it.free(&[whole]);
    })
}

/// A hundred iterations of six buffers, of which some stay.
pub(super) fn growth(keeps: impl Fn(u64) -> usize) -> Program {
    repeated(100, |it, iteration| {
        let blocks = it.some(6, 2 * MIB);
        it.free(&blocks[keeps(iteration)..]);
        it.push(Op::Iteration);
    })
}

/// Each block is safe once so many more were asked for.
pub(super) fn slow(later: usize) -> Program {
    let (mut program, mut freed) = (Program::default(), VecDeque::new());
    for number in 0..100 {
        let block = program.alloc(8 * MIB);
        program.copy(block, number % 3 / 2);
        program.free(&[block]);
        freed.push_back(block);
        if freed.len() > later {
            let id = freed.pop_front().unwrap();
            program.push(Op::Safe { id });
        }
    }
    program
}

/// Small blocks, which stay or not, and then many others.
pub(super) fn small(count: u64, bytes: u64, stay: bool) -> Program {
    let mut program = Program::default();
    let blocks = program.some(count, bytes);
    program.free(if stay { &[] } else { &blocks });
    for _ in 0..500 {
        let block = program.alloc(8 * MIB);
        program.free(&[block]);
    }
    program
}

/// Blocks of these sizes in MiB on two streams, some of which are safe.
pub(super) fn stuck(size: impl Fn(u64) -> u64, safe: impl Fn(u64) -> bool) -> Program {
    repeated(100, |it, number| {
        let id = it.alloc(size(number) * MIB);
        it.copy(id, (number % 2) as u32);
        it.free(&[id]);
        if safe(number) {
            it.push(Op::Safe { id });
        }
    })
}

/// As examples/offload.py: PyTorch's allocator serves a small step, and is asked `again` at the end or not.
pub(super) fn small_step(again: bool) -> Program {
    let is_small = move |number| (20..30).contains(&number) || again && number == 99;
    stuck(move |number| if is_small(number) { 2 } else { 8 }, move |number| !is_small(number))
}

pub(super) fn turns(count: u64) -> Program {
    repeated(count * 2, |it, number| {
        let bytes = 8 * MIB;
        it.push(if number % 2 == 0 { Op::SegmentAlloc { bytes } } else { Op::SegmentFree { bytes } });
    })
}

pub(super) fn unread(used: impl Fn(u64) -> bool) -> Program {
    repeated(40, |it, number| {
        let block = it.alloc(4 * MIB);
        if used(number) {
            it.copy(block, 1);
        }
        it.free(&[block]);
    })
}

/// Eighty MiB at once, three times.
pub(super) fn thrice() -> Program {
    repeated(3, |it, _| {
        let blocks = it.some(10, 8 * MIB);
        it.free(&blocks);
    })
}

pub(super) fn forty(bytes: u64) -> Program {
    repeated(40, |it, _| {
        it.alloc(bytes);
    })
}
