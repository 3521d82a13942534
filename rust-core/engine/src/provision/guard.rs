//! Keeps the number of pins near stock's, whatever a program does.
//!
//! Most programs need fewer pins than with stock, which pins each block singly. But with some programs
//! and budgets, idle regions are unpinned for others again and again, while stock, which never unpins,
//! has come to rest. So pins are counted against those that stock would have made for the same
//! requests. Where they run too far ahead, requests that miss are left to stock's mechanism, and idle
//! regions are unpinned as it pins: the program comes to rest as with stock. Knows counts only.

use crate::rival::Pins;

use super::Growth;

/// So many pins more than stock's, and regions may fit more loosely; so many more, and misses are left
/// to stock's mechanism.
const LOOSE: i64 = 8;
const PINS: i64 = 64;
/// The largest set counts as at least this long where pinned bytes are compared.
const SET: u64 = 1 << 30;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// With exact growth memory counts for more than pins: an eighth more pins than stock's are allowed.
    exact: bool,
    pins: u64,
    bytes: u64,
    /// Regions that went back since nobody used them, and their bytes: pinned again, they do not count.
    returned: (u64, u64),
    /// The least that pins were ahead of stock's; mostly negative.
    least: i64,
    mood: Mood,
    /// How often the guard has yielded.
    times: u32,
    /// Clears since it last yielded.
    wait: u32,
}

/// How the pins compare with stock's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    /// Few enough.
    #[default]
    Well,
    /// Somewhat more than stock's: regions that are a little too large serve, and new ones are as long
    /// as stock's.
    Loose,
    /// Too many: requests that miss are left to stock's mechanism.
    Yielding,
}

impl Guard {
    pub(super) fn new(growth: Growth) -> Self {
        Self { exact: growth == Growth::Exact, ..Self::default() }
    }

    /// A region of `bytes` bytes was pinned.
    pub(super) fn count(&mut self, bytes: usize) {
        let (regions, back) = self.returned;
        self.pins += u64::from(regions == 0);
        self.bytes += (bytes as u64).saturating_sub(back);
        self.returned = (regions.saturating_sub(1), back.saturating_sub(bytes as u64));
    }

    /// A region of `bytes` bytes goes back, because nobody used it.
    pub(super) fn returns(&mut self, bytes: usize) {
        self.returned.0 += 1;
        self.returned.1 += bytes as u64;
    }

    /// Asked before each pin. `learning` says that phases are being learnt: regions are replaced on
    /// purpose then, and that ends by itself.
    pub(super) fn mood(&mut self, rival: Pins, largest_set: u64, learning: bool) -> Mood {
        if self.mood < Mood::Yielding {
            let ahead = self.pins as i64 - rival.count as i64;
            self.least = self.least.min(ahead);
            let (pins, most) = (ahead - self.least, largest_set.max(SET) + rival.bytes);
            // Half as much is allowed after each time that the guard has yielded.
            let tries = self.times.min(60);
            let patience = |pins: i64| (pins >> tries).max(1);
            let times = if learning { 4 } else { 2 };
            let borne = if self.exact { 4 * PINS + rival.count as i64 / 8 } else { PINS };
            self.mood = if pins >= patience(borne) || self.bytes > (times * most) >> tries {
                self.times += 1;
                Mood::Yielding
            } else if !learning && (pins >= patience(LOOSE) || self.bytes > (most + most / 4) >> tries) {
                Mood::Loose
            } else {
                Mood::Well
            };
        }
        self.mood
    }

    /// Whether requests that miss are left to stock's mechanism.
    pub(super) fn is_yielding(&self) -> bool {
        self.mood == Mood::Yielding
    }

    /// The cache was cleared, and stock would pin anew as well: counting starts again, after twice as
    /// many clears as the last time.
    pub(super) fn clear(&mut self, rival: Pins) {
        if self.is_yielding() {
            self.wait += 1;
            if self.wait < 1 << self.times.min(20) {
                return;
            }
            *self = Self { exact: self.exact, times: self.times, pins: rival.count, bytes: 0, ..Self::default() };
        }
    }
}
