//! How long the region is that is pinned for a request: the request, and more as demand shows, within
//! the time that stock's own pin would take.

use std::time::Duration;

use crate::engine::Engine;

use super::{Growth, Provisioner};

/// A request may be pinned for so much longer than stock's own pin takes, for the sake of those that
/// come after it. Much less than is promised: the driver may be busy with another pin, and machines are
/// not as even as their last pins say.
const LONGER: Duration = Duration::from_millis(4);

impl Provisioner {
    /// As much as a request that needs `exact` alone would have, and its growth.
    pub(super) fn region_with_room(&mut self, exact: usize) -> usize {
        let (pinned, engine) = (self.engine.pinned_bytes(), &self.engine);
        let outgrown = || engine.has_idle_between(exact / 2, exact);
        self.ahead.region_of_its_own(exact, pinned, outgrown)
    }

    /// How much to pin for a request that needs `exact`: as much more as is wanted, within the time
    /// that stock's own pin would take.
    pub(super) fn region_for(&mut self, exact: usize) -> usize {
        let mut bytes = self.region_with_room(exact);
        let segment = self.settings.segment_bytes;
        if self.settings.growth == Growth::Segment && exact <= segment {
            // What others leave over is ahead of demand already.
            let window = self.ahead.window().saturating_sub(self.orders.over());
            bytes = bytes.max(exact + window);
        }
        if exact <= segment {
            bytes = bytes.min(segment);
        }
        let stocks = exact.checked_next_power_of_two().unwrap_or(exact);
        if let Some(more) = self.paces.within(LONGER) {
            bytes = bytes.min(stocks.saturating_add(stocks / 4).saturating_add(more));
        }
        // What is too short for the smallest of the last requests would lie there for nothing.
        let smallest = self.ahead.smallest_recent().unwrap_or(1).max(1);
        let more = bytes.saturating_sub(exact) / smallest * smallest;
        Engine::exact_region(exact + more).unwrap_or(exact)
    }
}
