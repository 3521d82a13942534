//! A caller that keeps freed blocks whole for the next request of their size: the statistics must
//! be those of one that keeps nothing, peaks and totals included, and the engine must stay sound.
//!
//! The caller here is the simplest there is: one list of kept blocks, swept before a request that
//! is not served beside them and before the statistics are read.

use pinbuddy_core::{
    Block, Config, Decision, Engine, GRANULE, Gauge, Kept, NewSegment, Region, SegmentView,
};
use proptest::prelude::*;
use proptest::sample::Index;

#[derive(Clone, Debug)]
enum Action {
    /// Ask for so many granules; if nothing kept serves, beside what is kept or after a sweep.
    Take {
        granules: usize,
        beside: bool,
    },
    /// The user frees a block, which is kept.
    Free(Index),
    /// The user frees a block that streams have used.
    FreeUsed(Index),
    /// A block's events complete, and it is kept or released.
    Complete {
        which: Index,
        keep: bool,
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
        2 => (index(), any::<bool>()).prop_map(|(which, keep)| Action::Complete { which, keep }),
        1 => Just(Action::Read),
        1 => Just(Action::ResetPeaks),
        1 => Just(Action::ResetAccumulated),
    ];
    prop::collection::vec(action, 1..150)
}

/// What statistics say where nothing is ever kept.
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
    kept: Vec<Block>,
    count: Kept,
    /// Blocks and bytes that users have, against when that was last told.
    risen: [i64; 2],
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
            kept: Vec::new(),
            count: Kept::default(),
            risen: [0; 2],
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
                    self.keep(block);
                }
            }
            Action::FreeUsed(which) => {
                if let Some(block) = remove_any(&mut self.live, which) {
                    self.engine.defer(block).unwrap();
                    self.pending.push(block);
                }
            }
            Action::Complete { which, keep } => {
                if let Some(block) = remove_any(&mut self.pending, which) {
                    self.freed(block);
                    if *keep {
                        self.engine.keep(block).unwrap();
                        assert!(self.engine.keep(block).is_err(), "it waits for nothing");
                        self.keep(block);
                    } else {
                        self.engine.release(block).unwrap();
                    }
                }
            }
            Action::Read => {
                self.sweep();
                let stats = self.engine.stats();
                assert_eq!(stats.active_blocks, self.truth.blocks);
                assert_eq!(stats.active_bytes, self.truth.bytes);
                assert_eq!(stats.hits, self.truth.hits);
                assert_eq!(stats.pending_blocks.current, self.pending.len() as u64);
            }
            Action::ResetPeaks => {
                self.sweep();
                self.engine.reset_peaks();
                for gauge in [&mut self.truth.blocks, &mut self.truth.bytes] {
                    gauge.peak = gauge.current;
                }
            }
            Action::ResetAccumulated => {
                self.sweep();
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
            .take_kept(bytes)
            .or_else(|| beside.then(|| self.take_beside(bytes)).flatten())
            .unwrap_or_else(|| self.take_after_a_sweep(bytes));
        assert!(self.live.iter().all(|other| apart(other, &block)));
        assert!(self.kept.iter().all(|other| apart(other, &block)));
        self.live.push(block);
        self.truth.hits += 1;
        add(&mut self.truth.blocks, 1);
        add(&mut self.truth.bytes, block.bytes as u64);
    }

    fn take_kept(&mut self, bytes: usize) -> Option<Block> {
        let which = self.kept.iter().position(|block| block.bytes == bytes)?;
        let block = self.kept.swap_remove(which);
        let count = &mut self.count;
        count.blocks -= 1;
        count.bytes -= bytes as u64;
        self.risen[0] += 1;
        self.risen[1] += bytes as i64;
        count.rise_blocks = count.rise_blocks.max(self.risen[0].max(0) as u64);
        count.rise_bytes = count.rise_bytes.max(self.risen[1].max(0) as u64);
        count.reused_blocks += 1;
        count.reused_bytes += bytes as u64;
        Some(block)
    }

    fn take_beside(&mut self, bytes: usize) -> Option<Block> {
        let before = self.engine.segments().filter(SegmentView::is_idle).count();
        let kept = self.counted();
        let block = self.engine.request_beside(bytes, &kept)?;
        let after = self.engine.segments().filter(SegmentView::is_idle).count();
        assert_eq!(before, after, "no idle segment is cut for it");
        Some(block)
    }

    fn take_after_a_sweep(&mut self, bytes: usize) -> Block {
        self.sweep();
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
        self.risen[0] -= 1;
        self.risen[1] -= block.bytes as i64;
        remove(&mut self.truth.blocks, 1);
        remove(&mut self.truth.bytes, block.bytes as u64);
    }

    fn keep(&mut self, block: Block) {
        self.kept.push(block);
        self.count.blocks += 1;
        self.count.bytes += block.bytes as u64;
    }

    fn counted(&mut self) -> Kept {
        let kept = self.count;
        self.risen = [0; 2];
        self.count = Kept {
            blocks: kept.blocks,
            bytes: kept.bytes,
            ..Kept::default()
        };
        kept
    }

    fn sweep(&mut self) {
        let kept = self.counted();
        self.engine.settle(&kept);
        for block in self.kept.drain(..) {
            self.engine.release(block).unwrap();
        }
        self.count = Kept::default();
    }
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
    fn statistics_are_those_of_a_caller_that_keeps_nothing(actions in actions()) {
        let mut caller = Caller::new();
        for action in &actions {
            caller.apply(action);
            prop_assert_eq!(caller.engine.audit(), Ok(()));
        }
        caller.apply(&Action::Read);
    }
}
