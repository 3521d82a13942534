//! How a lane begins with a thread, and goes on with the next one.

use super::{Course, Planned, Position, Unserved};
use crate::clues::CLUE;

impl Course {
    /// From its first step again, for another thread. What was learned of its blocks stays.
    pub(crate) fn begin_anew(&mut self) {
        self.at = 0;
        self.position = Position::Known;
        self.last_sizes = [0; CLUE];
        self.last_unserved = Unserved::Anywhere;
        self.drift.fits();
    }

    /// The same, but from a step with `bytes` on, where it has one: it may be the wrong one of several.
    pub(crate) fn begin_at(&mut self, bytes: usize) {
        let step = self.step_with(bytes);
        self.begin_anew();
        if let Some(step) = step {
            self.at = step;
            self.doubt();
        }
    }

    /// Whether it has a step with `bytes`. Asked of each lane with each request of a thread that none suits.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        self.clues.has(bytes)
    }

    /// The next step with `bytes`: the first in a row of them, if there is such a one.
    fn step_with(&self, bytes: usize) -> Option<usize> {
        let count = self.steps.len();
        let with = |&step: &usize| self.steps[step].1 == bytes;
        let next = || (0..count).map(|by| (self.at + by) % count).filter(with);
        let is_first = |&step: &usize| step > 0 && self.steps[step - 1].1 != bytes;
        next().find(is_first).or_else(|| next().next())
    }

    /// The lane's thread has ended. What it was unsure of says nothing of the next one.
    pub(crate) fn thread_ended(&mut self) {
        if !self.is_known() || self.drift.is_given_up() {
            self.begin_anew();
        }
    }

    /// Whether the lane is sure that a request of `bytes` comes next.
    pub(crate) fn goes_on_with(&self, bytes: usize) -> bool {
        self.is_known() && self.bytes(self.at) == Some(bytes)
    }

    /// Which of its first steps a request of `bytes` may be with which the lane begins.
    pub(crate) fn may_begin_with(&self, bytes: usize) -> Option<usize> {
        let first = self.steps.iter().take(CLUE);
        first.into_iter().position(|&(_, wanted)| wanted == bytes)
    }

    /// The last sizes, where the lane does not know what they lead up to.
    pub(crate) fn lost_with(&self) -> Option<[usize; CLUE]> {
        matches!(self.position, Position::Lost).then(|| self.latest_sizes())
    }

    /// The step that these sizes lead up to, while `live` bytes are in use; the cursor moves behind it.
    pub(crate) fn begin_behind(&mut self, sizes: [usize; CLUE], live: usize) -> Option<usize> {
        (self.last_sizes, self.oldest) = (sizes, 0);
        match self.find(live) {
            Planned::FoundStep(step) => Some(step),
            _ => {
                self.begin_anew();
                None
            }
        }
    }
}
