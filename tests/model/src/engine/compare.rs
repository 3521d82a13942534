//! Compares everything that callers can see of the engine with the model.

use super::model::{Model, ModelSegment};
use pinbuddy_core::{BlockView, GRANULE, SegmentView};

impl Model {
    /// Asserts that the engine agrees with the model.
    pub(crate) fn compare(&self) {
        let stats = self.engine.stats();
        let sum = |pending: bool| {
            let of_state = self.blocks.iter().filter(|(_, state)| *state == pending);
            let bytes: usize = of_state.clone().map(|(block, _)| block.bytes).sum();
            (bytes as u64, of_state.count() as u64)
        };
        assert_eq!(
            (stats.active_bytes.current, stats.active_blocks.current),
            (sum(false).0 + sum(true).0, sum(false).1 + sum(true).1)
        );
        assert_eq!((stats.pending_bytes.current, stats.pending_blocks.current), sum(true));
        let pinned: usize = self.segments.iter().map(|segment| segment.region.bytes).sum();
        assert_eq!(stats.pinned_bytes.current, pinned as u64);
        let idle = pinned as u64 - sum(false).0 - sum(true).0;
        assert_eq!(stats.idle_bytes, idle);
        assert_eq!([stats.hits, stats.misses, stats.pass_through], self.answers);
        // A caller that caches blocks has the totals of one that does not, and peaks of no more than was pinned.
        assert_eq!((stats.active_blocks.allocated, stats.active_bytes.allocated), (self.answers[0], self.handed_out));
        assert!(stats.active_bytes.peak <= stats.pinned_bytes.peak);
        let active = [stats.active_blocks, stats.active_bytes];
        for gauge in [stats.pinned_bytes, stats.pending_bytes].into_iter().chain(active) {
            assert_eq!(gauge.current, gauge.allocated - gauge.freed);
            assert!(gauge.peak >= gauge.current);
        }
        let largest = self.segments.iter().map(longest).max().unwrap_or(0);
        assert_eq!(stats.largest_free_run_bytes, largest as u64);
        let dedicated = self.segments.iter().filter(|it| it.is_dedicated());
        let dedicated: usize = dedicated.map(|segment| segment.region.bytes).sum();
        assert_eq!(stats.dedicated_bytes, dedicated as u64);
        assert_eq!(stats.segments.current, self.segments.len() as u64);
        assert_eq!(self.engine.segments().count(), self.segments.len());
        for view in self.engine.segments() {
            self.compare_segment(&view);
        }
        for gone in &self.gone {
            let known = self.segments.iter().any(|it| it.id == gone.segment);
            assert_eq!(self.engine.blocks(gone.segment).is_some(), known);
        }
    }

    fn compare_segment(&self, view: &SegmentView) {
        let mut all = self.segments.iter();
        let segment = all.find(|segment| segment.id == view.id).unwrap();
        assert_eq!((view.base, view.bytes), (segment.region.base, segment.region.bytes));
        assert_eq!(view.free_bytes, segment.free_granules() * GRANULE);
        assert_eq!(view.longest_free_run_bytes, longest(segment));
        assert_eq!((view.kind, view.home), (segment.kind, segment.home));
        let of_segment = self.blocks.iter().filter(|it| it.0.segment == view.id);
        let mut blocks: Vec<BlockView> = of_segment
            .map(|&(block, pending)| BlockView { offset: block.offset, bytes: block.bytes, pending })
            .collect();
        blocks.sort_by_key(|block| block.offset);
        assert_eq!(view.live_blocks + view.pending_blocks, blocks.len());
        assert!(self.engine.blocks(view.id).unwrap().eq(blocks));
    }
}

/// The bytes of a segment's longest free run.
fn longest(segment: &ModelSegment) -> usize {
    if segment.is_dedicated() && !segment.is_idle() {
        return 0; // its rest serves nothing
    }
    let runs = segment.free.split(|free| !free);
    runs.map(<[bool]>::len).max().unwrap_or(0) * GRANULE
}
