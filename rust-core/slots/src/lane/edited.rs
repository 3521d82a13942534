//! What tells an edited program from the planned one.

use super::Course;

/// One edit may be chance; with so many before the lane is sure of its place again, the program was edited. Found by trial: with 3 or 5
/// in its place, 22 or 27 of 150 edited trainings reserve a segment more than without a plan, instead of 18.
const EDITED: u8 = 2;

/// What a request says of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// It does as planned.
    Planned,
    /// One request more, less or other does not tell.
    Unknown,
    /// It was edited.
    Edited,
}

impl Course {
    /// What the last request, of so many bytes, says. Iterations that come again behind a beginning are a loop's, in which each
    /// request has its turn. In what comes once batches vary, and only sizes are known. O(steps).
    pub(crate) fn program(&self, bytes: usize) -> Program {
        let is_loop = (1..self.steps.len()).contains(&self.period);
        match is_loop {
            true if self.drift.edits() >= EDITED => Program::Edited,
            true if !self.is_known() => Program::Unknown,
            false if self.steps.iter().all(|it| it.1 != bytes) => Program::Edited,
            _ => Program::Planned,
        }
    }

    /// Whether the lane, which learns, has not asked as often yet as it has steps.
    pub(super) fn is_first_pass(&self) -> bool {
        self.habits.is_some() && (self.now() as usize) < self.steps.len()
    }
}
