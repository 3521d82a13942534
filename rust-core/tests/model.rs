//! The engine against a model that is too simple to be wrong: an array of bools per segment.
//!
//! Random actions, misuse included; after every one the answer must be the model's, exactly, and
//! the audit must find nothing. The model says which segment and which offset, not only whether
//! there is room, so that "leftmost in the fullest of the class that fits" and "the smallest idle
//! dedicated region that is not too large" are checked and not just believed.

use pinbuddy_core::{
    AdoptError, Block, BlockView, Config, Decision, Engine, GRANULE, Growth, IdleSegment, Misuse,
    NewSegment, Region, SMALL, SegmentId, SegmentKind,
};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

#[derive(Clone, Debug)]
enum Action {
    /// Ask for so many bytes; where the answer is `Pin`, adopt that and ask again if so.
    Request {
        bytes: usize,
        pin: bool,
    },
    /// Ask for so many bytes, from anywhere.
    RequestAnywhere {
        bytes: usize,
    },
    /// Adopt a region of any size.
    Adopt {
        bytes: usize,
    },
    /// Adopt a region that overlaps the n-th segment.
    AdoptOver {
        segment: prop::sample::Index,
        bytes: usize,
    },
    Defer(prop::sample::Index),
    Release(prop::sample::Index),
    TakeIdle {
        at_least: usize,
    },
    /// Release and defer a block that is gone.
    ReleaseGone(prop::sample::Index),
    /// Release and defer what is not quite the n-th block.
    ReleaseWrong {
        block: prop::sample::Index,
        offset: isize,
        bytes: isize,
    },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let index = any::<prop::sample::Index>;
    // Most requests are of a few granules; some are odd, some around the size that divides the
    // classes, some larger than any segment.
    let bytes = prop_oneof![
        6 => (1usize..40).prop_map(|granules| granules * GRANULE),
        3 => 0usize..40 * GRANULE,
        2 => (40usize..400).prop_map(|granules| granules * GRANULE),
        3 => SMALL - 2 * GRANULE..SMALL + 200 * GRANULE,
        1 => (1usize..4).prop_map(|huge| (huge << 20) + 1),
        1 => (0usize..3).prop_map(|less| usize::MAX - less),
    ];
    let region = prop_oneof![
        4 => GRANULE..300 * GRANULE,
        1 => SMALL..SMALL + 300 * GRANULE,
        1 => 0usize..2 * GRANULE,
    ];
    let at_least = prop_oneof![
        2 => Just(usize::MAX),
        2 => 0usize..2 * SMALL,
        1 => 0usize..3,
    ];
    let action = prop_oneof![
        12 => (bytes.clone(), any::<bool>())
            .prop_map(|(bytes, pin)| Action::Request { bytes, pin }),
        2 => bytes.prop_map(|bytes| Action::RequestAnywhere { bytes }),
        2 => region.clone().prop_map(|bytes| Action::Adopt { bytes }),
        1 => (index(), region).prop_map(|(segment, bytes)| Action::AdoptOver { segment, bytes }),
        3 => index().prop_map(Action::Defer),
        9 => index().prop_map(Action::Release),
        1 => at_least.prop_map(|at_least| Action::TakeIdle { at_least }),
        1 => index().prop_map(Action::ReleaseGone),
        1 => (index(), -5000isize..5000, -5000isize..5000).prop_map(|(block, offset, bytes)| {
            Action::ReleaseWrong { block, offset, bytes }
        }),
    ];
    prop::collection::vec(action, 1..120)
}

/// Segments of some granules, which hold no large block, or of more than the smallest large one.
fn configs() -> impl Strategy<Value = Config> {
    let segment_bytes = prop_oneof![
        // Not only powers of two, nor whole granules.
        2 => 1usize..300 * GRANULE,
        1 => SMALL..SMALL + 1000 * GRANULE,
    ];
    let threshold_bytes = prop_oneof![Just(0), 0usize..8 * GRANULE];
    let growth = prop_oneof![Just(Growth::Segment), Just(Growth::Exact)];
    (segment_bytes, threshold_bytes, growth).prop_map(|(segment_bytes, threshold_bytes, growth)| {
        Config {
            segment_bytes,
            threshold_bytes,
            growth,
        }
    })
}

/// A segment of the model. Segments stand in order of adoption.
struct ModelSegment {
    id: SegmentId,
    region: Region,
    free: Vec<bool>,
    kind: SegmentKind,
}

impl ModelSegment {
    fn free_granules(&self) -> usize {
        self.free.iter().filter(|free| **free).count()
    }

    fn is_idle(&self) -> bool {
        self.free_granules() == self.free.len()
    }

    fn is_dedicated(&self) -> bool {
        self.kind == SegmentKind::Dedicated
    }

    fn first_fit(&self, granules: usize) -> Option<usize> {
        let mut run = 0;
        let end = self.free.iter().position(|free| {
            run = if *free { run + 1 } else { 0 };
            run == granules
        })?;
        Some(end + 1 - granules)
    }
}

struct Model {
    config: Config,
    engine: Engine,
    segments: Vec<ModelSegment>,
    /// Live and pending blocks; `true` is pending.
    blocks: Vec<(Block, bool)>,
    gone: Vec<Block>,
    next_base: usize,
    answers: [u64; 3],
}

impl Model {
    fn new(config: Config) -> Self {
        let engine = Engine::new(config.clone());
        let (segments, blocks, gone) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            config,
            engine,
            segments,
            blocks,
            gone,
            next_base: 0x1003,
            answers: [0; 3],
        }
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Request { bytes, pin } => {
                if let Decision::Pin { bytes: region } = self.request(bytes)
                    && pin
                {
                    self.adopt(region);
                    assert!(
                        matches!(self.request(bytes), Decision::Block(_)),
                        "after adopting"
                    );
                }
            }
            Action::RequestAnywhere { bytes } => self.request_anywhere(bytes),
            Action::Adopt { bytes } => self.adopt(bytes),
            Action::AdoptOver { segment, bytes } => self.adopt_over(segment, bytes),
            Action::Defer(which) => self.defer(which),
            Action::Release(which) => self.release(which),
            Action::TakeIdle { at_least } => self.take_idle(at_least),
            Action::ReleaseGone(which) => {
                if !self.gone.is_empty() {
                    let block = *which.get(&self.gone);
                    self.claim_falsely(block);
                }
            }
            Action::ReleaseWrong {
                block,
                offset,
                bytes,
            } => {
                if !self.blocks.is_empty() {
                    let mut claim = block.get(&self.blocks).0;
                    claim.offset = claim.offset.wrapping_add_signed(offset);
                    claim.bytes = claim.bytes.wrapping_add_signed(bytes);
                    self.claim_falsely(claim);
                }
            }
        }
    }

    /// Asks both; the answer, once it is known to be right.
    fn request(&mut self, bytes: usize) -> Decision {
        let decision = self.engine.request(bytes);
        if self.passes(bytes) {
            assert_eq!(decision, Decision::PassThrough);
            self.answers[2] += 1;
            return decision;
        }
        let best = if self.is_longer_than_a_segment(bytes) {
            self.best_dedicated(bytes).map(|n| (n, 0))
        } else {
            self.best(bytes, &[class(bytes), SegmentKind::Idle])
        };
        match best {
            Some((n, start)) => {
                let block = self.take(n, start, bytes);
                assert_eq!(decision, Decision::Block(block));
            }
            None => {
                let expected = self.to_pin(bytes);
                assert_eq!(decision, Decision::Pin { bytes: expected });
                self.answers[1] += 1;
            }
        }
        decision
    }

    /// Asks both, the engine first.
    fn request_anywhere(&mut self, bytes: usize) {
        let found = self.engine.request_anywhere(bytes);
        let mut expected = None;
        if !self.passes(bytes) && !self.is_longer_than_a_segment(bytes) {
            let own = class(bytes);
            let all = [SegmentKind::Small, SegmentKind::Large];
            let other = all.into_iter().find(|kind| *kind != own).unwrap();
            expected = self
                .best(bytes, &[own, SegmentKind::Idle, other])
                .map(|(n, start)| self.take(n, start, bytes));
        }
        assert_eq!(found, expected);
    }

    fn passes(&self, bytes: usize) -> bool {
        bytes == 0 || bytes < self.config.threshold_bytes || bytes > 1 << 40
    }

    fn is_longer_than_a_segment(&self, bytes: usize) -> bool {
        bytes.div_ceil(GRANULE) > self.config.segment_bytes.div_ceil(GRANULE)
    }

    fn to_pin(&self, bytes: usize) -> usize {
        let segment = self.config.segment_bytes.div_ceil(GRANULE) * GRANULE;
        let own = bytes.div_ceil(2 << 20) * (2 << 20);
        assert_eq!(Engine::exact_region(bytes), Some(own));
        match self.config.growth {
            _ if self.is_longer_than_a_segment(bytes) => own,
            Growth::Exact if own < segment => own,
            _ => segment,
        }
    }

    /// The fullest segment of the first of these kinds that has room, and where.
    fn best(&self, bytes: usize, kinds: &[SegmentKind]) -> Option<(usize, usize)> {
        let granules = bytes.div_ceil(GRANULE);
        kinds.iter().find_map(|kind| {
            // min_by_key takes the first of equals: the oldest.
            (0..self.segments.len())
                .filter(|&n| self.segments[n].kind == *kind)
                .filter_map(|n| Some((n, self.segments[n].first_fit(granules)?)))
                .min_by_key(|&(n, _)| self.segments[n].free_granules())
        })
    }

    /// The smallest idle dedicated region that holds it, if that is not too large.
    fn best_dedicated(&self, bytes: usize) -> Option<usize> {
        let granules = bytes.div_ceil(GRANULE);
        let length = |n: usize| self.segments[n].free.len();
        let best = (0..self.segments.len())
            .filter(|&n| self.segments[n].is_dedicated() && self.segments[n].is_idle())
            .filter(|&n| length(n) >= granules)
            .min_by_key(|&n| length(n))?;
        let (region, pinned) = (length(best) as u128, self.to_pin(bytes) / GRANULE);
        (region * 8 <= granules as u128 * 9 || region <= pinned as u128).then_some(best)
    }

    /// The block that the engine must have handed out.
    fn take(&mut self, n: usize, start: usize, bytes: usize) -> Block {
        let granules = bytes.div_ceil(GRANULE);
        let segment = &mut self.segments[n];
        let offset = start * GRANULE;
        let block = Block {
            segment: segment.id,
            offset,
            bytes: granules * GRANULE,
        };
        assert_eq!(self.engine.address(block), segment.region.base + offset);
        // first_fit found them free, so no two blocks ever overlap.
        segment.free[start..start + granules].fill(false);
        if segment.kind == SegmentKind::Idle {
            segment.kind = class(bytes);
        }
        self.blocks.push((block, false));
        self.answers[0] += 1;
        block
    }

    fn adopt(&mut self, bytes: usize) {
        let region = Region {
            base: self.next_base,
            bytes,
        };
        let new = NewSegment::new(region);
        if bytes < GRANULE {
            assert_eq!(new.map(drop), Err(AdoptError::TooSmall { bytes }));
            return;
        }
        let adopted = self.engine.adopt(new.unwrap());
        // Every other region adjoins the one before.
        self.next_base += bytes + if bytes.is_multiple_of(2) { 0 } else { 1 };
        let id = adopted.unwrap();
        assert!(
            self.segments.iter().all(|segment| segment.id != id),
            "an id twice: {id}"
        );
        let free = vec![true; bytes / GRANULE];
        let kind = if self.is_longer_than_a_segment(free.len() * GRANULE) {
            SegmentKind::Dedicated
        } else {
            SegmentKind::Idle
        };
        self.segments.push(ModelSegment {
            id,
            region,
            free,
            kind,
        });
    }

    fn adopt_over(&mut self, segment: prop::sample::Index, bytes: usize) {
        if !self.segments.is_empty() && bytes >= GRANULE {
            let over = segment.get(&self.segments).region;
            let base = if bytes.is_multiple_of(2) {
                over.base + over.bytes - 1
            } else {
                over.base.saturating_sub(bytes - 1)
            };
            let new = NewSegment::new(Region { base, bytes }).unwrap();
            let adopted = self.engine.adopt(new);
            assert!(
                matches!(adopted, Err(AdoptError::Overlaps { .. })),
                "{adopted:?}"
            );
        }
    }

    fn defer(&mut self, which: prop::sample::Index) {
        if !self.blocks.is_empty() {
            let which = which.index(self.blocks.len());
            let (block, pending) = &mut self.blocks[which];
            let deferred = self.engine.defer(*block);
            if *pending {
                assert!(
                    matches!(deferred, Err(Misuse::AlreadyPending { .. })),
                    "{deferred:?}"
                );
            } else {
                assert_eq!(deferred, Ok(()));
            }
            *pending = true;
        }
    }

    fn release(&mut self, which: prop::sample::Index) {
        if !self.blocks.is_empty() {
            let (block, _) = self.blocks.swap_remove(which.index(self.blocks.len()));
            assert_eq!(self.engine.release(block), Ok(()));
            let segment = self
                .segments
                .iter_mut()
                .find(|segment| segment.id == block.segment)
                .unwrap();
            let start = block.offset / GRANULE;
            segment.free[start..start + block.bytes / GRANULE].fill(true);
            if segment.is_idle() && !segment.is_dedicated() {
                segment.kind = SegmentKind::Idle;
            }
            self.gone.push(block);
        }
    }

    fn take_idle(&mut self, at_least: usize) {
        let idle = |dedicated| {
            let of_kind = move |s: &&ModelSegment| s.is_idle() && s.is_dedicated() == dedicated;
            self.segments.iter().filter(of_kind)
        };
        let mut bytes = 0;
        let expected: Vec<(Region, bool)> = idle(true)
            .chain(idle(false))
            .take_while(|segment| {
                let more = bytes < at_least;
                bytes += segment.region.bytes;
                more
            })
            .map(|segment| (segment.region, segment.is_dedicated()))
            .collect();
        let taken = self.engine.take_idle(at_least);
        let seen = |idle: &IdleSegment| (idle.region(), idle.is_dedicated());
        assert_eq!(taken.iter().map(seen).collect::<Vec<_>>(), expected);
        self.segments
            .retain(|segment| !expected.contains(&(segment.region, segment.is_dedicated())));
    }

    /// Claims that `block` is a block; if it is one after all, nothing is claimed.
    fn claim_falsely(&mut self, block: Block) {
        if self.blocks.iter().all(|(other, _)| *other != block) {
            let before = self.engine.stats();
            assert!(self.engine.release(block).is_err(), "released {block:?}");
            assert!(self.engine.defer(block).is_err(), "deferred {block:?}");
            assert_eq!(self.engine.stats(), before);
        }
    }

    /// The engine agrees with the model about everything that can be seen.
    fn compare(&self) {
        let stats = self.engine.stats();
        let sum = |pending: bool| {
            let of_state = self.blocks.iter().filter(|(_, state)| *state == pending);
            let bytes: usize = of_state.clone().map(|(block, _)| block.bytes).sum();
            (bytes as u64, of_state.count() as u64)
        };
        assert_eq!(
            (stats.live_bytes.current, stats.live_blocks.current),
            sum(false)
        );
        assert_eq!(
            (stats.pending_bytes.current, stats.pending_blocks.current),
            sum(true)
        );
        let pinned: usize = self
            .segments
            .iter()
            .map(|segment| segment.region.bytes)
            .sum();
        assert_eq!(stats.pinned_bytes.current, pinned as u64);
        let idle = pinned as u64 - sum(false).0 - sum(true).0;
        assert_eq!(stats.idle_bytes, idle);
        assert_eq!([stats.hits, stats.misses, stats.pass_through], self.answers);
        for gauge in [stats.pinned_bytes, stats.live_bytes, stats.pending_bytes] {
            assert_eq!(gauge.current, gauge.allocated - gauge.freed);
            assert!(gauge.peak >= gauge.current);
        }
        let longest = |segment: &ModelSegment| {
            if segment.is_dedicated() && !segment.is_idle() {
                return 0; // what is left of it serves nothing
            }
            segment
                .free
                .split(|free| !free)
                .map(<[bool]>::len)
                .max()
                .unwrap_or(0)
                * GRANULE
        };
        let largest = self.segments.iter().map(longest).max().unwrap_or(0);
        assert_eq!(stats.largest_free_run_bytes, largest as u64);
        let dedicated = self.segments.iter().filter(|it| it.is_dedicated());
        let dedicated: usize = dedicated.map(|segment| segment.region.bytes).sum();
        assert_eq!(stats.dedicated_bytes, dedicated as u64);
        assert_eq!(stats.segments.current, self.segments.len() as u64);
        assert_eq!(self.engine.segments().count(), self.segments.len());
        for view in self.engine.segments() {
            let segment = self
                .segments
                .iter()
                .find(|segment| segment.id == view.id)
                .unwrap();
            assert_eq!(
                (view.base, view.bytes),
                (segment.region.base, segment.region.bytes)
            );
            assert_eq!(view.free_bytes, segment.free_granules() * GRANULE);
            assert_eq!(view.longest_free_run_bytes, longest(segment));
            assert_eq!(view.kind, segment.kind);
            let of_segment = self.blocks.iter().filter(|it| it.0.segment == view.id);
            let mut blocks: Vec<BlockView> = of_segment
                .map(|&(block, pending)| BlockView {
                    offset: block.offset,
                    bytes: block.bytes,
                    pending,
                })
                .collect();
            blocks.sort_by_key(|block| block.offset);
            assert_eq!(view.live_blocks + view.pending_blocks, blocks.len());
            assert!(self.engine.blocks(view.id).unwrap().eq(blocks));
        }
        for gone in &self.gone {
            let known = self.segments.iter().any(|it| it.id == gone.segment);
            assert_eq!(self.engine.blocks(gone.segment).is_some(), known);
        }
    }
}

/// The kind of segment that serves a request no longer than a segment.
fn class(bytes: usize) -> SegmentKind {
    if bytes < SMALL {
        SegmentKind::Small
    } else {
        SegmentKind::Large
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_engine_equals_the_model(
        config in configs(),
        actions in actions(),
    ) {
        let mut model = Model::new(config);
        for action in actions {
            model.apply(action);
            model.compare();
            prop_assert_eq!(model.engine.audit(), Ok(()));
        }
    }
}
