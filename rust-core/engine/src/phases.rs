//! Whether a program works in phases of different sizes. Then regions that were pinned for one phase
//! do not fit the next.
//!
//! Memory in use rises and falls with each phase. A phase ends at its *low-water mark*: a request that
//! comes while at most an eighth of the largest set so far is in use, after more than half of it was.
//! The first phases teach how large a set gets; meanwhile most of what a phase pins is unpinned at the
//! next low-water mark. Then one region of the largest set and a twelfth, the *working-set region*,
//! serves all phases. It is renewed only for a set that it does not hold, and so at most once for each
//! twelfth by which sets grow. While it is being pinned, other threads miss and pin regions of their
//! own; these are unpinned at a later low-water mark, once for each working-set region. So pins come
//! to an end.
//!
//! Knows byte counts and the id of the working-set region; the engine knows which regions are idle, and
//! hands them out to be unpinned. Costs a request two comparisons.

use crate::units::SegmentId;

/// The largest set is learnt from so many phases, including the one in which sizes were first seen to
/// differ. More phases would be safer and cost more pins: with the sizes of the workload
/// `variable-lengths`, in one of eight programs of forty phases a later set is more than a twelfth
/// above the largest of these.
const LEARNED: u32 = 10;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Phases {
    /// Whether phases are detected: decided when it is made.
    on: bool,
    /// A request with fewer bytes than this in use is at low water; 0 until a phase is under way.
    low: u64,
    /// With more bytes in use than this a phase is under way, or the set is the largest so far.
    high: u64,
    /// The most bytes that were in use at once.
    largest: u64,
    /// Phases since sizes were seen to differ, up to [`LEARNED`]; 0 while they were not.
    learned: u32,
    /// The region that serves all phases, and the largest set that it was pinned for.
    working_set: Option<SegmentId>,
    holds: u64,
    /// Other threads may have pinned regions while it was being pinned: these are to be unpinned.
    crowded: bool,
    /// A working-set region was asked for and is not there yet: no other is asked for.
    awaited: bool,
}

/// What to do at a low-water mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the working-set region holds every set so far, and hardly more is pinned.
    Keep,
    /// Unpin what is idle, except the working-set region: the next phase pins anew.
    UnpinIdle,
    /// Unpin what is idle, the working-set region included, and pin a new one, so that `pinned` bytes
    /// are pinned in all.
    Renew { pinned: u64 },
}

impl Phases {
    /// Detects nothing.
    pub(crate) const fn off() -> Self {
        Self {
            on: false,
            low: 0,
            high: u64::MAX,
            largest: 0,
            learned: 0,
            working_set: None,
            holds: 0,
            crowded: false,
            awaited: false,
        }
    }

    /// Detects phases, and has seen none.
    pub(crate) const fn on() -> Self {
        Self { on: true, high: 0, ..Self::off() }
    }

    /// Whether [`Self::tell`] must hear of a request of `bytes` while `used` bytes are in use.
    #[inline]
    pub(crate) fn notices(&self, used: u64, bytes: u64) -> bool {
        self.is_low_water(used) || used + bytes > self.high
    }

    /// Whether a request with `used` bytes in use is at low water.
    #[inline]
    pub(crate) fn is_low_water(&self, used: u64) -> bool {
        used < self.low
    }

    /// Notes a request, and says whether it is at low water.
    /// `most` bytes were in use at once before. Larger than `used` and `bytes` where several requests
    /// pin at once: these are not in use while they ask.
    pub(crate) fn tell(&mut self, used: u64, bytes: u64, most: u64) -> bool {
        let low_water = self.is_low_water(used);
        let set = used + bytes;
        self.largest = self.largest.max(set).max(most);
        (self.low, self.high) =
            if set > self.largest / 2 { (self.largest / 8 + 1, self.largest) } else { (0, self.largest / 2) };
        low_water
    }

    /// Whether more is `pinned` than the largest set and a twentieth.
    pub(crate) fn outgrown_by(&self, pinned: u64) -> bool {
        pinned > self.largest + self.largest / 20
    }

    /// Whether sizes were seen to differ.
    pub(crate) fn differ(&self) -> bool {
        self.learned > 0
    }

    /// What to do at a low-water mark, where sizes differ. `has_working_set` says whether the
    /// working-set region is still pinned; `pinned` is how much is, and 0 where nothing but that
    /// region is idle.
    pub(crate) fn next(&mut self, has_working_set: bool, pinned: u64) -> Next {
        self.learned = (self.learned + 1).min(LEARNED);
        if self.learned < LEARNED {
            // Two fifths: mostly the small requests of a phase, so that few pins are left. Requests
            // that come when it is full leave little of it unused.
            return if has_working_set { Next::UnpinIdle } else { self.renewed(0, self.largest / 5 * 2) };
        }
        if has_working_set && self.largest <= self.holds {
            // What lies beside it was pinned because it was not there yet. What is pinned later is
            // needed, and would come again.
            if pinned <= self.holds || !std::mem::take(&mut self.crowded) {
                return Next::Keep;
            }
            return Next::UnpinIdle;
        }
        let roomy = self.largest + self.largest / 12;
        self.renewed(roomy, roomy)
    }

    fn renewed(&mut self, holds: u64, pinned: u64) -> Next {
        if std::mem::replace(&mut self.awaited, true) {
            return Next::Keep;
        }
        self.holds = holds;
        self.working_set = None;
        Next::Renew { pinned }
    }

    /// The working-set region is pinned.
    pub(crate) fn adopted(&mut self, working_set: SegmentId) {
        self.working_set = Some(working_set);
        self.awaited = false;
        self.crowded = true;
    }

    /// Detects nothing from now on: the working-set region could not be pinned, and unpinning memory for another would
    /// only cost time; or low water is that of several homes.
    pub(crate) fn stop(&mut self) {
        *self = Self { on: self.on, working_set: self.working_set, ..Self::off() };
    }

    /// Whether there may be working-set regions.
    pub(crate) fn are_on(&self) -> bool {
        self.on
    }

    /// The working-set region that was adopted last; it may be unpinned by now.
    pub(crate) fn working_set(&self) -> Option<SegmentId> {
        self.working_set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(phases: &mut Phases, used: u64, bytes: u64) -> Option<bool> {
        phases.notices(used, bytes).then(|| phases.tell(used, bytes, 0))
    }

    #[test]
    fn low_water_is_little_in_use_after_much() {
        let mut phases = Phases::on();
        for used in (0..800).step_by(100) {
            assert_eq!(noted(&mut phases, used, 100), Some(false), "{used}: a record");
        }
        assert_eq!(noted(&mut phases, 500, 100), None);
        assert_eq!(noted(&mut phases, 101, 100), None);
        assert_eq!(noted(&mut phases, 100, 100), Some(true));
        assert_eq!(noted(&mut phases, 0, 100), None, "once a phase");
        assert_eq!(noted(&mut phases, 300, 100), None, "not yet a phase");
        assert_eq!(noted(&mut phases, 301, 100), Some(false), "now it is");
        assert_eq!(noted(&mut phases, 99, 1), Some(true));
    }

    #[test]
    fn a_request_alone_can_be_a_round() {
        let mut phases = Phases::on();
        let low: Vec<_> = (0..4).map(|_| noted(&mut phases, 0, 100)).collect();
        assert_eq!(low, [Some(false), Some(true), Some(true), Some(true)]);
    }

    #[test]
    fn off_is_off() {
        let phases = Phases::off();
        assert!(!phases.notices(0, 1) && !phases.notices(1 << 50, 1 << 40));
    }

    #[test]
    fn once_sets_are_learned_the_working_set_stays_until_a_set_does_not_fit() {
        let mut phases = Phases::on();
        let working_set = SegmentId::new(0, 0);
        phases.tell(0, 1200, 0);
        assert_eq!(phases.next(false, 0), Next::Renew { pinned: 480 });
        phases.adopted(working_set);
        for _ in 2..LEARNED {
            assert_eq!(phases.next(true, 0), Next::UnpinIdle);
        }
        assert_eq!(phases.next(true, 0), Next::Renew { pinned: 1300 });
        phases.adopted(working_set);
        phases.tell(0, 1300, 0);
        assert_eq!(phases.next(true, 0), Next::Keep);
        assert_eq!(phases.next(false, 0), Next::Renew { pinned: 1408 }, "after a clear");
        phases.adopted(working_set);
        phases.tell(0, 1409, 0);
        assert_eq!(phases.next(true, 0), Next::Renew { pinned: 1526 });
    }

    #[test]
    fn what_others_pinned_while_the_working_set_came_goes_once() {
        let mut phases = Phases::on();
        phases.tell(0, 1200, 0);
        for _ in 0..LEARNED {
            phases.next(true, 0);
        }
        phases.adopted(SegmentId::new(0, 0));
        assert_eq!(phases.next(true, 1300), Next::Keep, "nothing is beside it");
        assert_eq!(phases.next(true, 1900), Next::UnpinIdle);
        assert_eq!(phases.next(true, 1900), Next::Keep, "it would come again");
    }

    #[test]
    fn a_working_set_that_cannot_be_had_is_not_asked_for_again() {
        let mut phases = Phases::on();
        phases.tell(0, 1000, 0);
        assert!(matches!(phases.next(false, 0), Next::Renew { .. }));
        assert_eq!(phases.next(false, 0), Next::Keep, "it may still come");
        assert!(phases.notices(0, 1 << 40));
        phases.stop();
        assert!(!phases.notices(0, 1 << 40));
    }
}
