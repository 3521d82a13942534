//! Plans of programs that draw the lengths of their batches anew, in runs that draw others than the recorded one.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::device_never_worse::{SEGMENT, more, plan_of, reserved};
use crate::device_programs;

use device_programs::{Chance, drawn};
use pinbuddy_replay::device::Kind;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

const PROGRAMS: u64 = 60;

/// Runs of each, with other seeds.
const RUNS: u64 = 2;

/// Of the runs with a plan, those that reserve more than a segment more with it, and by how much more all do on average, as a part of
/// what is reserved without. While what a plan keeps was not lent to a program that hardly does what it says, 1 of 8 were worse off,
/// and 5.0 % was saved.
#[test]
fn few_that_draw_other_lengths_reserve_more_than_a_segment_more() {
    let mut runner = TestRunner::deterministic();
    let (mut runs, mut worse, mut mean) = (0.0, 0.0, 0.0);
    for seed in 1..=PROGRAMS {
        let program = drawn().new_tree(&mut runner).unwrap().current();
        let plan = plan_of(&program.acts(&mut Chance(seed)), Kind::Torch);
        let others = if plan.plans.is_empty() { 0 } else { RUNS };
        for other in 1..=others {
            let run = program.acts(&mut Chance(seed + other * 1000));
            let without = reserved(Kind::Torch.model(), &run);
            let more = more(&plan, &run, Kind::Torch);
            runs += 1.0;
            worse += f64::from(u8::from(more > SEGMENT as i64));
            mean += more as f64 / without as f64;
        }
    }
    mean /= runs;
    println!("{worse} of {runs} are worse off, {mean:.4}");
    assert!(runs >= 50.0 && worse / runs <= 0.04 && mean < -0.1);
}
