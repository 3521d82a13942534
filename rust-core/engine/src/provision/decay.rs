//! Idle memory goes back by itself: which regions nobody has used for the idle time.
//!
//! The caller looks now and then, and says what time it is. Each look marks the engine's own order of releases, so that a
//! request notes no time: a region that is idle since before a mark has been idle since the time of that mark.
//!
//! Invariants: only wholly idle regions go, the least recently used first, through the worker, so that no request waits for
//! the unpin; nothing goes before the first use.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Provisioner, Settings};

/// Between two looks: a part of the idle time, within these bounds.
const LOOKS: u32 = 4;
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(600);

impl Settings {
    /// The time between two looks for what nobody has used for so long.
    pub fn looks_each(after: Duration) -> Duration {
        (after / LOOKS).clamp(OFTEN, SELDOM)
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Decay {
    /// When somebody looked, and where the order of releases was then.
    marks: VecDeque<(Duration, u64)>,
}

impl Decay {
    /// Sets a mark; returns the last one that is older than the idle time.
    fn mark(&mut self, now: Duration, releases: u64, after: Duration) -> Option<u64> {
        self.marks.push_back((now, releases));
        let is_old = |it: &(Duration, u64)| now.saturating_sub(it.0) >= after;
        while self.marks.get(1).is_some_and(is_old) {
            self.marks.pop_front();
        }
        self.marks.front().filter(|it| is_old(it)).map(|it| it.1)
    }
}

impl Provisioner {
    /// Lets regions go that nobody has used for the idle time; the worker unpins them.
    pub fn let_go_unused(&mut self, now: Duration) {
        let Some(after) = self.settings.idle.filter(|_| !self.closed) else {
            return;
        };
        if self.engine.largest_set() == 0 {
            return;
        }
        let mark = self.engine.mark();
        let Some(mark) = self.decay.mark(now, mark, after) else {
            return;
        };
        let gone = self.engine.let_go_idle_since_before(mark);
        if !gone.is_empty() {
            gone.iter().for_each(|bytes| self.guard.returns(*bytes));
            self.warm.returned(gone.iter().sum(), &self.settings);
            // Else the worker would pin as much again, ahead of demand that has ended.
            self.ahead.clear();
        }
    }
}
