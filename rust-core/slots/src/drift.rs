//! How far a lane has gone from its sequence: how often it lost its place, and whether the plan fits it any more.
//!
//! Counts only while the lane is not sure of its place, so that planned requests cost nothing. Knows no sizes.

/// A planned request outweighs so many that are not planned.
const PLANNED: u32 = 8;

/// A lane is given up after so many requests that are not planned, at least; and after so many times its sequence.
const FEWEST: u32 = 4096;
const TIMES: u32 = 4;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    /// Requests that were not planned since the lane was sure of its place, less those that were.
    unplanned: u32,
    /// With so many of them the lane is given up.
    most: u32,
    given_up: bool,
    lost: u64,
    times_given_up: u64,
    /// The most edits of a doubt.
    edits: u8,
    /// Another program's, for good.
    is_others: bool,
}

impl Drift {
    /// Of a sequence of so many steps that comes again and again; one that ends does not drift.
    pub(crate) fn new(steps: usize, comes_again: bool) -> Self {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let most = match comes_again {
            true => steps.saturating_mul(TIMES).max(FEWEST),
            false => u32::MAX,
        };
        Self { unplanned: 0, most, given_up: false, lost: 0, times_given_up: 0, edits: 0, is_others: false }
    }

    /// A request while the lane was not sure of its place.
    pub(crate) fn saw(&mut self, is_planned: bool) {
        self.unplanned = match is_planned {
            true => self.unplanned.saturating_sub(PLANNED),
            false => self.unplanned.saturating_add(1),
        };
        if self.unplanned >= self.most && self.most != u32::MAX && !self.given_up {
            self.given_up = true;
            self.times_given_up += 1;
        }
    }

    /// Since the lane was sure of its place last, there were so many edits.
    pub(crate) fn doubted(&mut self, edits: u8) {
        self.edits = self.edits.max(edits);
    }

    /// The most of them.
    pub(crate) fn edits(&self) -> u8 {
        self.edits
    }

    /// The lane does not know its place any more. `is_first`: it has not asked as often yet as its sequence is long.
    pub(crate) fn lost(&mut self, is_first: bool) {
        self.lost += u64::from(self.most != u32::MAX);
        self.is_others |= is_first;
    }

    /// Whether it was lost in its first pass: another program's, then, which goes on otherwise where it meets the sequence again.
    pub(crate) fn is_others(&self) -> bool {
        self.is_others
    }

    /// The lane is sure of its place: the plan fits it.
    pub(crate) fn fits(&mut self) {
        self.unplanned = 0;
        self.given_up = false;
    }

    /// Whether the plan does not fit the lane: until it is sure of its place again, nothing is kept for it.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up || self.is_others
    }

    /// How often the lane lost its place, and how often it was given up.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.lost, self.times_given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_given_up_if_hardly_any_of_its_requests_is_planned() {
        for (steps, most) in [(10, 4096), (5000, 20_000)] {
            let mut drift = Drift::new(steps, true);
            for _ in 0..100_000 {
                drift.saw(true);
                (0..PLANNED).for_each(|_| drift.saw(false));
            }
            assert!(!drift.is_given_up(), "one in nine is planned");
            drift.fits();
            (1..most).for_each(|_| drift.saw(false));
            assert!(!drift.is_given_up());
            drift.saw(false);
            drift.saw(false);
            assert!(drift.is_given_up());
            drift.fits();
            assert!(!drift.is_given_up());
            assert_eq!(drift.counts(), (0, 1));
        }
        let mut ends = Drift::new(10, false);
        ends.lost(false);
        (0..100_000).for_each(|_| ends.saw(false));
        assert_eq!((ends.is_given_up(), ends.counts()), (false, (0, 0)));
    }
}
