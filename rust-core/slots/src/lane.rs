//! What a thread is about to ask for: a sequence of slots and a cursor in it.
//!
//! As long as requests come as planned, one comparison finds a request's slot. If one does not, the lane is in doubt
//! ([`align`](crate::align)): a request more or less costs little. If too many differ, the lane is lost, and looks for
//! the place that its last three sizes lead up to: so after a phase that the plan does not know, it goes on where it
//! is. A period holds several iterations where blocks live for longer than one: their slots take turns. Knows sizes and
//! indexes; no memory.

use std::ops::Range;

use crate::align::{BAND, Doubt, REACH, State};
use crate::clues::{CLUE, Clues};
use crate::drift::Drift;
use crate::habits::{Habits, News};
use crate::layout::{Lane, Slot};
use crate::rests::RestingSteps;

/// So many steps that it has passed may serve a request whose own slot is not free.
const PASSED: usize = 32;

/// So many cells are looked at to learn from a plan how long blocks live. No recorded program's has as many; one that was
/// written by hand may have long slots in each of millions of steps, and would be learned from for hours.
const MOST_LOOKS: usize = 1 << 28;

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
    position: Position,
    /// The last sizes, zeros at the beginning; the oldest is at `oldest`. Moving them all would wait for what the last
    /// request has stored.
    last_sizes: [usize; CLUE],
    oldest: usize,
    /// What leads up to each step.
    clues: Clues,
    /// Where the lane learns how it behaves.
    habits: Option<Box<Habits>>,
    /// Where it rests by them, once somebody has asked since that changed.
    resting_steps: Option<RestingSteps>,
    last_unserved: Unserved,
    /// Whether the plan fits.
    drift: Drift,
}

/// Whether the cursor is where the lane is.
#[derive(Clone, Debug)]
enum Position {
    /// It is: requests came as planned.
    Known,
    /// The mark of an iteration has put it before this step. The same, but that [`CLUE`] requests from there on have to come
    /// as planned before that shows that the plan fits.
    Marked(usize),
    /// It may be nearby.
    Doubted(Doubt),
    /// It is not: the last sizes have to tell.
    Lost,
}

/// The last request without a slot, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// The lane does not know its position: no slot is needed soon.
    Anywhere,
    /// It may stand for this step.
    InsteadOf(usize),
}

/// What is planned for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    /// This step.
    Step(usize),
    /// The same; the lane had lost its position and found it again.
    FoundStep(usize),
    Nothing,
}

impl Course {
    pub(crate) fn new(lane: &Lane, slots: &[Slot]) -> Self {
        let step = |&slot: &u32| (slot, slots[slot as usize].bytes);
        let steps: Vec<_> = lane.prologue.iter().chain(&lane.period).map(step).collect();
        let sizes: Vec<_> = steps.iter().map(|it| it.1).collect();
        Self {
            clues: Clues::new(&sizes, lane.prologue.len()),
            iteration: lane.period.len() / lane.turns.max(1) as usize,
            period: lane.prologue.len(),
            at: 0,
            position: Position::Known,
            last_sizes: [0; CLUE],
            oldest: 0,
            habits: None,
            resting_steps: None,
            last_unserved: Unserved::Anywhere,
            drift: Drift::new(steps.len(), steps.len() > lane.prologue.len()),
            steps,
        }
    }

    /// From now on the lane learns how it behaves, in regions of so many bytes; at first, from the plan, how long blocks
    /// live at most: until their places are used again. `cells` are those of a step's slot, of so many.
    pub(crate) fn learn(&mut self, bytes: usize, cells: impl Fn(u32) -> Range<u32>, count: usize) {
        let length = self.steps.len();
        let mut habits = Habits::new(length, bytes);
        let mut last = vec![u32::MAX; count];
        let mut looks = 0_usize;
        let twice = (0..length).chain(self.period..length);
        for (at, step) in (0_u32..).zip(twice) {
            let cells = cells(self.steps[step].0);
            looks = looks.saturating_add(cells.len());
            if looks > MOST_LOOKS {
                break;
            }
            for cell in cells {
                let before = std::mem::replace(&mut last[cell as usize], at);
                if before != u32::MAX {
                    habits.at_most(self.at_count(before as usize), at - before);
                }
            }
        }
        self.habits = Some(Box::new(habits));
    }

    /// The step of the lane's n-th request.
    fn at_count(&self, count: usize) -> usize {
        match count.checked_sub(self.steps.len()) {
            None => count,
            Some(more) => self.period + more,
        }
    }

    /// What is planned for a request of `bytes`, which is whole granules, while `live` bytes are in use; the cursor moves
    /// behind it.
    #[inline]
    pub(crate) fn ask(&mut self, bytes: usize, live: usize) -> Planned {
        self.last_sizes[self.oldest] = bytes;
        self.oldest = match self.oldest + 1 {
            CLUE => 0,
            next => next,
        };
        let step = self.at;
        let mut is_resting = false;
        if let Some(habits) = &mut self.habits {
            habits.asked();
            is_resting = habits.is_resting(live) && step >= self.period;
            if is_resting && habits.works_at(step) {
                return self.ask_at_rest(bytes, live);
            }
        }
        match self.steps.get(step) {
            Some(&(_, planned)) if planned == bytes && self.is_known() => {
                let next = step + 1;
                let is_over = next == self.steps.len();
                self.at = if is_over { self.period } else { next };
                if let Some(habits) = &mut self.habits {
                    let news = habits.saw(step, live, is_over);
                    if news != News::None {
                        self.hear(news, step);
                    }
                }
                Planned::Step(step)
            }
            _ if is_resting => self.ask_at_rest(bytes, live),
            _ => self.ask_in_doubt(bytes, live),
        }
    }

    /// The slot of a step.
    pub(crate) fn slot(&self, step: usize) -> u32 {
        self.steps[step].0
    }

    /// The same; none behind the last step.
    pub(crate) fn slot_at(&self, step: usize) -> Option<u32> {
        self.steps.get(step).map(|it| it.0)
    }

    /// The number of the last request.
    pub(crate) fn now(&self) -> u32 {
        self.habits.as_ref().map_or(0, |it| it.now())
    }

    /// The block of a step is free again, which it was given when the last request had this number.
    #[inline]
    pub(crate) fn over(&mut self, step: usize, since: u32) {
        if let Some(habits) = &mut self.habits {
            habits.over(step, since);
        }
    }

    /// For how many requests a block of this step lives; as far as is known, to the end.
    pub(crate) fn life(&self, step: usize) -> Option<usize> {
        self.habits.as_ref()?.life(step)
    }

    /// The slot of the last request's step is not free.
    pub(crate) fn missed(&mut self, step: usize) {
        self.last_unserved = Unserved::InsteadOf(step);
    }

    /// The bytes of a step.
    pub(crate) fn bytes(&self, step: usize) -> Option<usize> {
        self.steps.get(step).map(|it| it.1)
    }

    /// What the last request was, if it got no slot.
    pub(crate) fn last_unserved(&self) -> Unserved {
        if self.drift.is_others() { Unserved::Anywhere } else { self.last_unserved }
    }

    /// Whether requests are expected to come as planned.
    #[inline]
    fn is_known(&self) -> bool {
        matches!(self.position, Position::Known | Position::Marked(_))
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
        self.position = Position::Marked(self.at);
        true
    }

    /// The step that comes next, if that is known: of the period's iterations, the first one's.
    pub(crate) fn next(&self) -> Option<usize> {
        let past = self.at.checked_sub(self.period);
        let next = past.map_or(self.at, |past| self.period + past % self.iteration.max(1));
        self.is_known().then_some(next)
    }

    /// How many steps it has.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// How many steps an iteration has; all of them without a period.
    pub(crate) fn turn(&self) -> usize {
        match self.iteration {
            0 => self.len(),
            steps => steps,
        }
    }

    /// Whether the plan fits the lane.
    pub(crate) fn drift(&self) -> &Drift {
        &self.drift
    }

    /// The slots of the next steps; none once the lane is given up.
    pub(crate) fn next_slots(&self, steps: usize) -> impl Iterator<Item = u32> {
        let all = if self.drift.is_given_up() { 0 } else { self.steps.len() };
        let steps = (0..steps.min(all) as isize).map_while(|distance| self.at_distance(distance));
        steps.map(|step| self.steps[step].0)
    }

    /// The distances of those of so many bytes among the steps before the last one, the latest first.
    pub(crate) fn passed(&self, bytes: usize) -> impl Iterator<Item = isize> + use<> {
        let most = PASSED.min(self.steps.len());
        let alike = self.alike(bytes, -(most as isize), most.saturating_sub(1));
        let back = (2..=most).filter(move |back| alike >> (most - back) & 1 == 1);
        back.map(|back| -(back as isize))
    }

    #[cold]
    fn ask_in_doubt(&mut self, bytes: usize, live: usize) -> Planned {
        let had_fit = match self.position {
            Position::Known => true,
            Position::Marked(from) => !(from..from + CLUE).contains(&self.at),
            Position::Doubted(_) | Position::Lost => false,
        };
        if had_fit {
            self.drift.fits();
        }
        if self.is_known() {
            self.doubt();
        }
        let planned = self.ask_nearby(bytes, live);
        self.drift.saw(planned != Planned::Nothing);
        if self.is_known() {
            self.drift.fits();
        }
        planned
    }

    /// The cursor may be wrong from now on.
    fn doubt(&mut self) {
        self.position = Position::Doubted(Doubt::new(self.habits.is_some()));
    }

    /// What is planned near the cursor, or else where the last sizes lead.
    fn ask_nearby(&mut self, bytes: usize, live: usize) -> Planned {
        let before = self.at;
        let Position::Doubted(mut doubt) = std::mem::replace(&mut self.position, Position::Lost) else {
            return self.find(live);
        };
        let verdict = doubt.ask(self.alike(bytes, -REACH, BAND));
        self.drift.doubted(doubt.edits());
        let step = verdict.step.and_then(|distance| self.at_distance(distance));
        // At the end of a lane without a period there is no step behind the last one.
        self.at = self.at_distance(verdict.moved).unwrap_or(self.steps.len());
        match verdict.state {
            State::Sure => self.position = Position::Known,
            State::Doubt => self.position = Position::Doubted(doubt),
            State::Lost => self.drift.lost(self.is_first_pass()),
        }
        if let Some(step) = step {
            return Planned::Step(step);
        }
        if verdict.state == State::Lost {
            return self.find(live);
        }
        let habits = self.habits.as_deref();
        self.last_unserved = match habits.is_some_and(|it| it.strayed(before, live)) {
            true => Unserved::Anywhere,
            false => Unserved::InsteadOf(before),
        };
        Planned::Nothing
    }

    /// Which of so many steps in a row have so many bytes, by bits; the first of them is at a distance from the cursor.
    fn alike(&self, bytes: usize, from: isize, count: usize) -> u32 {
        let begin = self.at.checked_add_signed(from).filter(|begin| *begin >= self.period);
        let row = begin.and_then(|begin| self.steps.get(begin..begin + count));
        let bytes_of = |index: usize| match row {
            Some(row) => Some(row[index].1),
            None => self.at_distance(from + index as isize).and_then(|step| self.bytes(step)),
        };
        (0..count).fold(0, |all, index| all | u32::from(bytes_of(index) == Some(bytes)) << index)
    }

    /// The last sizes, the oldest first.
    fn latest_sizes(&self) -> [usize; CLUE] {
        let mut last = self.last_sizes;
        last.rotate_left(self.oldest);
        last
    }

    /// Goes to the step that the last sizes lead up to; of the nearest of several, to the one at which nearest as much was live as is
    /// now, and of these to the nearest.
    fn find(&mut self, live: usize) -> Planned {
        self.last_unserved = Unserved::Anywhere;
        let last = self.latest_sizes();
        let differs = |step| self.habits.as_ref().map_or(0, |it| it.differs(step, live));
        let far = |step: usize| (differs(step), step.abs_diff(self.at));
        // Hashes may be equal by chance, or since the plan's author has looked for that: a step with less would overlap others.
        let alike = |&step: &usize| self.steps[step].1 == last[CLUE - 1];
        let places = self.clues.places(last, self.at).filter(alike);
        let nearest = places.min_by_key(|&step| far(step));
        let Some(step) = nearest else {
            return Planned::Nothing;
        };
        self.at = step;
        self.at = self.at_distance(1).unwrap_or(self.steps.len());
        // It may be the wrong one of several.
        self.doubt();
        Planned::FoundStep(step)
    }

    /// The step at a distance from the cursor; `None` beyond the ends of a sequence that has any.
    pub(crate) fn at_distance(&self, distance: isize) -> Option<usize> {
        let length = (self.steps.len() - self.period) as isize;
        let period = self.period as isize;
        let step = self.at as isize + distance;
        let past = step - period;
        // Back, from the period's begin to its end: the prologue is over.
        let step = if length > 0 && (past >= 0 || self.at >= self.period) {
            // Nearly all are within it, and a division takes as long as all else here.
            period + if (0..length).contains(&past) { past } else { past.rem_euclid(length) }
        } else {
            step
        };
        usize::try_from(step).ok().filter(|&step| step < self.steps.len())
    }
}

pub(crate) mod edited;
mod rest;
#[cfg(test)]
mod tests;
mod threads;
