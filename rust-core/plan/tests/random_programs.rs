//! Programs at random: every plan holds its invariants, and one of a program that repeats itself serves it.

use std::collections::HashMap;

use pinbuddy_events::Op;
use pinbuddy_plan::file::GRANULE;
use pinbuddy_plan::{Block, Plan, Record, check, check_plan, places};
use proptest::prelude::*;

use crate::programs::{planned, record, repeated};

/// That requests which live at once have no byte in common, moment by moment: shares nothing with what serves them.
fn assert_apart(events: &[Op], record: &Record, plan: &Plan) {
    let mut lives: Vec<(u64, u64)> = Vec::new();
    let mut live: HashMap<u64, usize> = HashMap::new();
    for (moment, event) in (0..).zip(events) {
        let ended = match *event {
            Op::Request { id, bytes, .. } if (1..=1 << 40).contains(&bytes) => {
                lives.push((moment, u64::MAX));
                live.insert(id, lives.len() - 1)
            }
            Op::Free { id, .. } => live.remove(&id),
            _ => None,
        };
        if let Some(ended) = ended {
            lives[ended].1 = moment;
        }
    }
    let places = places(record, plan);
    assert_eq!(places.len(), lives.len());
    let placed = lives.into_iter().zip(places);
    let placed = placed.filter_map(|((lower, upper), slot)| {
        let slot = slot?;
        let size = slot.bytes;
        let block = Block { lower, upper, size };
        Some((block, (u64::from(slot.region) << 40) + slot.offset))
    });
    let (blocks, offsets): (Vec<Block>, Vec<u64>) = placed.unzip();
    check(&blocks, None, &offsets).unwrap();
}

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

/// A step of a lane's iteration: a request that is over so many of the lane's requests later.
fn body() -> impl Strategy<Value = Vec<(u64, usize)>> {
    prop::collection::vec((1_u64..40, 0_usize..60), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn anything_can_be_planned(events in prop::collection::vec(event(), 0..200)) {
        let record = record(&events);
        let plan = planned(&record, 20);
        assert_apart(&events, &record, &plan);
        if plan.slots.is_empty() && record.peak() < 1 << 30 {
            prop_assert!(plan.reserved() >= record.peak());
        }
    }

    #[test]
    fn one_lane_that_repeats_itself_is_served(body in body(), iterations in 6_usize..10, marks: bool) {
        let record = record(&repeated(&[body], iterations, &[0], marks));
        let plan = planned(&record, 20);
        let tried = check_plan(&record, &plan);
        prop_assert_eq!(tried.busy, 0);
        if !plan.slots.is_empty() {
            prop_assert_eq!(tried.hits as usize, record.len());
        }
    }

    #[test]
    fn lanes_side_by_side_never_overlap(
        bodies in prop::collection::vec(body(), 2..4),
        iterations in 4_usize..7,
        turns in prop::collection::vec(any::<u8>(), 1..60),
        marks: bool,
    ) {
        let turns: Vec<u8> = turns.into_iter().chain(0..3).collect();
        let events = repeated(&bodies, iterations, &turns, marks);
        let record = record(&events);
        let plan = planned(&record, 20);
        assert_apart(&events, &record, &plan);
    }
}
