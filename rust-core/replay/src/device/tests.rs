//! The model by hand-made programs, and its books in random ones.

use proptest::prelude::*;

use super::replay::Replay;
use super::*;
use crate::MIB;

/// The model, with the numbers of blocks as names.
#[derive(Debug)]
struct Try(Torch);

impl Try {
    fn new(settings: Settings) -> Self {
        Self(Torch::new(settings))
    }

    fn alloc(&mut self, block: u32, bytes: u64) -> bool {
        self.on(0, block, bytes)
    }

    fn on(&mut self, stream: u32, block: u32, bytes: u64) -> bool {
        let served = self.0.allocate(block, bytes, stream).is_ok();
        self.0.audit().unwrap();
        served
    }

    fn free(&mut self, block: u32) {
        self.0.free(block);
        self.0.audit().unwrap();
    }

    fn clear(&mut self) {
        self.0.clear();
        self.0.audit().unwrap();
    }

    fn reserved(&self) -> u64 {
        self.0.usage().reserved
    }
}

fn expandable() -> Settings {
    Settings {
        expandable: true,
        ..Settings::default()
    }
}

#[test]
fn segments_by_size() {
    for (bytes, segment) in [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (31 * MIB + 1, 32 * MIB),
    ] {
        let mut it = Try::new(Settings::default());
        assert!(it.alloc(0, bytes));
        assert_eq!(it.reserved(), segment, "{bytes}");
        it.clear();
        assert_eq!(it.reserved(), segment, "in use");
        it.free(0);
        it.clear();
        assert_eq!(it.reserved(), 0);
    }
}

#[test]
fn what_is_left_over_is_split_off_if_it_is_enough() {
    let mut it = Try::new(Settings::default());
    it.alloc(0, 2 * MIB - 512);
    it.free(0);
    it.alloc(0, MIB);
    it.alloc(1, MIB - 1);
    assert_eq!(it.reserved(), 22 * MIB, "the two share a segment of 2 MiB");
    it.alloc(2, 19 * MIB);
    assert_eq!(
        it.0.usage().allocated,
        22 * MIB,
        "1 MiB too much is not split off"
    );
    it.alloc(3, 2 * MIB);
    assert_eq!(it.reserved(), 42 * MIB);
}

#[test]
fn the_best_fit_serves_and_freed_neighbours_merge() {
    let mut it = Try::new(Settings::default());
    it.alloc(0, 40 * MIB);
    it.alloc(1, 30 * MIB);
    it.free(0);
    it.free(1);
    it.alloc(2, 25 * MIB);
    it.alloc(3, 40 * MIB);
    assert_eq!(it.reserved(), 70 * MIB);
    it.alloc(4, 5 * MIB);
    assert_eq!(it.reserved(), 70 * MIB, "behind the 25");
    it.free(2);
    it.free(4);
    it.alloc(5, 30 * MIB);
    assert_eq!(it.reserved(), 70 * MIB);
}

#[test]
fn blocks_belong_to_their_stream() {
    let mut it = Try::new(Settings::default());
    it.on(1, 0, 10 * MIB);
    it.free(0);
    it.on(2, 0, 10 * MIB);
    assert_eq!(it.reserved(), 20 * MIB);
}

#[test]
fn a_block_that_other_streams_use_waits_for_them() {
    let mut it = Try::new(Settings::default());
    it.alloc(0, 10 * MIB);
    it.0.use_on(0, 0);
    it.free(0);
    it.alloc(0, 10 * MIB);
    assert_eq!(it.reserved(), 10 * MIB, "its own stream is no other");
    it.0.use_on(0, 7);
    it.free(0);
    assert_eq!((it.0.usage().allocated, it.0.usage().active), (0, 10 * MIB));
    it.alloc(1, 10 * MIB);
    assert_eq!(it.reserved(), 20 * MIB);
    it.0.complete(0);
    assert_eq!(it.0.usage().active, 20 * MIB, "the next request looks");
    it.alloc(2, 10 * MIB);
    assert_eq!(it.reserved(), 20 * MIB);
    it.0.use_on(2, 7);
    it.free(2);
    it.clear();
    assert_eq!(it.reserved(), 10 * MIB, "a clear waits");
    it.0.complete(2);
    it.alloc(3, 10 * MIB);
    assert_eq!(it.reserved(), 20 * MIB);
}

#[test]
fn a_full_device_takes_back_what_is_idle_and_then_refuses() {
    let mut it = Try::new(Settings::default().on_a_device(64 * MIB, 50 * MIB));
    it.alloc(0, 30 * MIB);
    it.alloc(1, 10 * MIB);
    it.free(0);
    assert!(!it.alloc(2, 42 * MIB));
    assert_eq!(
        it.reserved(),
        10 * MIB,
        "what was idle is gone all the same"
    );
    assert!(it.alloc(2, 40 * MIB));
    assert!(!it.alloc(3, 1));
    it.0.use_on(2, 9);
    it.free(2);
    assert!(it.alloc(3, 1), "the allocator waits for streams");
    assert_eq!(it.reserved(), 12 * MIB);
}

#[test]
fn blocks_that_are_not_split_are_given_back_one_by_one() {
    let settings = Settings {
        max_split_size: 20 * MIB,
        ..Settings::default().on_a_device(128 * MIB, 100 * MIB)
    };
    let mut it = Try::new(settings);
    it.alloc(0, 30 * MIB);
    it.alloc(1, 60 * MIB);
    it.free(0);
    it.free(1);
    it.alloc(2, 12 * MIB);
    assert_eq!(
        it.reserved(),
        72 * MIB,
        "neither is split; the best fit made room"
    );
    it.free(2);
    it.alloc(3, 29 * MIB);
    assert_eq!(
        it.reserved(),
        42 * MIB,
        "60 MiB are too much for it, and made room"
    );
    it.alloc(4, 41 * MIB);
    it.free(4);
    it.alloc(5, 23 * MIB);
    assert_eq!(it.reserved(), 84 * MIB, "less than 20 MiB too much");
}

#[test]
fn an_expandable_segment_grows_by_pages_and_shrinks_by_them() {
    let mut it = Try::new(expandable());
    it.alloc(0, 100);
    it.alloc(1, 30 * MIB);
    assert_eq!(it.reserved(), 42 * MIB);
    it.alloc(2, 31 * MIB);
    assert_eq!(
        it.reserved(),
        82 * MIB,
        "41 MiB from the 30th on need two more pages"
    );
    it.free(1);
    it.clear();
    assert_eq!(
        it.reserved(),
        62 * MIB,
        "the first page is idle, the second in use"
    );
    it.alloc(3, 25 * MIB);
    assert_eq!(
        it.reserved(),
        82 * MIB,
        "the lowest addresses that have room"
    );
    for block in [0, 2, 3] {
        it.free(block);
    }
    it.clear();
    assert_eq!(it.reserved(), 0);
}

#[test]
fn what_was_mapped_before_the_device_was_full_stays() {
    let mut it = Try::new(expandable().on_a_device(256 * MIB, 90 * MIB));
    it.alloc(0, 30 * MIB);
    it.alloc(1, 30 * MIB);
    assert!(!it.alloc(2, 40 * MIB));
    assert_eq!(it.reserved(), 60 * MIB);
    it.free(0);
    assert!(it.alloc(2, 40 * MIB), "after its first page was unmapped");
    assert_eq!(it.reserved(), 80 * MIB);
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0_u8..10, 0_u32..12, 0_u32..3, 0_u32..27, 0_u64..1 << 20).prop_map(
        |(what, block, stream, order, more)| match what {
            0..4 => Act::Alloc {
                block,
                bytes: (1 << order) + more % (1 << order),
                stream,
            },
            4..7 => Act::Free { block },
            7 => Act::Use { block, stream },
            8 => Act::Complete { block },
            _ => Act::Clear,
        },
    );
    proptest::collection::vec(act, 0..200)
}

/// Leaves out what no program does: blocks that have a name are not asked for again, and only live ones are used.
fn possible(acts: Vec<Act>) -> Vec<Act> {
    // By block: its stream, whether another used it, and whether it was freed.
    let mut blocks: [Option<(u32, bool, bool)>; 12] = [None; 12];
    acts.into_iter()
        .filter(|act| match *act {
            Act::Alloc { block, stream, .. } => {
                let it = &mut blocks[block as usize];
                it.is_none()
                    .then(|| *it = Some((stream, false, false)))
                    .is_some()
            }
            Act::Use { block, stream } => match &mut blocks[block as usize] {
                Some((own, shared, false)) => {
                    *shared |= stream != *own;
                    true
                }
                _ => false,
            },
            Act::Free { block } => match &mut blocks[block as usize] {
                Some((_, true, freed @ false)) => {
                    *freed = true;
                    true
                }
                it @ Some((_, false, false)) => it.take().is_some(),
                _ => false,
            },
            Act::Complete { block } => {
                let it = &mut blocks[block as usize];
                it.take_if(|it| it.2).is_some()
            }
            Act::Clear | Act::Iter => true,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_whatever_a_program_does(
        acts in acts(),
        expandable: bool,
        full: bool,
        max_split in proptest::option::of(20_u64..100),
    ) {
        let mut settings = Settings { expandable, ..Settings::default() };
        if full {
            settings = settings.on_a_device(256 * MIB, 240 * MIB);
        }
        settings.max_split_size = max_split.map_or(u64::MAX, |it| it * MIB);
        let mut replay = Replay::new(Torch::new(settings));
        let mut refused = Vec::new();
        for act in possible(acts) {
            // A block that was refused is not there.
            match act {
                Act::Alloc { block, .. } => refused.retain(|it| *it != block),
                Act::Use { block, .. } | Act::Free { block } | Act::Complete { block }
                    if refused.contains(&block) => continue,
                _ => {}
            }
            let before = replay.outcome().refused;
            replay.step(act);
            if let Act::Alloc { block, .. } = act && replay.outcome().refused > before {
                refused.push(block);
            }
            replay.model().audit().map_err(TestCaseError::fail)?;
            let usage = replay.model().usage();
            prop_assert!(usage.reserved <= settings.capacity);
        }
        let outcome = replay.outcome();
        prop_assert!(full || outcome.bound <= outcome.peak_reserved);
    }

    #[test]
    fn everything_is_given_back_in_the_end(acts in acts(), expandable: bool) {
        let mut model = Torch::new(Settings { expandable, ..Settings::default() });
        for act in possible(acts) {
            replay::apply(&mut model, act).unwrap();
        }
        (0..12).for_each(|block| model.free(block));
        model.clear();
        prop_assert_eq!(model.usage().reserved, 0);
        prop_assert_eq!(model.usage().taken, model.usage().given_back);
    }
}

#[test]
fn the_outcome_counts_what_streams_hold() {
    let mut replay = Replay::new(Kind::Torch.model());
    let alloc = |block, bytes| Act::Alloc {
        block,
        bytes,
        stream: 0,
    };
    for act in [
        alloc(0, 10 * MIB),
        Act::Use {
            block: 0,
            stream: 1,
        },
        Act::Free { block: 0 },
        alloc(1, 10 * MIB + 1),
        Act::Complete { block: 0 },
        Act::Iter,
        alloc(0, 1),
    ] {
        replay.step(act);
    }
    let outcome = replay.outcome();
    assert_eq!(outcome.peak_requested, 10 * MIB + 2);
    assert_eq!(outcome.bound, 20 * MIB + 512);
    assert_eq!(
        (outcome.peak_reserved, outcome.taken_after_first_step),
        (24 * MIB, 1)
    );
}
