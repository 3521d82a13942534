//! Idle memory goes back by itself: which regions nobody has used for the idle time, and how many of them may go now.
//!
//! The caller looks now and then, and says what time it is. Each look marks the engine's own order of releases, so that a
//! request notes no time: a region that is idle since before a mark has been idle since the time of that mark.
//!
//! Invariants: only wholly idle regions go, the least recently used first, through the worker, so that no request waits for
//! the unpin; nothing goes before the first use. By default no region of the warm-up goes, and what goes takes a
//! hundredth of the time that has passed to unpin and pin again, or less: so a program loses at most that, whatever its period.

use std::collections::VecDeque;
use std::time::Duration;

use super::pace::Pace;
use super::{Provisioner, Took};

/// When idle memory goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// After so long without use.
    pub after: Duration,
    /// Only as much as is cheap to pin again, and nothing of the warm-up.
    pub sparing: bool,
}

/// The part of the time that unpinning and pinning again may take.
const PART: u32 = 100;

/// So much of it is saved up at most, unless one region takes longer.
const SAVED: Duration = Duration::from_secs(6);

/// Between two looks: a part of the idle time, within these bounds.
const LOOKS: u32 = 4;
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(600);

impl Idle {
    /// The time between two looks.
    pub fn interval(&self) -> Duration {
        (self.after / LOOKS).clamp(OFTEN, SELDOM)
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Decay {
    /// When somebody looked, and where the order of releases was then.
    marks: VecDeque<(Duration, u64)>,
    looked: Option<Duration>,
    /// Unpinning and pinning again may take so long.
    saved: Duration,
    /// A region waits until so much is saved.
    wanted: Duration,
    pace: Pace,
    returned: u64,
}

impl Decay {
    pub(super) fn learn(&mut self, bytes: usize, took: Took) {
        self.pace.learn(bytes, took.filling + took.registering);
    }

    fn passes(&mut self, now: Duration) {
        let last = self.looked.replace(now).unwrap_or(now);
        let most = SAVED.max(self.wanted);
        self.saved = (self.saved + now.saturating_sub(last) / PART).min(most);
    }

    /// Sets a mark; returns the last one that is older than the idle time.
    fn mark(&mut self, now: Duration, releases: u64, after: Duration) -> Option<u64> {
        self.marks.push_back((now, releases));
        let is_old = |it: &(Duration, u64)| now.saturating_sub(it.0) >= after;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        self.marks.front().filter(|it| is_old(it)).map(|it| it.1)
    }

    /// Whether unpinning `bytes` and pinning them again is within what is saved, which is spent then. An unpin takes no longer
    /// than a pin; it counts as well, in case the program's launches wait for it.
    fn affords(&mut self, bytes: usize) -> bool {
        let cost = 2 * self.pace.of(bytes).unwrap_or_default();
        let rest = self.saved.checked_sub(cost);
        self.wanted = cost;
        self.saved = rest.unwrap_or(self.saved);
        rest.is_some()
    }
}

impl Provisioner {
    /// Lets regions go that nobody has used for the idle time, as the settings say; the worker unpins them.
    pub fn let_go_unused(&mut self, now: Duration) {
        let Some(idle) = self.settings.idle.filter(|_| !self.closed) else {
            return;
        };
        self.decay.passes(now);
        if self.engine.largest_set() == 0 {
            return;
        }
        let mark = self.engine.mark();
        let Some(mark) = self.decay.mark(now, mark, idle.after) else {
            return;
        };
        let keeps = if idle.sparing {
            self.warm.told_bytes(&self.settings)
        } else {
            0
        };
        let mut gone = 0;
        for (id, bytes) in self.engine.idle_since_before(mark) {
            let is_spared = keeps > 0 && self.held() < keeps.saturating_add(bytes);
            if is_spared || !self.may_return(bytes) {
                break;
            }
            self.engine.let_go(id);
            self.guard.returns(bytes);
            gone += bytes;
        }
        if gone > 0 {
            if !idle.sparing {
                self.warm.returned(gone, &self.settings);
            }
            // Else the worker would pin as much again, ahead of demand that has ended.
            self.ahead.clear();
        }
    }

    /// Whether an idle region of `bytes` bytes may go now: the engine's, or one that it does not have. Counts it as returned then.
    pub fn may_return(&mut self, bytes: usize) -> bool {
        let sparing = self.settings.idle.is_some_and(|it| it.sparing);
        let may = !sparing || self.decay.affords(bytes);
        if may {
            self.count_returned(bytes);
        }
        may
    }

    /// Counts `bytes` that go back by themselves.
    pub fn count_returned(&mut self, bytes: usize) {
        self.decay.returned += bytes as u64;
    }

    /// A region was pinned that the engine does not have.
    pub fn pinned_beside(&mut self, bytes: usize, took: Took) {
        self.decay.learn(bytes, took);
    }

    /// Bytes that went back by themselves.
    pub fn returned_bytes(&self) -> u64 {
        self.decay.returned
    }
}
