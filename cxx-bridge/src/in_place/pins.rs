//! Which pins there are, and which of them a thread has in hand. Decides, and acts on nothing.
//!
//! Invariants: no two pins have a page in common; a pin that a thread has in hand is changed by that thread only.

use std::collections::BTreeMap;

use pinbuddy_core::Stats;

use super::Asked;
use super::areas::{Pages, Place};

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Pins {
    /// By where their pages begin.
    pins: BTreeMap<usize, Pin>,
    last: u64,
    /// Of pins that are made.
    pub(super) stats: Stats,
}

#[derive(Clone, Debug)]
pub(super) struct Pin {
    /// Not 0.
    pub(super) number: u64,
    pub(super) pages: Pages,
    /// Taken from the budget.
    pub(super) counted: usize,
    pub(super) read_only: bool,
    /// How often it was asked for.
    pub(super) times: usize,
    /// A thread makes it, or ends it.
    pub(super) in_hand: bool,
}

#[derive(Debug)]
pub(super) enum Reserved {
    New(Pin),
    /// A pin's number.
    Again(u64),
}

/// What became of a pin that a thread wants to end.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is in this thread's hand.
    Last(Pin),
    /// It counts once less.
    Kept,
    /// It has ended.
    Gone,
}

impl Pins {
    /// The pin that has pages of these, if any.
    pub(super) fn sharing(&mut self, pages: &Pages) -> Option<&mut Pin> {
        let before = self.pins.range_mut(..pages.end).next_back();
        before
            .map(|(_, pin)| pin)
            .filter(|it| pages.start < it.pages.end)
    }

    /// A new pin of a place that no other has pages of, in the caller's hand.
    pub(super) fn reserve(&mut self, place: &Place, asked: Asked) -> Pin {
        self.last += 1;
        let part = place.pages.len().div_ceil(asked.processes.max(1));
        // The kernel goes on to call such pages available, of which half may be pinned: so they count once more.
        let is_cached = place.cached && (place.shared || asked.read_only);
        let pin = Pin {
            number: self.last,
            pages: place.pages.clone(),
            counted: if is_cached { 2 * part } else { part },
            read_only: asked.read_only,
            times: 1,
            in_hand: true,
        };
        self.pins.insert(pin.pages.start, pin.clone());
        pin
    }

    /// The pin is made, or could not be.
    pub(super) fn made(&mut self, pin: &Pin, is_made: bool) {
        if is_made {
            self.put_down(pin);
            self.count(pin, true);
        } else {
            self.pins.remove(&pin.pages.start);
        }
    }

    /// The pin has ended, or could not: then it is as before.
    pub(super) fn ended(&mut self, pin: &Pin, has_ended: bool) {
        if has_ended {
            self.pins.remove(&pin.pages.start);
            self.count(pin, false);
        } else {
            self.put_down(pin);
        }
    }

    /// The pin, for the caller to end; with `once` only if it was asked for once, and otherwise it counts once less. `None`
    /// while another thread has it in hand.
    pub(super) fn take_in_hand(&mut self, number: u64, once: bool) -> Option<Taken> {
        let Some(found) = self.pins.values_mut().find(|it| it.number == number) else {
            return Some(Taken::Gone);
        };
        if found.in_hand {
            return None;
        }
        if once && found.times > 1 {
            found.times -= 1;
            return Some(Taken::Kept);
        }
        found.in_hand = true;
        Some(Taken::Last(found.clone()))
    }

    /// All pins.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.pins.values().map(|it| it.number).collect()
    }

    fn put_down(&mut self, pin: &Pin) {
        if let Some(it) = self.pins.get_mut(&pin.pages.start) {
            it.in_hand = false;
        }
    }

    fn count(&mut self, pin: &Pin, begins: bool) {
        let stats = &mut self.stats;
        for (gauge, by) in [
            (&mut stats.pinned_bytes, pin.pages.len() as u64),
            (&mut stats.segments, 1),
            (&mut stats.active_blocks, 1),
        ] {
            if begins {
                gauge.add(by);
            } else {
                gauge.remove(by);
            }
        }
    }
}
