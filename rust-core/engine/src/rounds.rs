//! Whether a program works in rounds, and whether their sizes differ: then regions pinned for one
//! round do not fit the next.
//!
//! A round ends in a *lull*: a request that comes while at most an eighth of the largest set so
//! far is in use, after more than half of it was. The sets of the first rounds say how large one
//! gets. Meanwhile most of what a round pins is given back at the next lull; then one region of the
//! largest set and a twelfth more, the *home*, serves all rounds. It is renewed only for a set that
//! it does not hold, and so at most once for each twelfth by which sets grow. While it is pinned other
//! threads find no room and have regions of their own pinned: these go at a later lull, once for each
//! home. So pins come to an end.
//!
//! Knows bytes and the home's name; what is idle, and what is given back, is the engine's affair.
//! Costs a request two comparisons.

use crate::units::SegmentId;

/// In so many rounds the largest set is learned, the one in which sizes were first seen to differ
/// included. More would be safer and cost more pins: with the sizes of the workload
/// `variable-lengths`, in one of eight programs of forty rounds a set comes that is more than a
/// twelfth above the largest of these.
const LEARNED: u32 = 10;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Whether rounds are to be noticed, until a home is refused.
    on: bool,
    /// With fewer bytes than this in use a request is a lull; 0 until a round is under way.
    low: u64,
    /// With more bytes than this a round is under way, or there was no larger set so far.
    high: u64,
    /// The most bytes that were in use at once.
    largest: u64,
    /// Rounds since sizes were seen to differ, up to [`LEARNED`]; 0 while they were not.
    learned: u32,
    /// The region that serves all rounds, and the largest set for which it was pinned.
    home: Option<SegmentId>,
    holds: u64,
    /// While it was pinned others may have found no room: what lies beside it is to be given back.
    crowded: bool,
    /// A home was asked for and has not come yet: until then nobody asks for another.
    awaited: bool,
}

/// What a lull asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing: the home holds every set so far, and hardly more is pinned.
    Stay,
    /// Giving back what is idle but for the home: the next round pins anew.
    GiveBack,
    /// The same, the home too, for one such that so many bytes are pinned in all.
    Renew { pinned: u64 },
}

impl Rounds {
    /// Notices nothing.
    pub(crate) const fn off() -> Self {
        Self {
            on: false,
            low: 0,
            high: u64::MAX,
            largest: 0,
            learned: 0,
            home: None,
            holds: 0,
            crowded: false,
            awaited: false,
        }
    }

    /// Nothing noticed so far.
    pub(crate) const fn on() -> Self {
        Self {
            on: true,
            high: 0,
            ..Self::off()
        }
    }

    /// Whether a request of `bytes`, beside `used` bytes in use, is to be told to [`Self::tell`].
    #[inline]
    pub(crate) fn notices(&self, used: u64, bytes: u64) -> bool {
        self.is_lull(used) || used + bytes > self.high
    }

    /// Whether a request beside `used` bytes in use is a lull.
    #[inline]
    pub(crate) fn is_lull(&self, used: u64) -> bool {
        used < self.low
    }

    /// Notes a request; whether it is a lull.
    /// `most` were in use at once before: requests that pin are not in use while they ask.
    pub(crate) fn tell(&mut self, used: u64, bytes: u64, most: u64) -> bool {
        let lull = self.is_lull(used);
        let set = used + bytes;
        self.largest = self.largest.max(set).max(most);
        (self.low, self.high) = if set > self.largest / 2 {
            (self.largest / 8 + 1, self.largest)
        } else {
            (0, self.largest / 2)
        };
        lull
    }

    /// Whether so much is `pinned` that the largest set does not account for it.
    pub(crate) fn outgrown_by(&self, pinned: u64) -> bool {
        pinned > self.largest + self.largest / 20
    }

    /// Whether sizes were seen to differ.
    pub(crate) fn differ(&self) -> bool {
        self.learned > 0
    }

    /// At a lull of rounds that differ: what is to be done, where the home is there or is not, and so
    /// much is `pinned` of which something could be given back.
    pub(crate) fn turn(&mut self, has_home: bool, pinned: u64) -> Turn {
        self.learned = (self.learned + 1).min(LEARNED);
        if self.learned < LEARNED {
            // Two fifths: the small requests of a round, most often, so that few pins are left,
            // and those that come when it is full leave little of it unused.
            return if has_home {
                Turn::GiveBack
            } else {
                self.renewed(0, self.largest / 5 * 2)
            };
        }
        if has_home && self.largest <= self.holds {
            // What a round does not find in the home, but for that, would come again.
            if pinned <= self.holds || !std::mem::take(&mut self.crowded) {
                return Turn::Stay;
            }
            return Turn::GiveBack;
        }
        let roomy = self.largest + self.largest / 12;
        self.renewed(roomy, roomy)
    }

    fn renewed(&mut self, holds: u64, pinned: u64) -> Turn {
        if std::mem::replace(&mut self.awaited, true) {
            return Turn::Stay;
        }
        self.holds = holds;
        self.home = None;
        Turn::Renew { pinned }
    }

    /// The home has come.
    pub(crate) fn settle(&mut self, home: SegmentId) {
        self.home = Some(home);
        self.awaited = false;
        self.crowded = true;
    }

    /// The home could not be had: giving memory back for another would only cost time.
    pub(crate) fn refused(&mut self) {
        *self = Self {
            on: self.on,
            home: self.home,
            ..Self::off()
        };
    }

    /// Whether there may be homes.
    pub(crate) fn are_on(&self) -> bool {
        self.on
    }

    /// The home that was adopted last; its name may name nothing any more.
    pub(crate) fn home(&self) -> Option<SegmentId> {
        self.home
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(rounds: &mut Rounds, used: u64, bytes: u64) -> Option<bool> {
        rounds
            .notices(used, bytes)
            .then(|| rounds.tell(used, bytes, 0))
    }

    #[test]
    fn a_lull_is_little_in_use_after_much() {
        let mut rounds = Rounds::on();
        for used in (0..800).step_by(100) {
            assert_eq!(
                noted(&mut rounds, used, 100),
                Some(false),
                "{used}: a record"
            );
        }
        assert_eq!(noted(&mut rounds, 500, 100), None);
        assert_eq!(noted(&mut rounds, 101, 100), None);
        assert_eq!(noted(&mut rounds, 100, 100), Some(true));
        assert_eq!(noted(&mut rounds, 0, 100), None, "once a round");
        assert_eq!(noted(&mut rounds, 300, 100), None, "not yet a round");
        assert_eq!(noted(&mut rounds, 301, 100), Some(false), "now it is");
        assert_eq!(noted(&mut rounds, 99, 1), Some(true));
    }

    #[test]
    fn a_request_alone_can_be_a_round() {
        let mut rounds = Rounds::on();
        let lulls: Vec<_> = (0..4).map(|_| noted(&mut rounds, 0, 100)).collect();
        assert_eq!(lulls, [Some(false), Some(true), Some(true), Some(true)]);
    }

    #[test]
    fn off_is_off() {
        let rounds = Rounds::off();
        assert!(!rounds.notices(0, 1) && !rounds.notices(1 << 50, 1 << 40));
    }

    #[test]
    fn once_sets_are_learned_the_home_stays_until_a_set_does_not_fit() {
        let mut rounds = Rounds::on();
        let home = SegmentId::new(0, 0);
        rounds.tell(0, 1200, 0);
        assert_eq!(rounds.turn(false, 0), Turn::Renew { pinned: 480 });
        rounds.settle(home);
        for _ in 2..LEARNED {
            assert_eq!(rounds.turn(true, 0), Turn::GiveBack);
        }
        assert_eq!(rounds.turn(true, 0), Turn::Renew { pinned: 1300 });
        rounds.settle(home);
        rounds.tell(0, 1300, 0);
        assert_eq!(rounds.turn(true, 0), Turn::Stay);
        assert_eq!(
            rounds.turn(false, 0),
            Turn::Renew { pinned: 1408 },
            "after a clear"
        );
        rounds.settle(home);
        rounds.tell(0, 1409, 0);
        assert_eq!(rounds.turn(true, 0), Turn::Renew { pinned: 1526 });
    }

    #[test]
    fn what_others_pinned_while_the_home_came_goes_once() {
        let mut rounds = Rounds::on();
        rounds.tell(0, 1200, 0);
        for _ in 0..LEARNED {
            rounds.turn(true, 0);
        }
        rounds.settle(SegmentId::new(0, 0));
        assert_eq!(rounds.turn(true, 1300), Turn::Stay, "nothing is beside it");
        assert_eq!(rounds.turn(true, 1900), Turn::GiveBack);
        assert_eq!(rounds.turn(true, 1900), Turn::Stay, "it would come again");
    }

    #[test]
    fn a_home_that_cannot_be_had_is_not_asked_for_again() {
        let mut rounds = Rounds::on();
        rounds.tell(0, 1000, 0);
        assert!(matches!(rounds.turn(false, 0), Turn::Renew { .. }));
        assert_eq!(rounds.turn(false, 0), Turn::Stay, "it may still come");
        assert!(rounds.notices(0, 1 << 40));
        rounds.refused();
        assert!(!rounds.notices(0, 1 << 40));
    }
}
