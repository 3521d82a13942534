//! How long a region is pinned for a request: the request, and more as demand shows, within the time
//! that stock's own pin would take.

use std::time::Duration;

use crate::engine::Engine;

use super::{Growth, Provisioner};

/// A request's pin may take so much longer than stock's, for the sake of later requests. Much less than
/// is promised: the driver may be busy with another pin, and a machine's speed varies.
const LONGER: Duration = Duration::from_millis(4);

impl Provisioner {
    /// The region for a request of `exact` bytes alone, with slack if it is a buffer that grows.
    pub(super) fn region_with_slack(&mut self, exact: usize) -> usize {
        let (pinned, engine) = (self.engine.pinned_bytes(), &self.engine);
        let outgrown = || engine.has_idle_between(exact / 2, exact);
        self.ahead.region_of_its_own(exact, pinned, outgrown)
    }

    /// The region for a request of `exact` bytes, with the window ahead of demand, as far as the time
    /// allows.
    pub(super) fn region_for(&mut self, exact: usize) -> usize {
        let mut bytes = self.region_with_slack(exact);
        let segment = self.settings.segment_bytes;
        if self.settings.growth == Growth::Segment && exact <= segment {
            // What pins under way leave over is already ahead of demand.
            let (_, over) = self.permits.at(self.engine.home());
            let window = self.ahead.window().saturating_sub(over);
            bytes = bytes.max(exact + window);
        }
        if exact <= segment {
            bytes = bytes.min(segment);
        }
        let stocks = exact.checked_next_power_of_two().unwrap_or(exact);
        if let Some(more) = self.paces.within(LONGER) {
            bytes = bytes.min(stocks.saturating_add(stocks / 4).saturating_add(more));
        }
        // A rest that is too short for the smallest recent request would serve nothing.
        let smallest = self.ahead.smallest_recent().unwrap_or(1).max(1);
        let more = bytes.saturating_sub(exact) / smallest * smallest;
        let bytes = match self.settings.growth {
            // Rounded, a region stays below a segment: from that length on it would not be given back between phases.
            Growth::Exact => Some(with_neighbours(exact)).filter(|it| *it < segment),
            Growth::Segment => None,
        };
        let bytes = bytes.unwrap_or(exact);
        Engine::exact_region(bytes.max(exact + more)).unwrap_or(exact)
    }
}

/// The length that requests of nearly `bytes` bytes share: at most a 256th more. Sizes of a program
/// often differ by a few bytes (a header, a padded row), and a region a page too short serves none of the others.
fn with_neighbours(bytes: usize) -> usize {
    let grain = (bytes.next_power_of_two() / 512).max(1);
    bytes.next_multiple_of(grain)
}
