//! The provisioner's answers, step by step, on numbers.

use super::*;
use crate::engine::tests::block;
use crate::units::{GRANULE, Region};

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;
const MS: Duration = Duration::from_millis(1);

pub(super) fn settings() -> Settings {
    Settings {
        segment_bytes: GIB,
        threshold_bytes: 4 * MIB,
        growth: Growth::Segment,
        warm_up: WarmUp::Background,
        count: None,
        idle: None,
    }
}

/// A provisioner, and a caller that pins a mebibyte in a millisecond.
struct Caller {
    it: Provisioner,
    base: usize,
    now: Duration,
    left: usize,
    pins: Vec<usize>,
}

impl Caller {
    fn new(settings: Settings) -> Self {
        Self { it: Provisioner::new(settings), base: GIB, now: Duration::ZERO, left: usize::MAX / 2, pins: Vec::new() }
    }

    /// One with an idle region for a request of so many bytes.
    fn with_idle(bytes: usize) -> Self {
        let mut caller = Self::new(settings());
        let block = caller.take(bytes);
        caller.release(block);
        caller
    }

    fn step(&mut self, want: &mut Want) -> Step {
        self.it.step(want, self.now, self.left)
    }

    /// The first step that is not about what streams are done with.
    fn first_step(&mut self, want: &mut Want) -> Step {
        match self.step(want) {
            Step::Reap => self.step(want),
            step => step,
        }
    }

    fn pinned(&mut self, permit: &Permit) -> Option<Block> {
        let bytes = permit.bytes;
        self.pins.push(bytes / MIB);
        self.left -= bytes;
        let region = Region { base: self.base, bytes };
        self.base += bytes;
        let took = Took { filling: MS * (bytes / MIB) as u32 / 2, registering: MS * (bytes / MIB) as u32 / 2 };
        self.now += took.filling + took.registering;
        let segment = NewSegment::new(region).unwrap();
        self.it.pinned(permit.id, segment, took).unwrap()
    }

    /// A block, with as many pins as it takes.
    fn take(&mut self, bytes: usize) -> Block {
        self.take_for(Want::new(bytes))
    }

    fn take_for(&mut self, want: Want) -> Block {
        let bytes = want.bytes();
        self.ask(want).unwrap_or_else(|| panic!("{bytes} passes through"))
    }

    /// The same, or `None` if it passes through.
    fn ask(&mut self, mut want: Want) -> Option<Block> {
        loop {
            match self.step(&mut want) {
                Step::Block(block) => return Some(block),
                Step::Reap => {}
                Step::Pin(permit) => {
                    assert_eq!(permit.bytes % GRANULE, 0, "{permit:?}");
                    self.left += unpinned(&permit.unpin);
                    let block = self.pinned(&permit);
                    assert!(block.is_some(), "{permit:?} does not serve {want:?}");
                    return block;
                }
                Step::PassThrough { unpin, .. } => {
                    self.left += unpinned(&unpin);
                    return None;
                }
                other => panic!("{want:?}: {other:?}"),
            }
        }
    }

    fn release(&mut self, block: Block) {
        self.it.engine_mut().release(block).unwrap();
    }

    /// The pin that the worker begins now.
    fn pin_ahead(&mut self) -> Permit {
        match self.it.work(self.now, self.left) {
            Work::Pin(permit) => permit,
            other => panic!("no pin: {other:?}"),
        }
    }

    /// What the worker does until it has nothing more to do, in MiB.
    fn work(&mut self) -> Vec<usize> {
        let before = self.pins.len();
        if !self.it.hire() {
            return Vec::new();
        }
        loop {
            match self.it.work(self.now, self.left) {
                Work::Pin(permit) => assert_eq!(self.pinned(&permit), None),
                Work::Unpin(_) => {}
                Work::Wait => panic!("nobody pins"),
                Work::Done => return self.pins[before..].to_vec(),
            }
        }
    }
}

/// Steps that pin, the first.
fn permit(step: Step) -> Permit {
    match step {
        Step::Pin(permit) => permit,
        other => panic!("no pin: {other:?}"),
    }
}

#[test]
fn one_request_is_no_demand_and_several_are() {
    let mut caller = Caller::new(settings());
    caller.take(8 * MIB);
    assert_eq!(caller.pins, [8]);
    assert_eq!(caller.work(), [0; 0], "nothing ahead for one request");
    for _ in 0..60 {
        caller.take(8 * MIB);
        caller.work();
    }
    let pinned: usize = caller.pins.iter().sum();
    assert!(pinned <= 2 * 61 * 8, "{:?}", caller.pins);
    assert!(caller.pins.len() < 50, "{:?}", caller.pins);
}

fn unpinned(idle: &[IdleSegment]) -> usize {
    idle.iter().map(|it| it.region().bytes).sum()
}

#[test]
fn a_request_is_pinned_for_no_longer_than_stocks_own() {
    let mut caller = Caller::new(settings());
    for _ in 0..20 {
        let before = caller.now;
        caller.take(10 * MIB);
        // Stock pins 16 MiB; a quarter more, and 8 ms.
        assert!(caller.now - before <= 28 * MS, "{:?}", caller.pins);
    }
}

#[test]
fn what_is_soon_there_is_waited_for_once() {
    let mut caller = Caller::new(Settings { count: Some(3), ..settings() });
    caller.take(8 * MIB);
    assert!(caller.it.hire());
    let first = caller.pin_ahead();
    assert_eq!(caller.pinned(&first), None, "now the worker's pace is known");
    let behind = caller.pin_ahead();
    block(caller.it.engine_mut(), 900 * MIB);
    let mut want = Want::new(600 * MIB);
    caller.now += 900 * MS;
    let Step::Wait { until: Some(until) } = caller.first_step(&mut want) else {
        panic!("it is over in 124 ms");
    };
    assert_eq!(until, caller.now + 300 * MS, "half of its own pin");
    caller.now = until;
    let own = permit(caller.step(&mut want));
    assert!(own.bytes >= 600 * MIB, "the second time it pins");
    caller.it.refused(behind.id, Refusal::Driver);
}

#[test]
fn the_deficit_is_never_more_than_was_told() {
    let mut caller = Caller::new(Settings { count: Some(4), ..settings() });
    let mut blocks: Vec<Block> = (0..12).map(|_| caller.take(900 * MIB)).collect();
    caller.work();
    for block in blocks.drain(..) {
        caller.release(block);
    }
    assert!(caller.it.clear().len() > 8);
    assert_eq!(caller.it.progress().deficit, 4);
    caller.take(8 * MIB);
    assert_eq!(caller.work(), [0; 0], "one request is no reason to pin all anew");
    for _ in 0..3 {
        caller.take(900 * MIB);
    }
    assert!(!caller.work().is_empty(), "now it shows");
}

#[test]
fn a_buffer_above_a_segment_that_grows_is_pinned_a_few_times() {
    let mut caller = Caller::new(settings());
    let mut block = None;
    for mib in 1100..1300 {
        if let Some(block) = block.take() {
            caller.release(block);
        }
        block = Some(caller.take(mib * MIB));
    }
    assert!(caller.pins.len() <= 4, "{:?}", caller.pins);
    caller.work();
    assert!(caller.it.engine().stats().pinned_bytes.current <= (2 * 1300) << 20);
}

#[test]
fn sizes_that_never_fit_again_come_to_rest_as_with_stock() {
    let mut caller = Caller::new(Settings { segment_bytes: 64 * MIB, ..settings() });
    // Sets of about a GiB whose sizes have nothing to do with each other.
    let mut number = 7_usize;
    let mut passed = 0;
    for _ in 0..600 {
        let mut blocks = Vec::new();
        for _ in 0..24 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = caller.ask(Want::new(4 * MIB + (number >> 40) % (56 * MIB)));
            passed += usize::from(block.is_none());
            blocks.extend(block);
        }
        blocks.into_iter().for_each(|it| caller.release(it));
        caller.work();
    }
    let rival = caller.it.engine().rival().count as usize;
    let pins = caller.pins.len();
    assert!(pins <= rival + 100, "{pins} pins, stock {rival}, passed {passed}");
}

mod decay;
mod homes;
mod unpinning;
mod warming;
