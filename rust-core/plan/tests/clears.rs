//! Plans of programs that empty the cache, in the hands of what serves requests: what a clear leaves.

use std::collections::HashMap;

use pinbuddy_events::Op;
use pinbuddy_plan::Plan;
use pinbuddy_slots::Slots;

use crate::programs::{Tape, planned, record};

/// Serves requests, each from its slot, until a clear ends the run: it is asked at each of them. Then says what is left.
fn run(plan: &Plan, events: &[Op], mut ends: impl FnMut(&mut Slots) -> bool) -> Slots {
    let mut slots = Slots::new(&plan.layout(plan.regions.len())).unwrap();
    for region in 0..plan.regions.len() {
        slots.pinned(region, (region + 1) << 40);
    }
    let mut live = HashMap::new();
    for event in events {
        match *event {
            Op::Request { id, bytes, thread, .. } => {
                let taken = slots.request(thread, bytes as usize).unwrap();
                live.insert(id, taken.slot);
            }
            Op::Free { id, .. } => assert!(slots.release(live[&id])),
            Op::Clear if ends(&mut slots) => break,
            _ => {}
        }
    }
    slots
}

/// Of each clear, whether it was foreseen.
fn foreseen(plan: &Plan, events: &[Op]) -> (Vec<bool>, Slots) {
    let mut foreseen = Vec::new();
    let left = run(plan, events, |slots| {
        foreseen.push(slots.foresees_a_clear());
        false
    });
    (foreseen, left)
}

/// Batches that are loaded ahead, and a state that is staged and freed before the cache is emptied, if it is.
fn staging(clears: bool) -> Tape {
    let mut tape = Tape::default();
    let mut ahead = tape.ask(1 << 20);
    for _ in 0..20 {
        let batch = std::mem::replace(&mut ahead, tape.ask(1 << 20));
        let staged = [64 << 20; 10].map(|it| tape.ask(it));
        tape.free(staged.into_iter().chain([batch]));
        tape.events.extend(clears.then_some(Op::Clear));
    }
    tape
}

#[test]
fn what_lives_where_the_cache_is_emptied_has_regions_of_its_own() {
    assert_eq!(planned(&staging(false).record(), 0).regions, [642 << 20]);
    let plan = planned(&staging(true).record(), 0);
    assert_eq!(plan.regions, [1 << 20, 1 << 20, 640 << 20]);
    // Wherever it is emptied while nothing is staged, one batch is all that stays.
    for at in [0, 1, 7, 19] {
        let mut foreseen = Vec::new();
        let mut slots = run(&plan, &staging(true).events, |slots| {
            foreseen.push(slots.foresees_a_clear());
            let ends = foreseen.len() > at;
            assert!(ends || slots.take_unwanted().is_empty());
            ends
        });
        assert_eq!(foreseen, vec![true; at + 1]);
        let left: Vec<usize> = slots.take_idle().into_iter().map(|it| it.1.len()).collect();
        assert_eq!(left.into_iter().sum::<usize>(), 641 << 20, "clear {at}");
    }
}

#[test]
fn one_clear_of_the_loop_foresees_the_next_and_one_behind_it_does_not() {
    let with = |clear: usize| {
        let (mut clears, mut tape) = (0.., staging(true));
        tape.events.retain(|it| !matches!(it, Op::Clear) || clears.next() == Some(clear));
        planned(&tape.record(), 0)
    };
    assert_eq!(with(9).lanes[0].clears, with(8).lanes[0].clears);
    assert_eq!(with(9).lanes[0].clears.len(), 1, "the next step of an iteration");
    assert!(with(19).lanes[0].clears.is_empty(), "behind the loop");
}

/// Epochs of thirteen batches, of which the last one is shorter; every five batches the cache is emptied.
fn epochs(count: u64) -> Vec<Op> {
    let mut events = Vec::new();
    for id in 0..13 * count {
        let bytes = if id % 13 == 12 { 5 << 20 } else { 8 << 20 };
        events.push(Op::request(id, bytes));
        events.extend(id.checked_sub(1).map(Op::free));
        events.extend((id % 5 == 4).then_some(Op::Clear));
    }
    events
}

#[test]
fn clears_that_come_at_another_step_of_each_iteration_are_foreseen() {
    let plan = planned(&record(&epochs(4)), 0);
    let (foreseen, _) = foreseen(&plan, &epochs(8));
    assert_eq!(foreseen, [true; 20], "{:?}", plan.lanes[0].clears);
}

#[test]
fn a_last_clear_behind_the_loop_returns_all_but_what_lives() {
    // A batch more is asked for than at the clears of the loop.
    let mut tape = staging(true);
    let last = tape.ask(1 << 20);
    tape.free([last - 11]);
    tape.events.push(Op::Clear);
    let plan = planned(&tape.record(), 0);
    let (foreseen, slots) = foreseen(&plan, &tape.events);
    let (last, before) = foreseen.split_last().unwrap();
    assert!(!last && before.iter().all(|it| *it), "{foreseen:?}");
    assert_eq!(plan.reserved() as usize - slots.idle_bytes(), 1 << 20);
}
