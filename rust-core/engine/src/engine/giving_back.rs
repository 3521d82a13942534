//! Which idle regions the engine gives back, and which it only lets go.
//!
//! What is given back is the caller's at once, to unpin. What is let go serves nothing any more, but is
//! still pinned and counted until the caller takes it: so that a request need not wait for that.

use super::{Engine, Of};
use crate::handover::IdleSegment;
use crate::units::SegmentId;

impl Engine {
    /// Removes wholly idle regions, dedicated ones first and the oldest first of each kind, until
    /// together they have at least `at_least` bytes; all of them with `usize::MAX`. The caller
    /// unpins and drops them outside its lock. O(S log S) in the number of segments.
    pub fn take_idle(&mut self, at_least: usize) -> Vec<IdleSegment> {
        let idle = self.arena.take_idle(at_least);
        self.given_back(&idle);
        idle
    }

    /// The same, but those first that have been idle for the longest time, and dedicated ones last, if
    /// at all; never the region that serves all rounds.
    pub(crate) fn take_least_used(&mut self, at_least: usize, of: Of) -> Vec<IdleSegment> {
        let idle = self.arena.take_least_used(self.rounds.home(), at_least, of);
        self.given_back(&idle);
        idle
    }

    /// As [`Self::take_least_used`], but they stay pinned, and counted, until
    /// [`Self::take_leaving`].
    pub(crate) fn let_go_least_used(&mut self, at_least: usize, of: Of) {
        let idle = self.arena.take_least_used(self.rounds.home(), at_least, of);
        self.leaving.extend(idle);
    }

    /// Regions that were let go, of at least `bytes` bytes together where there is so much, and none
    /// longer than `longest`.
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
        self.given_back(&idle);
        idle
    }

    /// What was let go and is still pinned.
    pub(crate) fn leaving(&self) -> &[IdleSegment] {
        &self.leaving
    }

    /// The same in bytes.
    pub(crate) fn leaving_bytes(&self) -> usize {
        self.leaving.iter().map(|it| it.region().bytes).sum()
    }

    /// One idle region of at least `from` and fewer than `to` bytes: the longest.
    pub(crate) fn take_idle_between(&mut self, from: usize, to: usize) -> Vec<IdleSegment> {
        let longest = self
            .arena
            .iter()
            .filter(|(_, resident)| resident.segment.is_idle())
            .map(|(id, resident)| (resident.segment.region().bytes, id))
            .filter(|(bytes, _)| (from..to).contains(bytes))
            .max();
        longest.map_or_else(Vec::new, |(_, id)| self.take_if_idle(id))
    }

    /// That one, if it is idle.
    pub(crate) fn take_if_idle(&mut self, id: SegmentId) -> Vec<IdleSegment> {
        let idle = self.arena.take_if_idle(id);
        self.given_back(&idle);
        idle
    }

    pub(super) fn given_back(&mut self, idle: &[IdleSegment]) {
        for segment in idle {
            let bytes = segment.region().bytes as u64;
            self.stats.region_given_back(bytes, segment.is_dedicated());
        }
    }

    /// What [`Self::take_idle`] could give back, in bytes. O(S).
    pub(crate) fn idle_region_bytes(&self) -> usize {
        self.idle_regions().sum()
    }

    /// Whether a wholly idle region has at least `from` and fewer than `to` bytes. O(S).
    pub(crate) fn has_idle_between(&self, from: usize, to: usize) -> bool {
        self.idle_regions().any(|bytes| (from..to).contains(&bytes))
    }

    fn idle_regions(&self) -> impl Iterator<Item = usize> {
        self.arena
            .iter()
            .filter(|(_, resident)| resident.segment.is_idle())
            .map(|(_, resident)| resident.segment.region().bytes)
    }
}
