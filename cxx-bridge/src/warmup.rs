//! Who warms up, and who waits for it.
//!
//! Knows neither the engine nor how memory is pinned: it hands out the one turn at warming up, and
//! lets the other threads sleep until something was adopted. Nothing here is held while memory is
//! pinned (I5): a waiter sleeps on a lock of its own that guards nothing else.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

const COLD: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;

/// The state of one process's warm-up.
#[derive(Debug, Default)]
pub struct WarmUp {
    phase: AtomicU8,
    /// How many segments the warm-up has brought.
    adopted: AtomicUsize,
    /// Makes a waiter's check and its sleep one step; taken to wait and to wake.
    waiting: Mutex<()>,
    progress: Condvar,
}

/// What a thread that found no room is to do about the warm-up.
#[derive(Debug)]
pub enum Turn<'a> {
    /// Warm up now: the caller is the first to ask.
    Yours(Ticket<'a>),
    /// Another thread warms up, and has made progress since the caller looked: ask again.
    Progress,
    /// The warm-up is over, however it ended: growing is the caller's own affair.
    Over,
}

/// The one turn at warming up; dropping it ends the warm-up, by a panic too, so nobody waits for
/// ever.
#[derive(Debug)]
pub struct Ticket<'a>(&'a WarmUp);

impl WarmUp {
    /// How many segments the warm-up has brought so far: read before asking the engine, so that
    /// progress made in between is not slept through.
    pub fn seen(&self) -> usize {
        self.adopted.load(Ordering::Acquire)
    }

    /// Takes the turn, or waits for more than `seen` segments or the end of the warm-up.
    pub fn turn(&self, seen: usize) -> Turn<'_> {
        let taken = self
            .phase
            .compare_exchange(COLD, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() {
            return Turn::Yours(Ticket(self));
        }
        let mut waiting = self.wait_lock();
        while self.phase.load(Ordering::Acquire) == RUNNING && self.seen() == seen {
            waiting = self
                .progress
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if self.seen() == seen {
            Turn::Over
        } else {
            Turn::Progress
        }
    }

    /// The state in a word, for people.
    pub fn describe(&self) -> &'static str {
        match self.phase.load(Ordering::Acquire) {
            COLD => "cold",
            RUNNING => "running",
            _ => "done",
        }
    }

    fn wait_lock(&self) -> MutexGuard<'_, ()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket<'_> {
    /// Says that one more segment can serve requests.
    pub fn adopted(&self) {
        let _waiting = self.0.wait_lock();
        self.0.adopted.fetch_add(1, Ordering::Release);
        self.0.progress.notify_all();
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let _waiting = self.0.wait_lock();
        self.0.phase.store(DONE, Ordering::Release);
        self.0.progress.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_first_to_ask_warms_up_and_later_ones_are_on_their_own() {
        let warm_up = WarmUp::default();
        assert_eq!(warm_up.describe(), "cold");
        let Turn::Yours(ticket) = warm_up.turn(0) else {
            panic!("the first turn is the caller's")
        };
        assert_eq!(warm_up.describe(), "running");
        drop(ticket);
        assert_eq!(warm_up.describe(), "done");
        assert!(matches!(warm_up.turn(0), Turn::Over));
    }

    #[test]
    fn a_waiter_wakes_for_each_segment_and_for_the_end() {
        let warm_up = WarmUp::default();
        let Turn::Yours(ticket) = warm_up.turn(0) else {
            panic!()
        };
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let first = matches!(warm_up.turn(0), Turn::Progress);
                let second = matches!(warm_up.turn(1), Turn::Over);
                (first, second)
            });
            ticket.adopted();
            drop(ticket);
            assert_eq!(waiter.join().unwrap(), (true, true));
        });
    }

    #[test]
    fn progress_made_before_the_turn_is_not_waited_for() {
        let warm_up = WarmUp::default();
        let Turn::Yours(ticket) = warm_up.turn(0) else {
            panic!()
        };
        let seen = warm_up.seen();
        ticket.adopted();
        assert!(matches!(warm_up.turn(seen), Turn::Progress));
    }

    #[test]
    fn a_panic_while_warming_up_ends_it() {
        let warm_up = WarmUp::default();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let Turn::Yours(_ticket) = warm_up.turn(0) else {
                unreachable!()
            };
            panic!("a pin that blew up");
        }));
        assert!(caught.is_err());
        assert!(matches!(warm_up.turn(0), Turn::Over));
    }
}
