//! How a lane begins with a thread, and goes on with the next one.

use super::{Course, Odd, Sure};
use crate::clues::CLUE;

impl Course {
    /// From its first step again, for another thread. What was learned of its blocks stays.
    pub(crate) fn begin_anew(&mut self) {
        self.at = 0;
        self.sure = Sure::Yes;
        self.last = [0; CLUE];
        self.odd = Odd::Lost;
        self.put = None;
        self.drift.is_sure();
    }

    /// Whether the lane is sure that a request of `bytes` comes next.
    pub(crate) fn goes_on_with(&self, bytes: usize) -> bool {
        matches!(self.sure, Sure::Yes) && self.bytes(self.at) == Some(bytes)
    }

    /// Whether the lane may begin with a request of `bytes`.
    pub(crate) fn may_begin_with(&self, bytes: usize) -> bool {
        let first = self.steps.iter().take(CLUE);
        first.into_iter().any(|&(_, wanted)| wanted == bytes)
    }
}
