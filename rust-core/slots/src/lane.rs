//! What a thread is about to ask for: a sequence of slots and a cursor in it.
//!
//! As long as requests come as planned, one comparison finds a request's slot. If one does not, the lane is in doubt
//! ([`align`](crate::align)): a request more or less costs little. If too many differ, the lane is lost, and looks for
//! the place that its last three sizes lead up to: so after a phase that the plan does not know, it goes on where it
//! is. A period holds several iterations where blocks live for longer than one: their slots take turns. Knows sizes and
//! indexes; no memory.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::align::{Doubt, REACH, State};
use crate::layout::{Lane, Slot};

/// A lost lane looks for its place by so many sizes.
const CLUE: usize = 3;

/// So many steps that it has passed may serve a request whose own slot is not free.
const PASSED: usize = 32;

/// A lane and its cursor.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// The prologue, then the period: a slot and its bytes.
    steps: Vec<(u32, usize)>,
    /// Where the period begins; behind the last step if there is none.
    period: usize,
    /// Steps of an iteration; 0 without a period.
    iteration: usize,
    /// The next step; behind the last one if the lane is over.
    at: usize,
    sure: Sure,
    /// The last sizes, the oldest first; zeros at the beginning.
    last: [usize; CLUE],
    /// What leads up to each step, sorted: a hash of the sizes up to it, and the step.
    clues: Vec<(u64, u32)>,
}

/// Whether the lane knows its place.
#[derive(Clone, Debug)]
enum Sure {
    Yes,
    InDoubt(Doubt),
    Lost,
}

/// What a lane says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// This slot is planned for it.
    Slot(u32),
    /// The same; the lane had lost its place and found it again.
    Found(u32),
    /// Nothing is planned for it.
    Nothing,
}

impl Course {
    pub(crate) fn new(lane: &Lane, slots: &[Slot]) -> Self {
        let step = |&slot: &u32| (slot, slots[slot as usize].bytes);
        let steps: Vec<_> = lane.prologue.iter().chain(&lane.period).map(step).collect();
        let mut course = Self {
            iteration: lane.period.len() / lane.turns.max(1) as usize,
            steps,
            period: lane.prologue.len(),
            at: 0,
            sure: Sure::Yes,
            last: [0; CLUE],
            clues: Vec::new(),
        };
        course.clues = course.make_clues();
        course
    }

    /// What is planned for a request of `bytes`, which is whole granules; the cursor moves behind it.
    #[inline]
    pub(crate) fn ask(&mut self, bytes: usize) -> Said {
        self.last.rotate_left(1);
        self.last[CLUE - 1] = bytes;
        match (&self.sure, self.steps.get(self.at)) {
            (Sure::Yes, Some(&(slot, wanted))) if wanted == bytes => {
                let next = self.at + 1;
                self.at = if next == self.steps.len() {
                    self.period
                } else {
                    next
                };
                Said::Slot(slot)
            }
            _ => self.ask_in_doubt(bytes),
        }
    }

    /// An iteration is over: in the period, the cursor goes to the begin of the next one, or back to that of the one that
    /// it has just begun. Returns whether it was elsewhere.
    pub(crate) fn iteration(&mut self) -> bool {
        let strayed = self.at > self.period && self.at < self.steps.len();
        let past = self.at.saturating_sub(self.period) % self.iteration.max(1);
        if !strayed || past == 0 {
            return false;
        }
        let begin = self.at - past;
        let next = begin + self.iteration;
        self.at = if past <= REACH as usize {
            begin
        } else if next < self.steps.len() {
            next
        } else {
            self.period
        };
        self.sure = Sure::Yes;
        true
    }

    /// How many steps it has.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The slots of the next steps.
    pub(crate) fn soon(&self, steps: usize) -> impl Iterator<Item = u32> {
        let steps = (0..steps.min(self.steps.len()) as isize)
            .map_while(|distance| self.at_distance(distance));
        steps.map(|step| self.steps[step].0)
    }

    /// The slots of so many bytes among the steps before the last one, the latest first.
    #[cold]
    pub(crate) fn passed(&self, bytes: usize) -> Vec<u32> {
        let most = PASSED.min(self.steps.len()) as isize;
        let steps = (2..=most).filter_map(|back| self.at_distance(-back));
        let alike = steps.filter(|&step| self.steps[step].1 == bytes);
        alike.map(|step| self.steps[step].0).collect()
    }

    /// Whether the lane may begin with a request of `bytes`.
    pub(crate) fn may_begin_with(&self, bytes: usize) -> bool {
        let first = self.steps.iter().take(CLUE);
        first.into_iter().any(|&(_, wanted)| wanted == bytes)
    }

    #[cold]
    fn ask_in_doubt(&mut self, bytes: usize) -> Said {
        if matches!(self.sure, Sure::Yes) {
            self.sure = Sure::InDoubt(Doubt::new());
        }
        let Sure::InDoubt(mut doubt) = std::mem::replace(&mut self.sure, Sure::Lost) else {
            return self.find();
        };
        let verdict = doubt.ask(|distance| {
            let step = self.at_distance(distance);
            step.is_some_and(|step| self.steps[step].1 == bytes)
        });
        let step = verdict.step.and_then(|distance| self.at_distance(distance));
        // At the end of a lane without a period there is no step behind the last one.
        self.at = self.at_distance(verdict.moved).unwrap_or(self.steps.len());
        self.sure = match verdict.state {
            State::Sure => Sure::Yes,
            State::Doubt => Sure::InDoubt(doubt),
            State::Lost => Sure::Lost,
        };
        match (step, &self.sure) {
            (Some(step), _) => Said::Slot(self.steps[step].0),
            (None, Sure::Lost) => self.find(),
            (None, _) => Said::Nothing,
        }
    }

    /// Lost: goes to the step that the last sizes lead up to; of several, one beside the cursor.
    fn find(&mut self) -> Said {
        let clue = hash(self.last);
        let next = self
            .clues
            .partition_point(|&it| it < (clue, self.at as u32));
        let leads = |index: usize| self.clues.get(index).filter(|it| it.0 == clue);
        let before = next.checked_sub(1).and_then(leads);
        let places = [leads(next), before].into_iter().flatten();
        let nearest = places.min_by_key(|it| (it.1 as usize).abs_diff(self.at));
        let Some(&(_, step)) = nearest else {
            return Said::Nothing;
        };
        self.at = step as usize;
        let slot = self.steps[self.at].0;
        self.at = self.at_distance(1).unwrap_or(self.steps.len());
        // It may be the wrong one of several.
        self.sure = Sure::InDoubt(Doubt::new());
        Said::Found(slot)
    }

    /// The step at a distance from the cursor; `None` beyond the ends of a sequence that has any.
    fn at_distance(&self, distance: isize) -> Option<usize> {
        let length = (self.steps.len() - self.period) as isize;
        let period = self.period as isize;
        let step = self.at as isize + distance;
        let step = if step >= period && length > 0 {
            period + (step - period) % length
        } else if self.at >= self.period && length > 0 {
            // Back, from the period's begin to its end: the prologue is over.
            period + (step - period).rem_euclid(length)
        } else {
            step
        };
        usize::try_from(step)
            .ok()
            .filter(|&step| step < self.steps.len())
    }

    fn make_clues(&self) -> Vec<(u64, u32)> {
        let size = |at: usize| self.steps[at].1;
        let straight = (CLUE - 1..self.steps.len())
            .map(|at| (hash([size(at - 2), size(at - 1), size(at)]), at as u32));
        // A period's first steps follow its last ones.
        let length = self.steps.len() - self.period;
        let back = |at: usize, by: usize| size(self.period + (at + 2 * length - by) % length);
        let around = (0..length.min(CLUE - 1)).map(|at| {
            let clue = hash([back(at, 2), back(at, 1), back(at, 0)]);
            (clue, (self.period + at) as u32)
        });
        let mut clues: Vec<_> = straight.chain(around).collect();
        clues.sort_unstable();
        clues
    }
}

fn hash(sizes: [usize; CLUE]) -> u64 {
    let mut hasher = DefaultHasher::new();
    sizes.hash(&mut hasher);
    hasher.finish()
}
