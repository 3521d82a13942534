//! The list of steps at rest beside a look at all steps; and what a lost lane takes a hash for.

use proptest::prelude::*;

use super::*;
use crate::layout::GRANULE;

impl Course {
    /// As if no request had moved the cursor.
    pub(crate) fn corrupt_cursor(&mut self) {
        self.at = 0;
    }
}

/// Steps of these granules, the first of which are the prologue, in a period of two iterations.
fn course(granules: &[usize], prologue: usize) -> Course {
    let slot = |(index, &it): (usize, &usize)| Slot { bytes: it * GRANULE, region: 0, offset: index * 8 * GRANULE };
    let slots: Vec<_> = granules.iter().enumerate().map(slot).collect();
    let (prologue, period) = (0..slots.len() as u32).partition(|&it| (it as usize) < prologue);
    let lane = Lane { prologue, period, turns: 2, ..Lane::default() };
    let mut course = Course::new(&lane, &slots);
    course.learn(1 << 30, |slot| slot..slot + 1, slots.len());
    course
}

/// Every step in turn, as [`Course::step_at_rest`] prefers them.
fn by_looking_at_all(course: &Course, bytes: usize) -> Option<usize> {
    let (period, at, count) = (course.period, course.at, course.steps.len());
    let begins = (period..count).step_by(course.iteration.max(1));
    let mut all = begins.chain(at..count).chain(period..at);
    let habits = course.habits.as_ref().unwrap();
    all.find(|&step| course.steps[step].1 == bytes && habits.is_resting_at(step))
}

proptest! {
    #[test]
    fn the_list_of_rests_answers_as_a_look_at_all_steps(
        granules in prop::collection::vec(1..4_usize, 2..40),
        prologue in 0..6_usize,
        asked in prop::collection::vec((0..8_u8, 1..4_usize, 0..4_usize), 1..400),
    ) {
        let mut course = course(&granules, prologue.min(granules.len()));
        for (odd, other, live) in asked {
            // Mostly as planned, so that periods end.
            let planned = course.bytes(course.at).filter(|_| odd > 0);
            course.ask(planned.unwrap_or(other * GRANULE), live << 23);
            for bytes in (1..5).map(|it| it * GRANULE) {
                let expected = by_looking_at_all(&course, bytes);
                // From a list of its own as well as from the one that has been kept.
                if odd == 1 {
                    prop_assert_eq!(course.clone().step_at_rest(bytes), expected);
                } else {
                    prop_assert_eq!(course.step_at_rest(bytes), expected);
                }
            }
        }
    }
}

/// Plans are not trusted, and whoever writes one may look for sizes with the same hash.
#[test]
fn a_lost_lane_takes_no_step_of_another_size_though_the_hashes_are_equal() {
    let mut course = course(&[1, 2, 3, 1], 0);
    course.clues.mistake([0, 0, 9 * GRANULE], 1);
    course.position = Position::Lost;
    assert_eq!(course.ask(9 * GRANULE, 0), Planned::Nothing);
}

/// Found at rest, it still has to be shown that the plan fits from the mark on.
#[test]
fn a_marked_lane_that_is_found_at_rest_stays_marked() {
    for (position, stays) in [(Position::Marked(2), true), (Position::Lost, false)] {
        let mut course = course(&[1, 2, 3, 1, 2, 3], 0);
        // Three periods, at rest where each iteration begins, make that known.
        for _ in 0..3 {
            for (step, granules) in [1, 2, 3, 1, 2, 3].into_iter().enumerate() {
                course.ask(granules * GRANULE, (step % 3) << 28);
            }
        }
        course.at = 2;
        course.position = position;
        let found = course.ask_at_rest(GRANULE, 0);
        assert!(matches!(found, Planned::FoundStep(_)), "{found:?}");
        assert_eq!(matches!(course.position, Position::Marked(2)), stays);
        assert!(course.is_known());
    }
}
