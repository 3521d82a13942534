//! The permits whose pins are under way: who holds them, how long they take, what they leave over.
//!
//! A request that misses may wait for a pin that ends soon and leaves enough. Knows sizes and times;
//! not why anything is pinned.

use std::time::Duration;

use super::pace::{Paces, Who};
use crate::units::Home;

/// Names a grow permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitId(u32);

/// A permit whose pin is under way.
#[derive(Debug)]
pub(super) struct UnderWay {
    id: PermitId,
    pub(super) who: Who,
    /// Where the region is to lie.
    pub(super) home: Home,
    pub(super) bytes: usize,
    /// Length of the request that it was given to; 0 for none.
    pub(super) request: usize,
    /// The region is to be the working-set region.
    pub(super) working_set: bool,
    began: Duration,
    /// No other pin was under way at the same time.
    pub(super) alone: bool,
    /// Bytes left over by its own request and by requests that wait for it.
    over: usize,
    /// How often the cache had been cleared when it began.
    pub(super) clears: u32,
}

/// What a region is pinned for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub(super) who: Who,
    pub(super) home: Home,
    pub(super) request: usize,
    pub(super) working_set: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Permits {
    under_way: Vec<UnderWay>,
    made: u32,
}

impl Permits {
    pub(super) fn begin(&mut self, bytes: usize, purpose: Purpose, now: Duration, clears: u32) -> PermitId {
        self.made = self.made.wrapping_add(1);
        let id = PermitId(self.made);
        let Purpose { who, home, request, working_set } = purpose;
        self.under_way.iter_mut().for_each(|it| it.alone = false);
        let alone = self.under_way.is_empty();
        self.under_way.push(UnderWay {
            id,
            who,
            home,
            bytes,
            request,
            working_set,
            began: now,
            alone,
            over: bytes.saturating_sub(request),
            clears,
        });
        id
    }

    /// The pin is over, whatever its outcome.
    pub(super) fn end(&mut self, id: PermitId) -> Option<UnderWay> {
        let at = self.position(id)?;
        Some(self.under_way.swap_remove(at))
    }

    pub(super) fn get(&self, id: PermitId) -> Option<&UnderWay> {
        self.position(id).map(|at| &self.under_way[at])
    }

    /// Bytes that all of them pin.
    pub(super) fn bytes(&self) -> usize {
        self.under_way.iter().map(|it| it.bytes).sum()
    }

    /// Bytes that those at a home pin, and that they leave over.
    pub(super) fn at(&self, home: Home) -> (usize, usize) {
        let here = self.under_way.iter().filter(|it| it.home == home);
        here.fold((0, 0), |(bytes, over), it| (bytes + it.bytes, over + it.over))
    }

    /// Whether any of them is a request's own.
    pub(super) fn any_request(&self) -> bool {
        self.under_way.iter().any(|it| it.who == Who::Request)
    }

    /// Whether any of them is the worker's.
    pub(super) fn any_of_the_worker(&self) -> bool {
        self.under_way.iter().any(|it| it.who == Who::Worker)
    }

    /// Until when a request of `bytes` at `home` waits: for half of what its own pin would take, if a pin
    /// there ends by then and leaves enough. These bytes are then reserved for it.
    pub(super) fn wait_for(&mut self, (bytes, home): (usize, Home), now: Duration, paces: &Paces) -> Option<Duration> {
        let latest = now + paces.of(Who::Request, bytes)? / 2;
        let soon = |it: &&mut UnderWay| {
            let whole = paces.of(it.who, it.bytes);
            it.home == home && it.over >= bytes && whole.is_some_and(|whole| it.began + whole <= latest)
        };
        let found = self.under_way.iter_mut().find(soon)?;
        found.over -= bytes;
        Some(latest)
    }

    fn position(&self, id: PermitId) -> Option<usize> {
        self.under_way.iter().position(|it| it.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::Took;
    use super::*;

    const MIB: usize = 1 << 20;
    const MS: Duration = Duration::from_millis(1);

    /// A request's own pins take 1 ms a MiB, the worker's 4.
    fn paces() -> Paces {
        let mut paces = Paces::default();
        for (who, filling) in [(Who::Request, MS), (Who::Worker, 4 * MS)] {
            let registering = Duration::ZERO;
            let took = Took { filling, registering };
            paces.learn(who, MIB, took, true);
        }
        paces
    }

    fn worker(permits: &mut Permits, bytes: usize) -> PermitId {
        let purpose = Purpose { who: Who::Worker, home: Home(0), request: 0, working_set: false };
        permits.begin(bytes, purpose, Duration::ZERO, 0)
    }

    #[test]
    fn what_is_soon_over_and_brings_enough_is_waited_for() {
        let mut permits = Permits::default();
        let id = worker(&mut permits, 64 * MIB);
        let mut wait = |at: u32, mib| permits.wait_for((mib * MIB, Home(0)), MS * at, &paces());
        assert_eq!(wait(0, 32), None, "256 ms are left, 16 would be waited");
        assert_eq!(wait(239, 32), None);
        assert_eq!(wait(240, 32), Some(256 * MS));
        assert_eq!(wait(255, 33), None, "half of it is spoken for");
        assert_eq!(wait(240, 32), Some(256 * MS));
        assert_eq!(wait(250, 8), None, "and now all of it");
        assert_eq!(permits.end(id).unwrap().bytes, 64 * MIB);
        assert!(permits.end(id).is_none());
        assert_eq!(permits.at(Home(0)), (0, 0));
    }

    #[test]
    fn nobody_waits_for_memory_that_lies_elsewhere_or_without_knowing_how_long() {
        let mut permits = Permits::default();
        worker(&mut permits, 64 * MIB);
        let mut wait = |home, paces: &Paces| permits.wait_for((MIB, Home(home)), 256 * MS, paces);
        assert_eq!(wait(0, &Paces::default()), None);
        assert_eq!(wait(1, &paces()), None);
        assert!(wait(0, &paces()).is_some());
        assert_eq!(permits.at(Home(0)), (64 * MIB, 63 * MIB));
        assert_eq!(permits.at(Home(1)), (0, 0));
    }
}
