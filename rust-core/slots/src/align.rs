//! Where in its sequence a lane is, while that is in doubt: edit distances in a band around the cursor.
//!
//! A request that is not the expected one was added to the sequence, stands for another one, or comes because others
//! were left out. Which of these it was shows later, so all are kept: for each step near the cursor, how many edits it
//! takes to be there. Requests that match bring one step ahead of the others; the lane is sure again once enough of
//! them came in a row. Knows numbers only.

/// How far from the cursor a lane may be, either way.
pub(crate) const REACH: isize = 8;

/// Steps in the band.
pub(crate) const BAND: usize = REACH as usize * 2 + 1;

/// As many matches in a row end the doubt.
const ENOUGH: u8 = 6;

/// More edits than this, and the lane is lost.
const LOST: u8 = 12;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    /// By distance from the cursor, from `-REACH` on: edits beyond those of the best.
    edits: [u8; BAND],
    /// Edits of the best since the doubt began, and matches since its last one.
    spent: u8,
    matches: u8,
    /// The requests in a row that were not planned, where each is taken to stand for a step.
    unplanned: i8,
    replaces: bool,
}

/// What a request that came in doubt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The step it is, as a distance from the cursor before; `None` for one that is not planned.
    pub(crate) step: Option<isize>,
    /// By how much the cursor moves.
    pub(crate) moved: isize,
    /// What is known after it.
    pub(crate) state: State,
}

/// How sure a lane is of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The cursor is where the lane is.
    Sure,
    /// It may be nearby.
    Doubt,
    /// It is not nearby.
    Lost,
}

impl Doubt {
    /// The cursor was right so far. `replaces`: where both may be, a request that is not planned stands for a step, rather
    /// than being added.
    pub(crate) fn new(replaces: bool) -> Self {
        // Steps behind the cursor were passed; those before it would have to be left out.
        let edits = std::array::from_fn(|index| match distance(index) {
            ahead @ 0.. => ahead as u8,
            _ => LOST,
        });
        Self { edits, spent: 0, matches: 0, unplanned: 0, replaces }
    }

    /// How many edits there were at least since it began.
    pub(crate) fn edits(&self) -> u8 {
        self.spent
    }

    /// A request comes; `alike` has a bit for each step of the band, from `-REACH` on: whether it is like the request.
    pub(crate) fn ask(&mut self, alike: u32) -> Verdict {
        // One step further at each end, since steps are one ahead of those that they follow.
        let mut next = [u8::MAX; BAND + 1];
        let mut step: Option<(u8, isize)> = None;
        let near = |at: isize| (at - isize::from(self.unplanned)).abs();
        for (index, &edits) in self.edits.iter().enumerate() {
            let at = distance(index);
            // Added, or in another's place.
            next[index] = next[index].min(edits.saturating_add(1));
            next[index + 1] = next[index + 1].min(edits.saturating_add(1));
            if alike >> index & 1 == 1 {
                next[index + 1] = next[index + 1].min(edits);
                if step.is_none_or(|(least, nearest)| (edits, near(at)) < (least, near(nearest))) {
                    step = Some((edits, at));
                }
            }
        }
        for index in 1..next.len() {
            // Left out.
            next[index] = next[index].min(next[index - 1].saturating_add(1));
        }
        let least = next.iter().copied().min().unwrap_or_default();
        let step = step.filter(|&(edits, _)| edits <= least).map(|(_, at)| at);
        // The best; of several the one that follows the step.
        let follows = step.map_or(0, |at| at + 1);
        let best = (0..next.len()).filter(|&index| next[index] == least);
        let moved = best.map(distance).min_by_key(|at| (at - follows).abs()).unwrap_or(0);
        // What comes into the band from beyond it is far.
        let mut wide = [LOST; 3 * BAND];
        let known = &mut wide[BAND..][..next.len()];
        known.iter_mut().zip(next).for_each(|(it, edits)| *it = (edits - least).min(LOST));
        let from = BAND.saturating_add_signed(moved);
        self.edits.copy_from_slice(&wide[from..from + BAND]);
        self.spent = self.spent.saturating_add(least);
        self.matches = if least == 0 && step.is_some() { self.matches + 1 } else { 0 };
        self.unplanned = match step {
            Some(_) => 0,
            None => (self.unplanned + i8::from(self.replaces)).min(REACH as i8),
        };
        let state = if self.matches >= ENOUGH {
            State::Sure
        } else if self.spent > LOST {
            State::Lost
        } else {
            State::Doubt
        };
        Verdict { step, moved, state }
    }
}

/// The distance from the cursor that an entry is about.
fn distance(index: usize) -> isize {
    index as isize - REACH
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps that requests are taken for, in a sequence that starts at step 8.
    fn steps(sequence: &[u32], requests: &[u32]) -> Vec<Option<usize>> {
        let mut at = 8_isize;
        let mut doubt = Doubt::new(false);
        let of = |at: isize| usize::try_from(at).ok().and_then(|at| sequence.get(at));
        let ask = |request: &u32| {
            let alike = (0..BAND).filter(|&index| of(at + distance(index)) == Some(request));
            let verdict = doubt.ask(alike.fold(0, |all, index| all | 1 << index));
            let step = verdict.step.map(|distance| (at + distance) as usize);
            at += verdict.moved;
            step
        };
        requests.iter().map(ask).collect()
    }

    const SEQUENCE: [u32; 16] = [9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8];

    #[test]
    fn one_more_one_less_and_another() {
        let is = |requests: &[u32]| steps(&SEQUENCE, requests);
        assert_eq!(is(&[0, 1, 2]), [None, Some(8), Some(9)], "one more");
        assert_eq!(is(&[2, 3, 4]), [Some(9), Some(10), Some(11)], "one less");
        assert_eq!(is(&[0, 2, 3]), [None, Some(9), Some(10)], "another");
        // As if four were left out; but then the sequence goes on as before.
        assert_eq!(is(&[5, 2, 3, 4])[1..], [Some(9), Some(10), Some(11)]);
        let many_less = is(&[4, 5, 6, 7, 8]);
        assert_eq!(many_less[3..], [Some(14), Some(15)], "three less: {many_less:?}");
    }

    #[test]
    fn matches_in_a_row_make_sure_and_edits_in_a_row_lose() {
        let mut doubt = Doubt::new(false);
        for _ in 1..ENOUGH {
            assert_eq!(doubt.ask(1 << REACH).state, State::Doubt);
        }
        assert_eq!(doubt.ask(1 << REACH).state, State::Sure);
        let mut doubt = Doubt::new(false);
        let states: Vec<_> = (0..=LOST).map(|_| doubt.ask(0).state).collect();
        assert_eq!(states[LOST as usize - 1..], [State::Doubt, State::Lost]);
    }
}
