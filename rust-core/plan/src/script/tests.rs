//! What is placed, compared with what the record says: no two requests that lived at once overlap.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use pinbuddy_events::Op;

use crate::record::NEVER;
use crate::{Block, check};

/// Requests with their lifetimes in the record, and where they were placed, for all groups.
fn placed(record: &Record) -> (Vec<Block>, Vec<u64>) {
    let lanes = lanes(record);
    let (mut blocks, mut offsets) = (Vec::new(), Vec::new());
    let Some((main, steady)) = steady(record, &lanes) else {
        return (blocks, offsets);
    };
    let groups = groups::groups(record, &lanes, steady, main);
    let mut end = 0;
    for group in groups {
        let mut spans = Spans::of(record, &group.steady, &group.lanes);
        let (options, seen) = (Options::default(), &|_| {});
        placing::ease(&mut spans, &options, Watch { stop: &|| false, seen });
        let task = Task { record, lanes: &lanes, options: &options, watch: Watch { stop: &|| true, seen } };
        let own = place(task, &group, &spans, end, true);
        let mut lives = |number: u32, offset| {
            let request = &record.requests[number as usize];
            // What is not over by then may live for longer than anybody knows.
            let known = spans.clock.over(request.over).is_some();
            if request.over < group.steady.begin() || known {
                let (lower, upper) = (u64::from(request.begin), u64::from(request.over));
                blocks.push(Block { lower, upper, size: request.bytes() });
                offsets.push(offset);
            }
        };
        own.early.iter().for_each(|&(number, offset)| lives(number, offset));
        for iteration in 0..group.steady.alike.len() {
            let turn = iteration % spans.turns as usize;
            let again = &own.again[turn * spans.spans.len()..];
            for (span, &offset) in spans.spans.iter().zip(again) {
                let positions = &group.steady.lanes[span.lane];
                let number = positions.requests[iteration][span.position];
                if number != align::NONE && record.requests[number as usize].over != NEVER {
                    lives(number, offset);
                }
            }
        }
        end = own.end;
    }
    (blocks, offsets)
}

/// Iterations of lanes: sizes, for how many requests of the lane each lives, and how much sizes vary.
fn events(bodies: &[Vec<(u64, usize, bool)>], iterations: usize, turns: &[u8], marks: bool) -> Vec<Op> {
    let mut lanes: Vec<VecDeque<Op>> = Vec::new();
    for (lane, body) in (0_u32..).zip(bodies) {
        let mut own = VecDeque::new();
        let total = body.len() * iterations;
        let mut ends: Vec<Vec<u64>> = vec![Vec::new(); total + 200];
        for at in 0..total {
            if marks && lane == 0 && at % body.len() == 0 {
                own.push_back(Op::Iteration);
            }
            let (granules, lives, varies) = body[at % body.len()];
            let more = if varies { at as u64 * 7 % 50 } else { 0 };
            let id = (u64::from(lane) << 32) + at as u64;
            let bytes = (granules + more) * 4096;
            own.push_back(Op::request(id, bytes).on_thread(lane));
            let lives = lives + usize::from(turns[at % turns.len()] % 3);
            ends[at + lives].push(id);
            own.extend(ends[at].drain(..).map(Op::free));
        }
        lanes.push(own);
    }
    let mut events = Vec::new();
    let mut turn = turns.iter().map(|it| usize::from(*it)).chain(0..3).collect::<Vec<_>>();
    while lanes.iter().any(|it| !it.is_empty()) {
        turn.rotate_left(1);
        let lane = turn[0] % lanes.len();
        events.extend(lanes[lane].pop_front());
    }
    events
}

proptest! {
    #[test]
    fn what_lived_at_once_does_not_overlap(
        bodies in prop::collection::vec(
            prop::collection::vec((1_u64..40, 0_usize..40, prop::bool::weighted(0.1)), 1..25),
            1..4,
        ),
        iterations in 3_usize..8,
        turns in prop::collection::vec(any::<u8>(), 1..40),
        marks: bool,
    ) {
        let mut record = Record::new(u32::MAX);
        for event in events(&bodies, iterations, &turns, marks) {
            record.push(event);
        }
        let (blocks, offsets) = placed(&record);
        check(&blocks, None, &offsets).unwrap();
    }
}
