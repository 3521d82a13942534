//! How long a request waits for streams, before memory is pinned beside a plan's.
//!
//! What a planned run needs is pinned already: what a request lacks, streams still have, and a loop that never waits for its GPU
//! would pin ever more. A request waits as long as its own pin takes, and half as long after each wait in vain, down to a quarter: a
//! stream may need as long for one copy. After a wait that was not in vain the next one is a whole one. So no more time is lost than
//! pins take (ski rental), and in the long run a quarter of that. Knows times only.

use std::time::Duration;

/// After so many waits in vain in a row they become no shorter.
const SHORTEST: u32 = 2;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Whether requests wait.
    is_on: bool,
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
    /// Requests wait from now on.
    pub(super) fn begin(&mut self) {
        self.is_on = true;
    }

    /// How long a request waits whose own pin takes so long.
    pub(super) fn of(&self, pin: Duration) -> Option<Duration> {
        self.is_on.then(|| pin / (1 << self.in_vain))
    }

    /// A request has waited and must pin.
    pub(super) fn was_in_vain(&mut self) {
        self.in_vain = (self.in_vain + 1).min(SHORTEST);
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
    fn waits_in_vain_become_shorter_down_to_a_quarter_of_a_pin_until_one_is_not() {
        const PIN: Duration = Duration::from_millis(64);
        let mut patience = Patience::default();
        assert_eq!(patience.of(PIN), None);
        patience.begin();
        for _ in 0..2 {
            let mut next = || {
                let wait = patience.of(PIN).unwrap().as_millis();
                patience.was_in_vain();
                wait
            };
            assert_eq!([(); 5].map(|()| next()), [64, 32, 16, 16, 16]);
            patience.was_worth_it();
        }
    }
}
