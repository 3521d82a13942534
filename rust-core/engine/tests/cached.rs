//! A caller that caches freed blocks for the next request of their size. Totals must equal those of a
//! caller that caches nothing; peaks must be no lower, and no more than was pinned; the engine must
//! stay consistent.
//!
//! The caller has one list of cached blocks. It flushes the list before a request that cannot be served
//! beside them, and before it reads statistics.

use pinbuddy_core::{
    Block, Cached, Config, Decision, Engine, GRANULE, Gauge, NewSegment, Region, SegmentView,
};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
enum Action {
    /// Ask for so many granules: from the cache, else beside cached blocks, else after a flush.
    Take {
        granules: usize,
        beside: bool,
    },
    /// The user frees a block, which is cached.
    Free(Index),
    /// The user frees a block that streams have used.
    FreeUsed(Index),
    /// A block's events complete, and it is cached or released.
    Complete {
        which: Index,
        cache: bool,
    },
    Read,
    ResetPeaks,
    ResetAccumulated,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let index = any::<Index>;
    let action = prop_oneof![
        10 => (1usize..6, any::<bool>())
            .prop_map(|(granules, beside)| Action::Take { granules, beside }),
        6 => index().prop_map(Action::Free),
        2 => index().prop_map(Action::FreeUsed),
        2 => (index(), any::<bool>()).prop_map(|(which, cache)| Action::Complete { which, cache }),
        1 => Just(Action::Read),
        1 => Just(Action::ResetPeaks),
        1 => Just(Action::ResetAccumulated),
    ];
    prop::collection::vec(action, 1..150)
}

/// The statistics of a caller that caches nothing.
#[derive(Debug, Default)]
struct Truth {
    blocks: Gauge,
    bytes: Gauge,
    hits: u64,
}

fn add(gauge: &mut Gauge, amount: u64) {
    gauge.current += amount;
    gauge.allocated += amount;
    gauge.peak = gauge.peak.max(gauge.current);
}

fn remove(gauge: &mut Gauge, amount: u64) {
    gauge.current -= amount;
    gauge.freed += amount;
}

struct Caller {
    engine: Engine,
    live: Vec<Block>,
    pending: Vec<Block>,
    cached: Vec<Block>,
    /// Requests that cached blocks served since the engine was last told, and their bytes.
    reused: (u64, u64),
    truth: Truth,
    next_base: usize,
}

impl Caller {
    fn new() -> Self {
        let config = Config {
            segment_bytes: 16 * GRANULE,
            threshold_bytes: 0,
        };
        Self {
            engine: Engine::new(config),
            live: Vec::new(),
            pending: Vec::new(),
            cached: Vec::new(),
            reused: (0, 0),
            truth: Truth::default(),
            next_base: 0x10_0000,
        }
    }

    fn apply(&mut self, action: &Action) {
        match action {
            Action::Take { granules, beside } => self.take(granules * GRANULE, *beside),
            Action::Free(which) => {
                if let Some(block) = remove_any(&mut self.live, which) {
                    self.freed(block);
                    self.cached.push(block);
                }
            }
            Action::FreeUsed(which) => {
                if let Some(block) = remove_any(&mut self.live, which) {
                    self.engine.defer(block).unwrap();
                    self.pending.push(block);
                }
            }
            Action::Complete { which, cache } => {
                if let Some(block) = remove_any(&mut self.pending, which) {
                    self.freed(block);
                    if *cache {
                        self.engine.cache(block).unwrap();
                        assert!(self.engine.cache(block).is_err(), "it waits for nothing");
                        self.cached.push(block);
                    } else {
                        self.engine.release(block).unwrap();
                    }
                }
            }
            Action::Read => {
                self.flush();
                let stats = self.engine.stats();
                same_but_for_the_peak(stats.active_blocks, self.truth.blocks);
                same_but_for_the_peak(stats.active_bytes, self.truth.bytes);
                assert!(stats.active_bytes.peak <= stats.pinned_bytes.peak);
                assert_eq!(stats.hits, self.truth.hits);
                assert_eq!(stats.pending_blocks.current, self.pending.len() as u64);
            }
            Action::ResetPeaks => {
                self.flush();
                self.engine.reset_peaks();
                for gauge in [&mut self.truth.blocks, &mut self.truth.bytes] {
                    gauge.peak = gauge.current;
                }
            }
            Action::ResetAccumulated => {
                self.flush();
                self.engine.reset_accumulated();
                for gauge in [&mut self.truth.blocks, &mut self.truth.bytes] {
                    (gauge.allocated, gauge.freed) = (0, 0);
                }
                self.truth.hits = 0;
            }
        }
    }

    fn take(&mut self, bytes: usize, beside: bool) {
        let block = self
            .take_cached(bytes)
            .or_else(|| beside.then(|| self.take_beside(bytes)).flatten())
            .unwrap_or_else(|| self.take_after_a_flush(bytes));
        assert!(self.live.iter().all(|other| apart(other, &block)));
        assert!(self.cached.iter().all(|other| apart(other, &block)));
        self.live.push(block);
        self.truth.hits += 1;
        add(&mut self.truth.blocks, 1);
        add(&mut self.truth.bytes, block.bytes as u64);
    }

    fn take_cached(&mut self, bytes: usize) -> Option<Block> {
        let which = self.cached.iter().position(|block| block.bytes == bytes)?;
        self.reused.0 += 1;
        self.reused.1 += bytes as u64;
        Some(self.cached.swap_remove(which))
    }

    fn take_beside(&mut self, bytes: usize) -> Option<Block> {
        let power = |bytes: usize| bytes.next_power_of_two();
        let sizes = || self.cached.iter().map(|it| it.bytes);
        let cached = Cached {
            bytes: sizes().sum(),
            alike: sizes().filter(|it| power(*it) == power(bytes)).count(),
        };
        let before = self.engine.segments().filter(SegmentView::is_idle).count();
        let block = self.engine.request_beside(bytes, cached)?;
        let after = self.engine.segments().filter(SegmentView::is_idle).count();
        assert_eq!(before, after, "no idle segment is cut for it");
        Some(block)
    }

    fn take_after_a_flush(&mut self, bytes: usize) -> Block {
        self.flush();
        loop {
            match self.engine.request(bytes) {
                Decision::Block(block) => return block,
                Decision::Pin { bytes } => {
                    let base = self.next_base;
                    self.next_base += bytes;
                    let segment = NewSegment::new(Region { base, bytes }).unwrap();
                    self.engine.adopt(segment).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn freed(&mut self, block: Block) {
        remove(&mut self.truth.blocks, 1);
        remove(&mut self.truth.bytes, block.bytes as u64);
    }

    fn flush(&mut self) {
        let (blocks, bytes) = std::mem::take(&mut self.reused);
        self.engine.reused(blocks, bytes);
        for block in self.cached.drain(..) {
            self.engine.release(block).unwrap();
        }
    }
}

fn same_but_for_the_peak(found: Gauge, truth: Gauge) {
    assert!(found.peak >= truth.peak, "{found:?} beside {truth:?}");
    let Gauge { peak, .. } = found;
    assert_eq!(found, Gauge { peak, ..truth });
}

fn remove_any(blocks: &mut Vec<Block>, which: &Index) -> Option<Block> {
    (!blocks.is_empty()).then(|| blocks.swap_remove(which.index(blocks.len())))
}

fn apart(a: &Block, b: &Block) -> bool {
    a.segment != b.segment || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn statistics_are_those_of_a_caller_that_caches_nothing(actions in actions()) {
        let mut caller = Caller::new();
        for action in &actions {
            caller.apply(action);
            prop_assert_eq!(caller.engine.audit(), Ok(()));
        }
        caller.apply(&Action::Read);
    }
}
