//! Sees to it that there are not more pins than with stock, whatever a program does.
//!
//! Regions that are cut from serve most programs with fewer pins than stock's one for each block. But
//! there are programs, and budgets, under which idle regions have to make way for others again and
//! again, while stock, which never gives anything back, has come to rest. So pins are counted against
//! those that stock would have made for the same requests. Where they run too far ahead, what finds no
//! room is left to stock's mechanism, and idle regions go as that pins: the program comes to rest as
//! with stock. Knows counts only.

use crate::rival::Rival;

use super::Growth;

/// How many pins a stretch of a program may have more than stock's, before regions are to fit more
/// loosely, and before all is left to stock's mechanism.
const LOOSE: i64 = 8;
const PINS: i64 = 64;
/// The smallest set for which bytes count: below that they are nothing.
const SET: u64 = 1 << 30;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Memory counts for more than pins: an eighth more of them than stock's is borne, too.
    exact: bool,
    pins: u64,
    bytes: u64,
    /// The least that pins were ahead of stock's, and the same for bytes: negative, mostly.
    least: i64,
    mood: Mood,
    /// How often it had to, and how many clears are left until it may try again.
    times: u32,
    wait: u32,
}

/// How it goes, against stock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    /// Well.
    #[default]
    Well,
    /// Pins run ahead of stock's: what is a little too large is to do, and regions are to be as long
    /// as stock's.
    Loose,
    /// What finds no room is to be left to stock's mechanism.
    Yielding,
}

impl Guard {
    pub(super) fn new(growth: Growth) -> Self {
        Self {
            exact: growth == Growth::Exact,
            ..Self::default()
        }
    }

    /// A region of `bytes` bytes is to be pinned.
    pub(super) fn count(&mut self, bytes: usize) {
        self.pins += 1;
        self.bytes += bytes as u64;
    }

    /// Asked before each pin.
    /// `learning` says that regions come and go on purpose, while rounds are learnt: that ends by itself.
    pub(super) fn mood(&mut self, rival: &Rival, largest_set: u64, learning: bool) -> Mood {
        if self.mood < Mood::Yielding {
            let ahead = self.pins as i64 - rival.pins() as i64;
            self.least = self.least.min(ahead);
            let (pins, most) = (ahead - self.least, largest_set.max(SET) + rival.bytes());
            // Each time that it was in vain, half as much is tried.
            let tries = self.times.min(60);
            let patience = |pins: i64| (pins >> tries).max(1);
            let times = if learning { 4 } else { 2 };
            let borne = if self.exact {
                4 * PINS + rival.pins() as i64 / 8
            } else {
                PINS
            };
            self.mood = if pins >= patience(borne) || self.bytes > (times * most) >> tries {
                self.times += 1;
                Mood::Yielding
            } else if !learning
                && (pins >= patience(LOOSE) || self.bytes > (most + most / 4) >> tries)
            {
                Mood::Loose
            } else {
                Mood::Well
            };
        }
        self.mood
    }

    /// Whether what finds no room is left to stock's mechanism.
    pub(super) fn is_yielding(&self) -> bool {
        self.mood == Mood::Yielding
    }

    /// The cache was cleared, and stock pins anew as well: a new beginning, but after each time that it
    /// was in vain only after twice as many clears.
    pub(super) fn clear(&mut self, rival: &Rival) {
        if self.is_yielding() {
            self.wait += 1;
            if self.wait < 1 << self.times.min(20) {
                return;
            }
            *self = Self {
                exact: self.exact,
                times: self.times,
                pins: rival.pins(),
                bytes: 0,
                ..Self::default()
            };
        }
    }
}
