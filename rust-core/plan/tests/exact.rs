//! Programs that repeat themselves get a place for every request, and pin their largest live set exactly.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use pinbuddy_plan::{Options, Plan, Record, plan, try_out};

use crate::programs::{Random, Tape, at_random};

const MIB: u64 = 1 << 20;

/// A plan whose search is stopped only where it would never end.
fn planned(record: &Record) -> Plan {
    let asked = AtomicU64::new(0);
    let made = plan(record, &Options::default(), &|| asked.fetch_add(1, Ordering::Relaxed) > 50_000);
    assert!(asked.into_inner() < 50_000, "it was searched for too long");
    made
}

#[track_caller]
fn assert_exact(record: &Record) -> Plan {
    let made = planned(record);
    assert_eq!(made.reserved(), record.peak(), "pinned");
    assert_eq!(try_out(record, &made).hits, record.len() as u64, "hits");
    made
}

#[test]
fn layers_of_equal_sizes_are_no_iteration() {
    let layer = [8, 12, 8, 8, 28].map(|it| it * MIB);
    // All of a step lives until its end: a checkpoint.
    let mut program = Tape::default();
    for _ in 0..6 {
        let step: Vec<u64> = layer.repeat(31).into_iter().map(|it| program.ask(it)).collect();
        program.free(step);
    }
    let made = assert_exact(&program.record());
    assert_eq!(made.lanes[0].period.len(), 155);

    // A pipeline stage: the last batches are not followed by others.
    let mut program = Tape::default();
    for _ in 0..5 {
        let mut open = VecDeque::new();
        for batch in 0..12 + 4 {
            if batch >= 4 {
                let ids: Vec<u64> = open.pop_front().unwrap();
                program.free(ids.into_iter().rev());
            }
            if batch < 12 {
                open.push_back(layer.repeat(6).into_iter().map(|it| program.ask(it)).collect());
            }
        }
    }
    let made = assert_exact(&program.record());
    assert_eq!(made.lanes[0].period.len(), 12 * 30);
}

#[test]
fn batches_take_turns_where_their_number_is_no_multiple_of_those_that_live_at_once() {
    for (batches, ahead) in [(626, 3), (100, 3), (101, 4), (96, 5)] {
        let (mut program, mut open) = (Tape::default(), VecDeque::new());
        // Epochs; the last batch of each is shorter. The program ends within one.
        for at in 0..batches * 5 / 2 {
            let is_last = at % batches == batches - 1;
            open.push_back(program.ask(if is_last { 87 * MIB } else { 147 * MIB }));
            if open.len() == ahead {
                program.free(open.pop_front());
            }
        }
        let made = assert_exact(&program.record());
        assert!(made.lanes[0].turns > 1, "{batches}, {ahead}");
    }
}

#[test]
fn what_is_never_freed_needs_no_room() {
    let mut program = Tape::default();
    let sizes = (0..40).map(|at| (100 + at * at % 37) * MIB);
    let ids: Vec<u64> = sizes.map(|it| program.ask(it)).collect();
    program.free(ids);
    let made = planned(&program.record());
    assert_eq!(made.reserved(), program.record().peak());
    // Room for what comes and goes only: a part of 512 MiB, not of all.
    let (mut mixed, mut random) = (Tape::default(), Random::new(5));
    for _ in 0..60 {
        mixed.ask(random.below(400 * MIB) + MIB);
    }
    for _ in 0..60 {
        let passing = mixed.ask(random.below(511 * MIB) + MIB);
        mixed.free([passing]);
    }
    let made = planned(&mixed.record());
    let room = made.reserved() - mixed.record().peak();
    assert!((1..=16 * MIB).contains(&room), "{room}");
}

/// The optimizer's state is made in the first iteration; the interpreter frees it at the end.
#[test]
fn what_is_freed_when_the_program_ends_is_kept_for_good() {
    let (mut program, mut state) = (Tape::default(), Vec::new());
    for iteration in 0..8 {
        let live = [5, 9, 6, 12].map(|mib| program.ask(mib * MIB));
        program.free(live);
        if iteration == 0 {
            state.extend([20, 31, 22].map(|mib| program.ask(mib * MIB)));
        }
    }
    assert_eq!(assert_exact(&program.record()).regions, [105 * MIB]);
    program.free(state);
    assert_eq!(assert_exact(&program.record()).regions, [105 * MIB]);
}

#[test]
fn requests_at_random_need_little_more_than_their_largest_set() {
    const SEEDS: u64 = 4;
    let mut sum = 0.0;
    for seed in 0..SEEDS {
        let record = at_random(&mut Random::new(seed), 2000, 4 * MIB..204 * MIB, 16 << 30).record();
        let made = planned(&record);
        assert!(made.slots.is_empty());
        let ratio = made.reserved() as f64 / record.peak() as f64;
        println!("seed {seed}: {ratio:.3}");
        sum += ratio;
    }
    println!("{:.3} times the largest set, on average", sum / SEEDS as f64);
    // First fit takes 1.24.
    assert!(sum / SEEDS as f64 <= 1.2);
}
