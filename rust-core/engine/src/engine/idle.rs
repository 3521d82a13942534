//! Which idle regions are unpinned, now or later.
//!
//! A region that is *taken* belongs to the caller, who unpins it. A region that is *let go* serves no
//! request any more, and stays pinned and counted until the caller takes it: so no request waits for
//! the unpin.

use super::{Engine, Of};
use crate::handover::IdleSegment;
use crate::segment::Segment;
use crate::units::SegmentId;

impl Engine {
    /// Removes wholly idle regions of at least `at_least` bytes together, or all with `usize::MAX`:
    /// dedicated ones first, and of each kind the oldest first. The caller unpins and drops them
    /// outside its lock. O(S log S) in the number of segments.
    pub fn take_idle(&mut self, at_least: usize) -> Vec<IdleSegment> {
        let idle = self.arena.take_idle(at_least);
        self.count_taken(&idle);
        idle
    }

    /// Lets wholly idle regions of at least `at_least` bytes together go, the least recently used first; dedicated ones last
    /// or never, and never the working-set region.
    pub(crate) fn let_go_least_used(&mut self, at_least: usize, of: Of) {
        let idle = self.arena.take_least_used(self.phases.working_set(), at_least, of);
        self.leaving.extend(idle);
    }

    /// Regions that were let go, none longer than `longest`, of at least `bytes` bytes together, or as
    /// many as there are.
    pub(crate) fn take_leaving(&mut self, bytes: usize, longest: usize) -> Vec<IdleSegment> {
        let mut taken = 0;
        let mut idle = Vec::new();
        let fits = |it: &IdleSegment| it.region().bytes <= longest;
        while taken < bytes
            && let Some(at) = self.leaving.iter().rposition(fits)
        {
            let segment = self.leaving.swap_remove(at);
            taken += segment.region().bytes;
            idle.push(segment);
        }
        self.count_taken(&idle);
        idle
    }

    /// Regions that were let go and are still pinned.
    pub(crate) fn leaving(&self) -> &[IdleSegment] {
        &self.leaving
    }

    /// Their length together, in bytes.
    pub(crate) fn leaving_bytes(&self) -> usize {
        self.leaving.iter().map(|it| it.region().bytes).sum()
    }

    /// Lets the longest idle region here of at least `from` and fewer than `to` bytes go; false if there is none.
    pub(crate) fn let_go_idle_between(&mut self, from: usize, to: usize) -> bool {
        let longest = self
            .arena
            .iter()
            .filter(|(_, resident)| resident.segment.is_idle() && self.is_here(&resident.segment))
            .map(|(id, resident)| (resident.segment.region().bytes, id))
            .filter(|(bytes, _)| (from..to).contains(bytes))
            .max();
        let idle = longest.map_or_else(Vec::new, |(_, id)| self.arena.take_if_idle(id));
        self.leaving.extend(idle);
        longest.is_some()
    }

    /// Sets a mark in the order in which regions become idle.
    pub(crate) fn mark(&mut self) -> u64 {
        self.arena.mark()
    }

    /// Lets all regions go that have been idle since before a mark, and counts them as returned; their lengths in bytes.
    pub(crate) fn let_go_idle_since_before(&mut self, mark: u64) -> Vec<usize> {
        let idle = self.arena.take_idle_since_before(mark);
        let lengths: Vec<usize> = idle.iter().map(|it| it.region().bytes).collect();
        self.stats.returned_bytes += lengths.iter().sum::<usize>() as u64;
        self.leaving.extend(idle);
        lengths
    }

    /// The region `id`, if it is idle.
    pub(crate) fn take_if_idle(&mut self, id: SegmentId) -> Vec<IdleSegment> {
        let idle = self.arena.take_if_idle(id);
        self.count_taken(&idle);
        idle
    }

    pub(super) fn count_taken(&mut self, idle: &[IdleSegment]) {
        for segment in idle {
            let bytes = segment.region().bytes as u64;
            self.stats.region_unpinned(bytes, segment.is_dedicated());
            self.demands.of_mut(segment.segment.home).pinned -= bytes;
        }
    }

    /// Bytes that [`Self::take_idle`] could take. O(S).
    pub(crate) fn idle_region_bytes(&self) -> usize {
        self.idle_regions().map(|it| it.region().bytes).sum()
    }

    /// Whether there is a wholly idle region here of at least `from` and fewer than `to` bytes. O(S).
    pub(crate) fn has_idle_between(&self, from: usize, to: usize) -> bool {
        let here = self.idle_regions().filter(|it| self.is_here(it));
        let mut lengths = here.map(|it| it.region().bytes);
        lengths.any(|bytes| (from..to).contains(&bytes))
    }

    fn idle_regions(&self) -> impl Iterator<Item = &Segment> {
        let segments = self.arena.iter().map(|(_, resident)| &resident.segment);
        segments.filter(|it| it.is_idle())
    }

    /// Whether it lies at the home whose turn it is.
    fn is_here(&self, segment: &Segment) -> bool {
        segment.home == self.home()
    }
}
