//! How room is made for a request that found none.
//!
//! In this order: the warm-up starts, or its next segment is waited for, or the request is pinned
//! by itself where that is faster; after the warm-up, growth. When a pin is refused: completed
//! events, then room among blocks of the other class, then idle memory given back for a region of
//! exactly the request, and then it is upstream's. Knows nothing of how memory is pinned.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pinbuddy_core::{Engine, Growth};

use super::notices::once;
use super::pins::Refusal;
use super::{Answer, Grant, Handle, grant};
use crate::backing::{Backing, Device, background};
use crate::config::Mode;
use crate::log::{self, Bytes};
use crate::warmup::{Task, Ticket, UnderWay};

/// What came of making room.
#[derive(Debug)]
pub(super) enum Room {
    /// Memory was pinned, and the request served from it.
    Served(Grant),
    /// There is more than before: the engine may have a block now.
    AskAgain,
    /// A pin of so many bytes was refused.
    Refused(usize),
    /// The process is about to end.
    Closed,
}

/// A request that found no room.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// What the user asked for.
    bytes: usize,
    /// The region for this request alone.
    own: usize,
    device: Device,
}

impl<B: Backing> Handle<B> {
    /// Makes room for a request of `bytes`, for which the engine asked to have `need` bytes pinned;
    /// `seen` is what the warm-up had brought before the engine was asked.
    pub(super) fn make_room(&'static self, bytes: usize, need: usize, seen: usize) -> Room {
        let want = Want {
            bytes,
            own: self.region_of_its_own(bytes).unwrap_or(need),
            device: self.backing.device(),
        };
        let dedicated = need > self.config.block_bytes();
        if self.config.warm_up.value != Mode::Off
            && let Some(ticket) = self.warm_up.begin(Task::WarmUp)
        {
            return match self.config.warm_up.value {
                Mode::Sync => {
                    self.warm(&ticket, want.device);
                    // If that brought too little, the next attempt grows: nothing is owed now.
                    Room::AskAgain
                }
                _ => self.pin_first_and_warm_behind(ticket, want),
            };
        }
        if !dedicated && let Some(under_way) = self.warm_up.under_way() {
            if self.is_worth_waiting_for(under_way, want.own) {
                let _waiting = background::wait();
                self.warm_up.wait(seen);
                return Room::AskAgain;
            }
            return self.pin_its_own(want);
        }
        let whole = self.config.growth.value == Growth::Segment
            && !dedicated
            && !self.no_segments.load(Ordering::Relaxed);
        if whole {
            self.grow(need, want)
        } else {
            self.pin_its_own(want)
        }
    }

    /// When nothing more can be pinned for a request of `bytes`; `refused` is how much could not be.
    pub(super) fn last_resort(&self, bytes: usize, refused: Option<usize>) -> Option<Grant> {
        self.backing.reap();
        match self.ask(bytes)? {
            Answer::Block(grant) => return Some(grant),
            Answer::Pin(_) => {}
            Answer::Renew(renewal) => self.abandon(renewal),
        }
        {
            let mut engine = self.engine()?;
            if let Some(block) = engine.request_anywhere(bytes) {
                return Some(grant(&engine, block));
            }
        }
        let exact = self.region_of_its_own(bytes)?;
        let device = self.backing.device();
        // Less than was refused may be had as it is; the same again would be refused again.
        let mut refusal = None;
        if refused.is_none_or(|refused| exact < refused) {
            match self.pin_for(bytes, exact, device) {
                Ok(grant) => return Some(grant),
                Err(why) => refusal = Some(why),
            }
        }
        // First as much as it takes. What the driver calls free may lie in pieces: then all of it.
        for at_least in [self.worth_giving_back(exact)?, usize::MAX] {
            if self.give_back(at_least).1 == 0 {
                break;
            }
            match self.pin_for(bytes, exact, device) {
                Ok(grant) => return Some(grant),
                Err(why) => refusal = Some(why),
            }
        }
        self.refused(exact, &refusal?);
        None
    }

    /// How much to give back for a region of `exact` bytes; `None` where nothing that is idle would
    /// be enough for the budget.
    fn worth_giving_back(&self, exact: usize) -> Option<usize> {
        match exact.saturating_sub(self.purse().left()) {
            // The driver stands in the way, not the budget.
            0 => Some(exact),
            short => (short <= self.idle_bytes()).then_some(short),
        }
    }

    /// Starts a warm-up in a thread of its own, if one is owed and none is under way; with all that
    /// the machine has where the program is `waiting` for it.
    pub(super) fn start_warm_up(&'static self, waiting: bool) {
        if let Some(ticket) = self.warm_up.begin(Task::WarmUp) {
            self.warm_in_a_thread(ticket, self.backing.device(), !waiting);
        }
    }

    /// Pins the request's own region before the warm-up begins to compete for the driver, so that
    /// the first block comes as soon as it would without a warm-up.
    fn pin_first_and_warm_behind(&'static self, ticket: Ticket<'static>, want: Want) -> Room {
        let first = self.pin_for(want.bytes, want.own, want.device);
        if first.is_ok() {
            self.credit(want.own);
        }
        let outcome = self.outcome(want.own, first);
        // After a refusal by the driver it owes nothing, and ends at once.
        self.warm_in_a_thread(ticket, want.device, true);
        outcome
    }

    fn warm_in_a_thread(&'static self, ticket: Ticket<'static>, device: Device, behind: bool) {
        let thread = std::thread::Builder::new().name("pinbuddy-warm-up".to_owned());
        let warm = move || {
            if behind {
                background::enter();
            }
            self.guarded(|| {
                self.warm(&ticket, device);
                Some(())
            });
        };
        if let Err(why) = thread.spawn(warm) {
            // The ticket went with the thread that never was. What is owed stays owed, and the next
            // request that finds no room tries again.
            once(&self.notices.no_thread, || {
                format!("no thread for the warm-up: {why}")
            });
        }
    }

    /// Pins what is owed, as far as the budget goes. Stops at the first pin that fails and keeps the
    /// others.
    fn warm(&self, ticket: &Ticket<'_>, device: Device) {
        let bytes = self.config.block_bytes();
        let most = self.room_for_segments();
        let wanted = ticket.limit(most);
        if most < wanted {
            self.say_shrunk(most, wanted);
        }
        let mut pinned = 0;
        while ticket.next() {
            match self.pin(bytes, device) {
                Ok(()) => {
                    ticket.brought();
                    pinned += 1;
                }
                Err(refusal) => {
                    self.refused(bytes, &refusal);
                    break;
                }
            }
        }
        if ticket.is_paused() {
            // An empty_cache came while the last segment was being pinned.
            self.backing.reap();
            self.give_back_and_owe();
        }
        log::info(|| {
            let bytes = Bytes(bytes as u64);
            format!("the warm-up has pinned {pinned} of {wanted} blocks of {bytes}")
        });
    }

    /// The region for a request of `bytes` alone: no longer than a segment unless the request is.
    fn region_of_its_own(&self, bytes: usize) -> Option<usize> {
        let segment = self.config.block_bytes();
        let most = if bytes <= segment {
            segment
        } else {
            usize::MAX
        };
        Some(Engine::exact_region(bytes)?.min(most))
    }

    /// Pins one more segment, unless another thread is about to.
    fn grow(&self, need: usize, want: Want) -> Room {
        let ticket = self.warm_up.begin(Task::Growth);
        let Some(ticket) = ticket.filter(Ticket::next) else {
            return if self.warm_up.is_closed() {
                Room::Closed
            } else {
                // Beaten to the turn.
                Room::AskAgain
            };
        };
        let pinned = self.pin_for(want.bytes, need, want.device);
        match &pinned {
            Ok(_) => {
                log::info(|| format!("grown by {}", Bytes(need as u64)));
                ticket.brought();
            }
            Err(Refusal::Driver(_)) => self.no_segments.store(true, Ordering::Relaxed),
            Err(_) => {}
        }
        self.outcome(need, pinned)
    }

    /// A region for this request alone; a warm-up that is under way lets it go first.
    fn pin_its_own(&self, want: Want) -> Room {
        let _aside = self.warm_up.step_aside();
        if self.warm_up.is_closed() {
            return Room::Closed;
        }
        let beside = self.warm_up.under_way().and_then(|it| self.left(it));
        let expected = self.speed.estimate(want.own);
        let start = Instant::now();
        let pinned = self.pin_for(want.bytes, want.own, want.device);
        if let (Some(left), Some(expected)) = (beside, expected) {
            self.speed.learn_beside(expected, start.elapsed(), left);
        }
        if pinned.is_ok() {
            self.credit(want.own);
        }
        self.outcome(want.own, pinned)
    }

    /// What requests pin by themselves while a warm-up is owed counts as a part of it, as far as
    /// segments would have held it.
    fn credit(&self, own: usize) {
        let segment = self.config.block_bytes();
        if own <= segment {
            self.warm_up.credit(own, segment);
        }
    }

    fn outcome(&self, bytes: usize, pinned: Result<Grant, Refusal>) -> Room {
        match pinned {
            Ok(grant) => Room::Served(grant),
            Err(refusal) => {
                self.refused(bytes, &refusal);
                Room::Refused(bytes)
            }
        }
    }

    /// Whether to wait for the segment that is being pinned rather than pin a region of `own`
    /// bytes. Beside another pin that is slower than alone, and no gain at all where the driver
    /// pins one region at a time; so it has to be worth a risk. Growth and a warm-up of `sync` are
    /// always waited for: a region for each waiter would be as much again.
    fn is_worth_waiting_for(&self, under_way: UnderWay, own: usize) -> bool {
        let shared = under_way.task == Task::Growth || self.config.warm_up.value == Mode::Sync;
        if shared || self.speed.one_at_a_time() {
            return true;
        }
        match (self.left(under_way), self.speed.estimate(own)) {
            (Some(left), Some(own)) => left < 4 * own,
            _ => own > self.config.block_bytes() / 4,
        }
    }

    /// How long the segment that is being pinned still takes, if that is known.
    fn left(&self, under_way: UnderWay) -> Option<Duration> {
        let whole = self.speed.estimate(self.config.block_bytes())?;
        Some(whole.saturating_sub(under_way.since?.elapsed()))
    }
}
