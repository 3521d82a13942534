//! How long a request waits for streams, before memory is pinned beside a plan's.
//!
//! What a planned run needs is pinned already: what a request lacks, streams still have, and a loop that never waits for its GPU
//! would pin ever more. A request waits as long as its own pin takes, and half as long after each wait in vain; as long again after
//! one that was not. So waits in vain between two others cost two pins together, and any other saved one. Knows times only.

use std::time::Duration;

/// After so many waits in vain in a row the next one is a thousandth of a pin, and is left out.
const MOST_IN_VAIN: u32 = 10;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Patience {
    /// Waits in vain since the last other one.
    in_vain: u32,
}

/// How far a request has waited for streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polls {
    NotYet,
    Until(Duration),
    Over,
}

impl Patience {
    /// None: no request waits.
    pub(super) const NONE: Self = Self { in_vain: MOST_IN_VAIN };

    /// Requests wait.
    pub(super) const SOME: Self = Self { in_vain: 0 };

    /// How long a request waits whose own pin takes so long.
    pub(super) fn of(&self, pin: Duration) -> Option<Duration> {
        (self.in_vain < MOST_IN_VAIN).then(|| pin / (1 << self.in_vain))
    }

    /// A request has waited and must pin.
    pub(super) fn was_in_vain(&mut self) {
        self.in_vain = (self.in_vain + 1).min(MOST_IN_VAIN);
    }

    /// A request has waited and got its block.
    pub(super) fn was_worth_it(&mut self) {
        self.in_vain = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_vain_cost_two_pins_together_and_another_one_begins_anew() {
        const PIN: Duration = Duration::from_millis(64);
        let mut patience = Patience::SOME;
        for _ in 0..2 {
            assert_eq!(patience.of(PIN), Some(PIN));
            let mut waited = Duration::ZERO;
            while let Some(wait) = patience.of(PIN) {
                waited += wait;
                patience.was_in_vain();
            }
            assert!(waited < 2 * PIN, "{waited:?}");
            patience.was_worth_it();
        }
        assert_eq!(Patience::NONE.of(PIN), None);
    }
}
