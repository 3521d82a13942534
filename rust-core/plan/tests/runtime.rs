//! Plans in the hands of what serves requests with them: `pinbuddy-slots`, as in a run.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use pinbuddy_events::Op;
use pinbuddy_plan::{Plan, try_out};

use crate::programs::{changed, planned, record, shifted, twice};

/// The requests that slots serve, in percent. Others get what is idle, as in a run.
fn hits(plan: &Plan, events: &[Op]) -> f64 {
    let record = record(events);
    let tried = try_out(&record, plan);
    println!("{} requests, {tried:?}", record.len());
    100.0 * tried.hits as f64 / record.len() as f64
}

#[test]
fn blocks_that_live_for_several_iterations_take_turns() {
    let mut events = Vec::new();
    for iteration in 0..30 {
        events.push(Op::Iteration);
        let id = iteration * 100;
        for own in 0..30 {
            let bytes = (5 + own % 11) << 20;
            events.push(Op::request(id + own, bytes));
            // One in three lives for two iterations and a half.
            if own % 3 > 0 {
                events.push(Op::free(id + own));
            }
            if own == 15 && iteration >= 2 {
                let gone = (0..30).step_by(3).map(|own| Op::free(id - 200 + own));
                events.extend(gone);
            }
        }
    }
    let plan = planned(&record(&events), 2_000);
    let (steps, turns) = (plan.lanes[0].period.len(), plan.lanes[0].turns);
    assert_eq!((steps % 90, turns as usize), (0, steps / 30));
    let found = hits(&plan, &events);
    assert!(found >= 99.0, "{found}");
}

/// Layers of five sizes: all of a step lives until its end, or a pipeline stage's batches take turns.
fn layers(ahead: usize, batches: usize) -> Vec<Op> {
    let (mut events, mut next) = (Vec::new(), 0);
    for _ in 0..12 {
        let mut open = std::collections::VecDeque::new();
        for batch in 0..batches + ahead {
            if batch >= ahead {
                let ids: std::ops::Range<u64> = open.pop_front().unwrap();
                events.extend(ids.rev().map(Op::free));
            }
            if batch < batches {
                let begin = next;
                for at in 0..30 {
                    let bytes = [8, 12, 8, 8, 28][at % 5] << 20;
                    let (id, lane) = (next, 0);
                    events.push(Op::request(id, bytes).on_thread(lane));
                    next += 1;
                }
                open.push_back(begin..next);
            }
        }
    }
    events
}

#[test]
fn equal_layers_find_their_slots_although_requests_differ() {
    for (ahead, batches) in [(1, 1), (4, 12), (3, 16)] {
        let events = layers(ahead, batches);
        let plan = planned(&record(&events), 0);
        let others = [
            changed(&events, 50, 3),
            shifted(&events, 25, 3),
            shifted(&events, 50, 3),
            twice(&events, 25, 3),
            twice(&events, 50, 3),
        ];
        let found: Vec<f64> = others.iter().map(|it| hits(&plan, it)).collect();
        println!("{ahead} {batches}: {found:.2?}");
        let least = found.into_iter().fold(100.0, f64::min);
        assert!(least >= 90.0, "{ahead}, {batches}: {least}");
    }
}

#[test]
fn what_is_freed_when_the_program_ends_is_kept_for_good() {
    // The optimizer's state is made in the first iteration; the interpreter frees it at the end.
    let mut events = Vec::new();
    let mut next = 0..;
    let mut ask = |events: &mut Vec<Op>, mib: u64| {
        let (id, bytes, lane) = (next.next().unwrap(), mib << 20, 0);
        events.push(Op::request(id, bytes).on_thread(lane));
        id
    };
    let mut state = Vec::new();
    for iteration in 0..8 {
        let live: Vec<u64> = [5, 9, 6, 12].map(|mib| ask(&mut events, mib)).into();
        events.extend(live.into_iter().map(Op::free));
        if iteration == 0 {
            state.extend([20, 31, 22].map(|mib| ask(&mut events, mib)));
        }
    }
    let at_the_end = state.into_iter().map(Op::free);
    let whole: Vec<Op> = events.iter().copied().chain(at_the_end).collect();
    for events in [&events, &whole] {
        let plan = planned(&record(events), 0);
        assert_eq!(plan.regions, [105 << 20]);
        assert!(hits(&plan, events) >= 100.0);
    }
}
