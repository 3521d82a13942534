//! The pins that are under way: who made them, how long they may still take, what they leave over.
//!
//! A request that finds no room may wait for one that brings enough and is soon over. Knows sizes
//! and times; not why anything is pinned.

use std::time::Duration;

use super::pace::{Paces, Who};

/// Names a pin that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// One of them.
#[derive(Debug)]
pub(super) struct UnderWay {
    ticket: Ticket,
    pub(super) who: Who,
    pub(super) bytes: usize,
    /// The request that it is made for; 0 for none.
    pub(super) request: usize,
    /// The region is to serve all that the program does.
    pub(super) home: bool,
    began: Duration,
    /// No other was under way since.
    pub(super) alone: bool,
    /// Bytes that neither its own request nor those who wait for it take.
    over: usize,
    /// How often the cache was cleared before.
    pub(super) clears: u32,
}

/// What a pin is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    pub(super) who: Who,
    pub(super) request: usize,
    pub(super) home: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Orders {
    under_way: Vec<UnderWay>,
    made: u32,
}

impl Orders {
    pub(super) fn begin(
        &mut self,
        bytes: usize,
        purpose: Purpose,
        now: Duration,
        clears: u32,
    ) -> Ticket {
        self.made = self.made.wrapping_add(1);
        let ticket = Ticket(self.made);
        let Purpose { who, request, home } = purpose;
        self.under_way.iter_mut().for_each(|it| it.alone = false);
        let alone = self.under_way.is_empty();
        self.under_way.push(UnderWay {
            ticket,
            who,
            bytes,
            request,
            home,
            began: now,
            alone,
            over: bytes.saturating_sub(request),
            clears,
        });
        ticket
    }

    /// It is over, one way or the other.
    pub(super) fn end(&mut self, ticket: Ticket) -> Option<UnderWay> {
        let at = self.position(ticket)?;
        Some(self.under_way.swap_remove(at))
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&UnderWay> {
        self.position(ticket).map(|at| &self.under_way[at])
    }

    /// Bytes that will be pinned when all are over.
    pub(super) fn bytes(&self) -> usize {
        self.under_way.iter().map(|it| it.bytes).sum()
    }

    /// What they leave over.
    pub(super) fn over(&self) -> usize {
        self.under_way.iter().map(|it| it.over).sum()
    }

    /// Whether a request pins for itself.
    pub(super) fn any_request(&self) -> bool {
        self.under_way.iter().any(|it| it.who == Who::Request)
    }

    /// Until when at the latest a request of `bytes` is to wait for one of them: half of what its own
    /// pin would take, if one is over by then and leaves enough. What it takes is then spoken for.
    pub(super) fn wait_for(
        &mut self,
        bytes: usize,
        now: Duration,
        paces: &Paces,
    ) -> Option<Duration> {
        let latest = now + paces.of(Who::Request, bytes)? / 2;
        let soon = |it: &&mut UnderWay| {
            let whole = paces.of(it.who, it.bytes);
            it.over >= bytes && whole.is_some_and(|whole| it.began + whole <= latest)
        };
        let found = self.under_way.iter_mut().find(soon)?;
        found.over -= bytes;
        Some(latest)
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.under_way.iter().position(|it| it.ticket == ticket)
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
            let took = Took {
                filling,
                registering,
            };
            paces.learn(who, MIB, took, true);
        }
        paces
    }

    fn worker(orders: &mut Orders, bytes: usize) -> Ticket {
        let purpose = Purpose {
            who: Who::Worker,
            request: 0,
            home: false,
        };
        orders.begin(bytes, purpose, Duration::ZERO, 0)
    }

    #[test]
    fn what_is_soon_over_and_brings_enough_is_waited_for() {
        let mut orders = Orders::default();
        let ticket = worker(&mut orders, 64 * MIB);
        let mut wait = |at: u32, mib| orders.wait_for(mib * MIB, MS * at, &paces());
        assert_eq!(wait(0, 32), None, "256 ms are left, 16 would be waited");
        assert_eq!(wait(239, 32), None);
        assert_eq!(wait(240, 32), Some(256 * MS));
        assert_eq!(wait(255, 33), None, "half of it is spoken for");
        assert_eq!(wait(240, 32), Some(256 * MS));
        assert_eq!(wait(250, 8), None, "and now all of it");
        assert_eq!(orders.end(ticket).unwrap().bytes, 64 * MIB);
        assert!(orders.end(ticket).is_none());
        assert_eq!((orders.bytes(), orders.over()), (0, 0));
    }

    #[test]
    fn nobody_waits_without_knowing_how_long() {
        let mut orders = Orders::default();
        worker(&mut orders, 64 * MIB);
        let unknown = Paces::default();
        assert_eq!(orders.wait_for(MIB, 900 * MS, &unknown), None);
    }
}
