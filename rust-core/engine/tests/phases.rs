//! Phases whose sizes differ: which regions are unpinned and pinned, and that this ends.

use pinbuddy_core::{Block, Cached, Config, Decision, Engine, NewSegment, Region, SegmentId, SegmentKind};
use proptest::prelude::*;

const MIB: usize = 1 << 20;

/// An engine and its caller.
struct Program {
    engine: Engine,
    next_base: usize,
    pins: u32,
    peak: usize,
    largest: usize,
    /// Whether pins of a working-set region are refused.
    refuses: bool,
}

impl Program {
    fn new(segment_bytes: usize) -> Self {
        let engine = Engine::new(Config { segment_bytes, threshold_bytes: 0 });
        Self { engine: engine.renewing(), next_base: MIB, pins: 0, peak: 0, largest: 0, refuses: false }
    }

    fn pinned(&self) -> usize {
        self.engine.stats().pinned_bytes.current as usize
    }

    fn used(&self) -> usize {
        let stats = self.engine.stats();
        stats.active_bytes.current as usize
    }

    fn region(&mut self, bytes: usize) -> NewSegment {
        let base = self.next_base;
        self.next_base += bytes;
        self.pins += 1;
        NewSegment::new(Region { base, bytes }).unwrap()
    }

    fn take(&mut self, request: usize) -> Block {
        let block = loop {
            match self.engine.request(request) {
                Decision::Block(block) => break block,
                Decision::Pin { bytes } => {
                    let region = self.region(bytes);
                    self.engine.adopt(region).unwrap();
                }
                Decision::Renew { bytes } => self.renew(bytes),
                Decision::PassThrough => panic!("{request} bytes are not served"),
            }
            self.peak = self.peak.max(self.pinned());
        };
        self.largest = self.largest.max(self.used());
        block
    }

    fn renew(&mut self, bytes: usize) {
        let (used, pinned) = (self.used(), self.pinned());
        let stale = self.engine.take_stale();
        let gone: usize = stale.iter().map(|it| it.region().bytes).sum();
        assert_eq!(self.used(), used, "no region in use is unpinned");
        assert_eq!(self.pinned(), pinned - gone);
        if bytes > 0 && !self.refuses {
            let region = self.region(bytes);
            self.engine.adopt_working_set(region).unwrap();
        }
    }

    /// Runs the phases of these numbers.
    fn phases(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.phase(&sizes(number));
        }
    }

    /// Runs a phase of these sizes; returns how many regions it pinned.
    fn phase(&mut self, sizes: &[usize]) -> u32 {
        let before = self.pins;
        let blocks: Vec<Block> = sizes.iter().map(|it| self.take(*it)).collect();
        for block in blocks {
            self.engine.release(block).unwrap();
        }
        assert_eq!(self.engine.audit(), Ok(()));
        self.pins - before
    }
}

/// Sizes of a phase: 100 MiB in all, divided differently in each phase.
fn sizes(phase: usize) -> [usize; 4] {
    let some = (phase * 7 % 11 + 1) * MIB;
    [10 * MIB + some, 20 * MIB - some, 40 * MIB - some, 30 * MIB + some]
}

#[test]
fn a_phase_that_is_served_beside_cached_blocks_is_noticed() {
    let mut program = Program::new(1024 * MIB);
    program.phases(0..20);
    let small = program.take(8 * MIB);
    let large = program.engine.request_beside(70 * MIB, Cached::default()).unwrap();
    program.engine.release(large).unwrap();
    // There is room beside the small block, but this is the next phase.
    assert_eq!(program.engine.request_beside(8 * MIB, Cached::default()), None);
    program.engine.release(small).unwrap();
}

#[test]
fn phases_whose_sizes_differ_come_to_need_no_pins() {
    let mut program = Program::new(1024 * MIB);
    let pins: Vec<u32> = (0..30).map(|n| program.phase(&sizes(n))).collect();
    assert_eq!(pins[0], 4);
    assert!(pins[1..10].iter().all(|it| (1..5).contains(it)), "{pins:?}");
    assert_eq!(pins[10], 1, "one region of what a phase needs, and a twelfth");
    assert_eq!(pins[11..], [0; 19]);
    assert_eq!(program.pinned(), 108 * MIB + MIB / 3 / 4096 * 4096 + 4096);
    assert!(program.peak <= 115 * MIB, "{}", program.peak);
}

#[test]
fn without_that_they_pin_much_more() {
    let mut program = Program::new(1024 * MIB);
    program.engine = Engine::new(Config { segment_bytes: 1024 * MIB, threshold_bytes: 0 });
    program.phases(0..30);
    assert!(program.peak > 140 * MIB, "{}", program.peak);
}

#[test]
fn phases_of_the_same_sizes_unpin_nothing() {
    let mut program = Program::new(1024 * MIB);
    let pins: Vec<u32> = (0..20).map(|_| program.phase(&sizes(3))).collect();
    assert_eq!((pins[0], &pins[1..]), (4, &[0; 19][..]));
    assert_eq!(program.engine.stats().pinned_bytes.freed, 0);
}

#[test]
fn a_larger_set_renews_the_working_set_once_and_after_a_clear_it_comes_back_at_once() {
    let mut program = Program::new(1024 * MIB);
    program.phases(0..12);
    assert!(program.phase(&[60 * MIB, 60 * MIB]) > 0, "more than it holds");
    assert_eq!(program.phase(&sizes(0)), 1, "renewed for 120 MiB");
    assert_eq!(program.phase(&[60 * MIB, 60 * MIB]), 0);
    assert_eq!(program.phase(&[130 * MIB]), 0, "a twelfth more");
    program.engine.take_idle(usize::MAX);
    assert_eq!(program.pinned(), 0);
    assert_eq!(program.phase(&sizes(5)), 1);
}

#[test]
fn a_working_set_longer_than_a_segment_is_split_as_one() {
    let mut program = Program::new(64 * MIB);
    program.phases(0..12);
    let working_set = program.engine.segments().next().unwrap();
    assert_eq!((working_set.kind, working_set.bytes > 64 * MIB), (SegmentKind::Idle, true));
}

#[test]
fn what_was_pinned_ahead_stays() {
    let mut program = Program::new(64 * MIB);
    let ahead: Vec<SegmentId> = (0..2)
        .map(|_| {
            let region = program.region(64 * MIB);
            program.engine.adopt(region).unwrap()
        })
        .collect();
    program.phases(0..12);
    for id in ahead {
        assert!(program.engine.blocks(id).is_some(), "unpinned");
    }
}

#[test]
fn where_the_working_set_is_refused_requests_get_their_own_and_nothing_more_is_unpinned() {
    let mut program = Program::new(1024 * MIB);
    program.refuses = true;
    program.phases(0..4);
    let freed = program.engine.stats().pinned_bytes.freed;
    program.phases(4..20);
    assert_eq!(program.engine.stats().pinned_bytes.freed, freed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every request is served and blocks in use stay. When phases of random sizes are repeated, the
    /// last ones pin less than one region each. Repeated, since differing sizes may be detected late.
    #[test]
    fn random_phases_are_served_and_pins_become_rare(
        phases in prop::collection::vec(prop::collection::vec(1usize..2000, 4..12), 60),
        kept in prop::collection::vec(1usize..50, 0..3),
    ) {
        let mut program = Program::new(1024 * MIB);
        let kept: Vec<Block> = kept.iter().map(|it| program.take(it * 4096)).collect();
        let pins: Vec<u32> = phases
            .iter()
            .chain(&phases)
            .map(|sizes| {
                let sizes: Vec<usize> = sizes.iter().map(|it| it * 4096).collect();
                program.phase(&sizes)
            })
            .collect();
        prop_assert!(pins[90..].iter().sum::<u32>() < 30, "{:?}", pins);
        for block in kept {
            program.engine.release(block).unwrap();
        }
        prop_assert_eq!(program.engine.stats().active_blocks.current, 0);
    }
}
