//! The model: where each block must be, computed in the simplest way.

use std::collections::BTreeMap;

use super::actions::Action;
use crate::choices::Pick;
use pinbuddy_core::{
    AdoptError, Block, Cached, Config, Decision, Engine, GRANULE, Home, IdleSegment, Misuse, NewSegment, Region, SMALL,
    SegmentId, SegmentKind,
};

/// A segment of the model. Segments stand in order of adoption.
pub(crate) struct ModelSegment {
    pub(crate) id: SegmentId,
    pub(crate) region: Region,
    pub(crate) free: Vec<bool>,
    pub(crate) kind: SegmentKind,
    pub(crate) home: Home,
}

impl ModelSegment {
    pub(crate) fn free_granules(&self) -> usize {
        self.free.iter().filter(|free| **free).count()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.free_granules() == self.free.len()
    }

    pub(crate) fn is_dedicated(&self) -> bool {
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

pub(crate) struct Model {
    config: Config,
    pub(crate) engine: Engine,
    pub(crate) segments: Vec<ModelSegment>,
    /// Live and pending blocks; `true` is pending.
    pub(crate) blocks: Vec<(Block, bool)>,
    pub(crate) gone: Vec<Block>,
    next_base: usize,
    /// Whose turn it is.
    home: Home,
    /// Since caches were flushed: blocks cut beside cached ones, and whether none could be; whether idle segments serve
    /// such requests, too; none: not tried yet.
    cut: (u64, bool),
    spreads: Option<bool>,
    /// The most that was in use at a request and not cached, of each home.
    largest: BTreeMap<Home, usize>,
    cached: usize,
    pub(crate) answers: [u64; 3],
    /// Bytes handed out so far.
    pub(crate) handed_out: u64,
}

impl Model {
    pub(crate) fn new(config: Config) -> Self {
        let engine = Engine::new(config.clone());
        let (segments, blocks, gone) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            config,
            engine,
            segments,
            blocks,
            gone,
            next_base: 0x1003,
            home: Home::default(),
            cut: (0, false),
            spreads: None,
            largest: BTreeMap::new(),
            cached: 0,
            answers: [0; 3],
            handed_out: 0,
        }
    }

    pub(crate) fn apply(&mut self, action: Action) {
        match action {
            Action::Request { bytes, pin } => {
                if let Decision::Pin { bytes: region } = self.request(bytes)
                    && pin
                {
                    // The least, or a whole segment.
                    let more = self.config.segment_bytes.max(region);
                    let is_long = self.is_longer_than_a_segment(bytes);
                    self.adopt(if is_long || bytes % 2 == 0 { region } else { more });
                    assert!(matches!(self.request(bytes), Decision::Block(_)), "after adopting");
                }
            }
            Action::RequestAnywhere { bytes } => self.request_anywhere(bytes),
            Action::RequestElsewhere { bytes } => self.request_elsewhere(bytes),
            Action::TurnTo(home) => self.turn_to(Home(home)),
            Action::RequestBeside { bytes, cached } => self.request_beside(bytes, cached),
            Action::Adopt { bytes } => self.adopt(bytes),
            Action::AdoptOver { segment, bytes } => self.adopt_over(segment, bytes),
            Action::Defer(which) => self.defer(which),
            Action::Cache(which) => self.cache(which),
            Action::Reused { blocks } => self.reused(blocks),
            Action::Release(which) => self.release(which),
            Action::TakeIdle { at_least } => self.take_idle(at_least),
            Action::ReleaseGone(which) => {
                if !self.gone.is_empty() {
                    let block = *which.get(&self.gone);
                    self.claim_falsely(block);
                }
            }
            Action::ReleaseWrong { block, offset, bytes } => {
                if !self.blocks.is_empty() {
                    let mut claim = block.get(&self.blocks).0;
                    claim.offset = claim.offset.wrapping_add_signed(offset);
                    claim.bytes = claim.bytes.wrapping_add_signed(bytes);
                    self.claim_falsely(claim);
                }
            }
            Action::ResetPeaks => {
                self.engine.reset_peaks();
                let stats = self.engine.stats();
                assert_eq!(stats.active_bytes.peak, stats.active_bytes.current);
                assert_eq!(stats.pinned_bytes.peak, stats.pinned_bytes.current);
            }
        }
    }

    /// Asks both, and returns the answer once it is known to be right.
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
                let own = bytes.div_ceil(GRANULE) * GRANULE;
                assert_eq!(Engine::exact_region(bytes), Some(own));
                assert_eq!(decision, Decision::Pin { bytes: own });
                self.answers[1] += 1;
            }
        }
        decision
    }

    /// Asks both, the engine first.
    fn request_anywhere(&mut self, bytes: usize) {
        let found = self.engine.request_anywhere(bytes);
        assert_eq!(found, self.anywhere(bytes));
    }

    /// Asks both, the engine first: from a segment in use by the request's own class, or from idle ones, too.
    fn request_beside(&mut self, bytes: usize, cached: usize) {
        let cached = Cached { bytes: cached, alike: cached / bytes.max(1) };
        let found = self.engine.request_beside(bytes, cached);
        self.cached = cached.bytes;
        let mut expected = None;
        if !self.passes(bytes) && !self.is_longer_than_a_segment(bytes) {
            let kinds = [class(bytes), SegmentKind::Idle];
            let best = self.best(bytes, if self.spreads == Some(true) { &kinds } else { &kinds[..1] });
            self.cut = (self.cut.0 + u64::from(best.is_some()), self.cut.1 || best.is_none());
            expected = best.map(|(n, start)| self.take(n, start, bytes));
        }
        assert_eq!(found, expected);
        self.cached = 0;
    }

    fn passes(&self, bytes: usize) -> bool {
        bytes == 0 || bytes < self.config.threshold_bytes || bytes > 1 << 40
    }

    fn is_longer_than_a_segment(&self, bytes: usize) -> bool {
        bytes.div_ceil(GRANULE) > self.config.segment_bytes.div_ceil(GRANULE)
    }

    /// The fullest segment of the first of these kinds that has room, and where.
    fn best(&self, bytes: usize, kinds: &[SegmentKind]) -> Option<(usize, usize)> {
        let granules = bytes.div_ceil(GRANULE);
        kinds.iter().find_map(|kind| {
            // min_by_key takes the first of equal ones: the oldest.
            (0..self.segments.len())
                .filter(|&n| self.segments[n].kind == *kind && self.segments[n].home == self.home)
                .filter_map(|n| Some((n, self.segments[n].first_fit(granules)?)))
                .min_by_key(|&(n, _)| self.segments[n].free_granules())
        })
    }

    fn idle_dedicated(&self) -> impl Iterator<Item = usize> {
        let idle = |it: &ModelSegment| it.is_dedicated() && it.is_idle();
        (0..self.segments.len()).filter(move |n| idle(&self.segments[*n]) && self.segments[*n].home == self.home)
    }

    /// The smallest idle dedicated region that holds it.
    fn smallest_dedicated(&self, bytes: usize) -> Option<usize> {
        let granules = bytes.div_ceil(GRANULE);
        let length = |n: usize| self.segments[n].free.len();
        self.idle_dedicated().filter(|&n| length(n) >= granules).min_by_key(|&n| length(n))
    }

    /// The same, if at most an eighth longer than the request.
    fn best_dedicated(&self, bytes: usize) -> Option<usize> {
        let best = self.smallest_dedicated(bytes)?;
        let length = |n: usize| self.segments[n].free.len() as u128;
        let granules = bytes.div_ceil(GRANULE) as u128;
        (length(best) * 8 <= granules * 9).then_some(best)
    }

    /// The block that the engine must have handed out.
    fn take(&mut self, n: usize, start: usize, bytes: usize) -> Block {
        let granules = bytes.div_ceil(GRANULE);
        let segment = &mut self.segments[n];
        let offset = start * GRANULE;
        let block = Block { segment: segment.id, offset, bytes: granules * GRANULE };
        assert_eq!(self.engine.address(block), segment.region.base + offset);
        // first_fit found them free, so no two blocks ever overlap.
        segment.free[start..start + granules].fill(false);
        if segment.kind == SegmentKind::Idle {
            segment.kind = class(bytes);
        }
        self.blocks.push((block, false));
        let here = |it: &Block| self.segments.iter().any(|of| of.id == it.segment && of.home == self.home);
        let used: usize = self.blocks.iter().map(|(it, _)| it).filter(|it| here(it)).map(|it| it.bytes).sum();
        let largest = self.largest.entry(self.home).or_default();
        *largest = (*largest).max(used.saturating_sub(self.cached));
        self.count(1, block.bytes as u64);
        block
    }

    fn adopt(&mut self, bytes: usize) {
        let region = Region { base: self.next_base, bytes };
        let new = NewSegment::new(region);
        if bytes < GRANULE {
            assert_eq!(new.map(drop), Err(AdoptError::TooSmall { bytes }));
            return;
        }
        let adopted = self.engine.adopt(new.unwrap().at(self.home));
        // Every other region adjoins the one before.
        self.next_base += bytes + if bytes.is_multiple_of(2) { 0 } else { 1 };
        let id = adopted.unwrap();
        assert!(self.segments.iter().all(|segment| segment.id != id), "an id twice: {id}");
        assert!(self.gone.iter().all(|block| block.segment != id), "an id again: {id}");
        let free = vec![true; bytes / GRANULE];
        let kind = if self.is_longer_than_a_segment(free.len() * GRANULE) {
            SegmentKind::Dedicated
        } else {
            SegmentKind::Idle
        };
        self.segments.push(ModelSegment { id, region, free, kind, home: self.home });
    }

    fn adopt_over(&mut self, segment: Pick, bytes: usize) {
        if !self.segments.is_empty() && bytes >= GRANULE {
            let over = segment.get(&self.segments).region;
            let base =
                if bytes.is_multiple_of(2) { over.base + over.bytes - 1 } else { over.base.saturating_sub(bytes - 1) };
            let new = NewSegment::new(Region { base, bytes }).unwrap();
            let adopted = self.engine.adopt(new);
            assert!(matches!(adopted, Err(AdoptError::Overlaps { .. })), "{adopted:?}");
        }
    }

    fn defer(&mut self, which: Pick) {
        if !self.blocks.is_empty() {
            let which = which.index(self.blocks.len());
            let (block, pending) = &mut self.blocks[which];
            let deferred = self.engine.defer(*block);
            if *pending {
                assert!(matches!(deferred, Err(Misuse::AlreadyPending { .. })), "{deferred:?}");
            } else {
                assert_eq!(deferred, Ok(()));
            }
            *pending = true;
        }
    }

    fn cache(&mut self, which: Pick) {
        if !self.blocks.is_empty() {
            let which = which.index(self.blocks.len());
            let (block, pending) = &mut self.blocks[which];
            let cached = self.engine.cache(*block);
            assert_eq!(cached.is_ok(), *pending, "{cached:?}");
            *pending = false;
        }
    }

    /// Cached blocks serve requests: hits, and bytes that came and went.
    fn reused(&mut self, blocks: usize) {
        let (blocks, bytes) = (blocks as u64, (blocks * GRANULE) as u64);
        self.engine.reused(blocks, bytes);
        let pinned = self.engine.stats().pinned_bytes.current as usize;
        let (few, roomy) = (self.cut.0 > blocks, 2 * self.largest.values().sum::<usize>() <= pinned);
        match self.spreads {
            None if self.cut.1 && few && roomy => self.spreads = Some(true),
            Some(true) if self.cut.1 && (few || !roomy) => self.spreads = Some(false),
            _ => {}
        }
        self.cut = (0, false);
        self.count(blocks, bytes);
    }

    /// Requests that were served.
    fn count(&mut self, blocks: u64, bytes: u64) {
        self.answers[0] += blocks;
        self.handed_out += bytes;
    }

    fn release(&mut self, which: Pick) {
        if !self.blocks.is_empty() {
            let (block, _) = self.blocks.swap_remove(which.index(self.blocks.len()));
            assert_eq!(self.engine.release(block), Ok(()));
            let segment = self.segments.iter_mut().find(|segment| segment.id == block.segment).unwrap();
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
        self.segments.retain(|segment| !expected.contains(&(segment.region, segment.is_dedicated())));
    }

    /// Claims that `block` is a block, unless it is one.
    fn claim_falsely(&mut self, block: Block) {
        if self.blocks.iter().all(|(other, _)| *other != block) {
            let before = self.engine.stats();
            assert!(self.engine.release(block).is_err(), "released {block:?}");
            assert!(self.engine.defer(block).is_err(), "deferred {block:?}");
            assert_eq!(self.engine.stats(), before);
        }
    }
}

/// The kind of segment that serves a request no longer than a segment.
fn class(bytes: usize) -> SegmentKind {
    if bytes < SMALL { SegmentKind::Small } else { SegmentKind::Large }
}

mod homes;
