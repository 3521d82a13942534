//! Phases of different sizes: idle regions that no longer fit are unpinned, and a working-set region is
//! pinned instead.
//!
//! Only for exact growth, where a region is as long as the request that it was pinned for, and only
//! while all regions were pinned that way. If any was pinned ahead or is dedicated to long requests,
//! nothing is unpinned here.
//!
//! Invariants: only idle regions are unpinned; with the working-set region, no more is pinned than the
//! largest set and a twelfth, unless the regions in use are already more.

use super::{Decision, Engine};
use crate::error::AdoptError;
use crate::handover::{IdleSegment, NewSegment};
use crate::kind::{Class, SegmentKind};
use crate::phases::{Next, Phases};
use crate::policy::exact_region;
use crate::units::{Granules, MAX_REGION, SegmentId};

/// What is pinned at a low-water mark, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Holdings {
    pinned: u64,
    /// Bytes in regions without a block, and the number of those except the working-set region.
    idle: u64,
    idle_regions: usize,
    has_working_set: bool,
    /// There is a region as long as a segment, or dedicated.
    has_segments: bool,
}

impl Engine {
    /// The same engine, whose [`Self::request`] answers [`Decision::Renew`] where sizes differ from
    /// phase to phase.
    #[must_use]
    pub fn renewing(self) -> Self {
        Self { phases: Phases::on(), ..self }
    }

    /// The same engine, which detects no phases: what they would teach is known.
    #[must_use]
    pub(crate) fn without_phases(self) -> Self {
        Self { phases: Phases::off(), ..self }
    }

    /// Whether a request of `bytes` comes at low water, while the caller has `cached` bytes in its
    /// caches. If it does not, it is noted here; if it does, [`Self::request`] has to see it.
    #[inline]
    pub(super) fn is_at_low_water(&mut self, bytes: u64, cached: u64) -> bool {
        let used = self.used_bytes().saturating_sub(cached);
        if self.phases.is_low_water(used) {
            return true;
        }
        if self.phases.notices(used, bytes) {
            self.phases.tell(used, bytes, 0);
        }
        false
    }

    /// The idle regions that [`Decision::Renew`] replaces. Called for that answer, before any other
    /// request. The caller unpins and drops them outside its lock.
    pub fn take_stale(&mut self) -> Vec<IdleSegment> {
        let working_set = self.phases.working_set();
        let idle = self.arena.take_idle_but(working_set, usize::MAX);
        self.count_taken(&idle);
        idle
    }

    /// The same regions, which stay pinned, and counted, until [`Self::take_leaving`].
    pub(crate) fn let_go_stale(&mut self) {
        let working_set = self.phases.working_set();
        let idle = self.arena.take_idle_but(working_set, usize::MAX);
        self.leaving.extend(idle);
    }

    /// [`Self::adopt`] for the region that [`Decision::Renew`] asked for: a segment of any length.
    ///
    /// # Errors
    ///
    /// As [`Self::adopt`].
    pub fn adopt_working_set(&mut self, segment: NewSegment) -> Result<SegmentId, AdoptError> {
        let (region, home) = (segment.0.region(), segment.0.home);
        let id = self.arena.adopt(segment, false)?;
        self.stats.region_adopted(region.bytes as u64, false);
        self.knows(home);
        self.demands.of_mut(home).pinned += region.bytes as u64;
        self.phases.adopted(id);
        Ok(id)
    }

    /// The region that [`Decision::Renew`] asked for could not be pinned.
    pub fn working_set_refused(&mut self) {
        self.phases.stop();
    }

    /// Whether sizes were seen to differ from phase to phase.
    pub(crate) fn is_learning(&self) -> bool {
        self.phases.differ()
    }

    /// Whether phases are detected at all.
    pub(crate) fn is_renewing(&self) -> bool {
        self.phases.are_on()
    }

    /// Notes a request that [`Phases::notices`]; the answer, unless it is the usual one.
    #[cold]
    pub(super) fn at_phase_end(&mut self, granules: Granules, class: Class) -> Option<Decision> {
        let bytes = granules.bytes() as u64;
        let most = self.largest_set() as u64;
        if !self.phases.tell(self.used_bytes(), bytes, most) {
            return None;
        }
        let held = self.holdings();
        if held.has_segments {
            return None;
        }
        let differ = self.phases.outgrown_by(held.pinned) || self.is_ill_fitting(granules, class, held.idle_regions);
        if !self.phases.differ() && !differ {
            return None;
        }
        // Most of it is in use: unpinning the rest would gain too little.
        if held.idle < held.pinned / 2 {
            return None;
        }
        let pinned = if held.idle_regions > 0 { held.pinned } else { 0 };
        match self.phases.next(held.has_working_set, pinned) {
            Next::Keep => None,
            Next::UnpinIdle if held.idle_regions == 0 => None,
            Next::UnpinIdle => Some(Decision::Renew { bytes: 0 }),
            Next::Renew { pinned } => {
                let least = exact_region(granules.bytes()).unwrap_or(MAX_REGION);
                let stays = held.pinned - held.idle;
                let working_set = usize::try_from(pinned.saturating_sub(stays)).unwrap_or(MAX_REGION);
                let working_set = exact_region(working_set).unwrap_or(MAX_REGION);
                self.stats.misses += 1;
                Some(Decision::Renew { bytes: working_set.max(least) })
            }
        }
    }

    /// Bytes in blocks, live or pending.
    #[inline]
    pub(super) fn used_bytes(&self) -> u64 {
        self.stats.active_bytes.current
    }

    /// Whether a request at low water finds only regions of other sizes: none that is at most a sixty-fourth longer (regions
    /// are rounded up to less, so that sizes which differ by a few bytes share them).
    fn is_ill_fitting(&self, granules: Granules, class: Class, idle_regions: usize) -> bool {
        match self.arena.serving(granules, class) {
            Some((SegmentKind::Idle, bytes)) => bytes - granules.bytes() > granules.bytes() / 64,
            Some(_) => false,
            None => idle_regions > 0,
        }
    }

    fn holdings(&self) -> Holdings {
        let working_set = self.phases.working_set();
        let mut held = Holdings::default();
        for (id, resident) in self.arena.iter() {
            let segment = &resident.segment;
            let (bytes, is_working_set) = (segment.region().bytes as u64, Some(id) == working_set);
            held.pinned += bytes;
            held.has_working_set |= is_working_set;
            held.has_segments |= !is_working_set && self.policy.is_whole(segment.granules());
            if segment.is_idle() {
                held.idle += bytes;
                held.idle_regions += usize::from(!is_working_set);
            }
        }
        held
    }
}
