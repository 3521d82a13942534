//! Where a lane that learns may begin anew: between two iterations, as few bytes are in use.

use super::{Course, Planned, Position, Unserved};
use crate::habits::News;
use crate::rests::RestingSteps;

impl Course {
    /// The program is between two iterations, and the lane is elsewhere: goes to the next step at which it may be.
    #[cold]
    pub(super) fn ask_at_rest(&mut self, bytes: usize, live: usize) -> Planned {
        let Some(step) = self.step_at_rest(bytes) else {
            let planned = self.ask_in_doubt(bytes, live);
            self.last_unserved = Unserved::Anywhere;
            return planned;
        };
        self.at = step;
        self.at = self.at_distance(1).unwrap_or(self.steps.len());
        if !matches!(self.position, Position::Marked(_)) {
            self.position = Position::Known;
        }
        Planned::FoundStep(step)
    }

    /// The step at which a request of so many bytes may begin where the program rests. O(log steps), and O(steps) once
    /// after each period that has changed what a rest is.
    pub(super) fn step_at_rest(&mut self, bytes: usize) -> Option<usize> {
        if self.resting_steps.is_none() {
            let habits = self.habits.as_ref()?;
            let mut resting = RestingSteps::default();
            for step in (0..self.steps.len()).filter(|&step| habits.is_resting_at(step)) {
                resting.flip(self.steps[step].1, self.is_inside(step), step);
            }
            self.resting_steps = Some(resting);
        }
        let resting = self.resting_steps.as_ref()?;
        resting.find(bytes, self.at, self.period)
    }

    /// Keeps the list of steps at rest what it says.
    #[cold]
    pub(super) fn hear(&mut self, news: News, step: usize) {
        let is_inside = self.is_inside(step);
        match (news, &mut self.resting_steps) {
            (News::Step, Some(resting)) => resting.flip(self.steps[step].1, is_inside, step),
            (News::Rest, resting) => *resting = None,
            _ => {}
        }
    }

    /// Whether no iteration of the period begins with this step.
    pub(super) fn is_inside(&self, step: usize) -> bool {
        let past = step.checked_sub(self.period);
        past.is_none_or(|past| past % self.iteration.max(1) != 0)
    }
}
