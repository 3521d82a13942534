//! What the engine does about rounds whose sizes differ: gives idle regions back before it has
//! others pinned in their stead.
//!
//! Only exact growth needs it, where regions are as long as the requests that they were pinned
//! for; and only while all that is pinned came so. What was pinned ahead, and what is dedicated to
//! long requests, is there for a reason: with such a region nothing is given back.
//!
//! Invariants: what is given back is idle; with the home that is asked for, no more is pinned than
//! the largest set and a twelfth, unless what stays pinned is more.

use super::{Decision, Engine};
use crate::error::AdoptError;
use crate::handover::{IdleSegment, NewSegment};
use crate::kind::{Class, SegmentKind};
use crate::policy::exact_region;
use crate::rounds::{Rounds, Turn};
use crate::units::{Granules, MAX_REGION, SegmentId};

/// What is pinned, at a lull.
#[derive(Clone, Copy, Debug, Default)]
struct Holdings {
    pinned: u64,
    /// Of that, in regions without a block; and how many these are, without the home.
    idle: u64,
    idle_regions: usize,
    has_home: bool,
    /// A region is as long as a segment, or dedicated.
    has_segments: bool,
}

impl Engine {
    /// The same engine, but where sizes differ from round to round, [`Self::request`] answers
    /// [`Decision::Renew`].
    #[must_use]
    pub fn renewing(self) -> Self {
        Self {
            rounds: Rounds::on(),
            ..self
        }
    }

    /// Whether a request, while the caller caches so many bytes in blocks, comes at a lull: then
    /// [`Self::request`] is to be told, and else the rounds are told here.
    #[inline]
    pub(super) fn is_at_lull(&mut self, bytes: u64, cached: u64) -> bool {
        let used = self.used_bytes().saturating_sub(cached);
        if self.rounds.is_lull(used) {
            return true;
        }
        if self.rounds.notices(used, bytes) {
            self.rounds.tell(used, bytes, 0);
        }
        false
    }

    /// The idle regions that [`Decision::Renew`] is to replace: to be called with that answer,
    /// before anybody else asks the engine. The caller unpins and drops them outside its lock.
    pub fn take_outworn(&mut self) -> Vec<IdleSegment> {
        let home = self.rounds.home();
        let idle = self.arena.take_idle_but(home, usize::MAX);
        self.given_back(&idle);
        idle
    }

    /// The same, but they stay pinned, and counted, until [`Self::take_leaving`].
    pub(crate) fn let_go_outworn(&mut self) {
        let home = self.rounds.home();
        let idle = self.arena.take_idle_but(home, usize::MAX);
        self.leaving.extend(idle);
    }

    /// As [`Self::adopt`], for the region that [`Decision::Renew`] asked for: a segment, however
    /// long.
    ///
    /// # Errors
    ///
    /// As [`Self::adopt`].
    pub fn adopt_home(&mut self, segment: NewSegment) -> Result<SegmentId, AdoptError> {
        let region = segment.0.region();
        let id = self.arena.adopt(segment, false)?;
        self.stats.region_adopted(region.bytes as u64, false);
        self.rounds.settle(id);
        Ok(id)
    }

    /// The region that [`Decision::Renew`] asked for could not be had.
    pub fn home_refused(&mut self) {
        self.rounds.refused();
    }

    /// Whether sizes were seen to differ from round to round.
    pub(crate) fn is_learning(&self) -> bool {
        self.rounds.differ()
    }

    /// Whether rounds are noticed at all.
    pub(crate) fn is_renewing(&self) -> bool {
        self.rounds.are_on()
    }

    /// A request that the rounds notice; an answer, where that is not the usual one.
    #[cold]
    pub(super) fn at_turn(&mut self, granules: Granules, class: Class) -> Option<Decision> {
        let bytes = granules.bytes() as u64;
        let most = self.stats.largest_set;
        if !self.rounds.tell(self.used_bytes(), bytes, most) {
            return None;
        }
        let held = self.holdings();
        if held.has_segments {
            return None;
        }
        let differ = self.rounds.outgrown_by(held.pinned)
            || self.is_ill_fitting(granules, class, held.idle_regions);
        if !self.rounds.differ() && !differ {
            return None;
        }
        // What stays is most of it: too little would be gained.
        if held.idle < held.pinned / 2 {
            return None;
        }
        let pinned = if held.idle_regions > 0 {
            held.pinned
        } else {
            0
        };
        match self.rounds.turn(held.has_home, pinned) {
            Turn::Stay => None,
            Turn::GiveBack if held.idle_regions == 0 => None,
            Turn::GiveBack => Some(Decision::Renew { bytes: 0 }),
            Turn::Renew { pinned } => {
                let least = exact_region(granules.bytes()).unwrap_or(MAX_REGION);
                let stays = held.pinned - held.idle;
                let home = usize::try_from(pinned.saturating_sub(stays)).unwrap_or(MAX_REGION);
                let home = exact_region(home).unwrap_or(MAX_REGION);
                self.stats.misses += 1;
                Some(Decision::Renew {
                    bytes: home.max(least),
                })
            }
        }
    }

    /// Bytes in blocks.
    #[inline]
    pub(super) fn used_bytes(&self) -> u64 {
        self.stats.active_bytes.current
    }

    /// Whether the request, at a lull, finds regions of other sizes only.
    fn is_ill_fitting(&self, granules: Granules, class: Class, idle_regions: usize) -> bool {
        match self.arena.serving(granules, class) {
            Some((SegmentKind::Idle, bytes)) => bytes != granules.bytes(),
            Some(_) => false,
            None => idle_regions > 0,
        }
    }

    fn holdings(&self) -> Holdings {
        let home = self.rounds.home();
        let mut held = Holdings::default();
        for (id, resident) in self.arena.iter() {
            let segment = &resident.segment;
            let (bytes, is_home) = (segment.region().bytes as u64, Some(id) == home);
            held.pinned += bytes;
            held.has_home |= is_home;
            held.has_segments |= !is_home && self.policy.is_whole(segment.granules());
            if segment.is_idle() {
                held.idle += bytes;
                held.idle_regions += usize::from(!is_home);
            }
        }
        held
    }
}
