//! Programs at random: every plan holds its invariants, and one of a program that repeats itself serves it. Which places blocks
//! have that live at once, `script`'s own tests say.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use pinbuddy_events::Op;
use pinbuddy_plan::check_plan;
use pinbuddy_plan::file::GRANULE;
use proptest::prelude::*;

use crate::programs::{planned, record};

fn event() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![8 => 1..30 * GRANULE, 1 => any::<u64>(), 1 => Just(0)];
    let lane = prop_oneof![9 => 0_u32..3, 1 => any::<u32>()];
    prop_oneof![
        6 => (0_u64..20, bytes, lane).prop_map(|(id, bytes, lane)| Op::request(id, bytes).on_thread(lane)),
        5 => (0_u64..20).prop_map(Op::free),
        1 => Just(Op::Iteration),
        1 => Just(Op::Clear),
    ]
}

/// The steps of an iteration: requests that are over so many requests later.
fn body() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((1_u64..40, 0_usize..60), 1..30)
}

/// Iterations that do the same each time.
fn repeated(body: &[(u64, usize)], iterations: usize, marks: bool) -> Vec<Op> {
    let mut events = Vec::new();
    let total = body.len() * iterations;
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); total + 100];
    for at in 0..total {
        if marks && at % body.len() == 0 {
            events.push(Op::Iteration);
        }
        let (granules, lives) = body[at % body.len()];
        let lives = lives % (2 * body.len());
        events.push(Op::request(at as u64, granules * GRANULE));
        ends[at + lives].push(at as u64);
        events.extend(ends[at].drain(..).map(Op::free));
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn anything_can_be_planned(events in prop::collection::vec(event(), 0..200)) {
        let record = record(&events);
        let plan = planned(&record, 20);
        if plan.slots.is_empty() && record.peak() < 1 << 30 {
            prop_assert!(plan.reserved() >= record.peak());
        }
    }

    #[test]
    fn one_lane_that_repeats_itself_is_served(body in body(), iterations in 6_usize..10, marks: bool) {
        let record = record(&repeated(&body, iterations, marks));
        let plan = planned(&record, 20);
        let tried = check_plan(&record, &plan);
        prop_assert_eq!(tried.busy, 0);
        if !plan.slots.is_empty() {
            prop_assert_eq!(tried.hits as usize, record.len());
        }
    }
}
