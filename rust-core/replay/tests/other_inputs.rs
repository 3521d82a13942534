//! Plans of amounts in a run with other inputs: sizes drawn anew, so that no request is one of the record's.
//!
//! A second run with the same inputs says nothing of a program whose sizes never come again.

use pinbuddy_events::Op;
use pinbuddy_plan::{Options, Record, Tried, plan, try_out};
use pinbuddy_replay::workload::Workload;

use crate::programs::record;

/// A run with these inputs.
fn run(workload: &Workload, steps: u32, seed: u64) -> Record {
    let events = workload.events(seed, steps).map(|it| it.op);
    record(&events.filter(|it| *it != Op::Iteration).collect::<Vec<_>>())
}

/// Of runs with all of these seeds, each with the plans of all: the most pinned and the most pins.
fn most(name: &str, steps: u32, seeds: std::ops::Range<u64>) -> (f64, u64) {
    let workload = Workload::named(name).unwrap();
    let mut most = (0.0_f64, 0);
    for first in seeds.clone() {
        let made = run(workload, steps, first);
        let plan = plan(&made, &Options::default(), &|| true);
        assert!(plan.slots.is_empty());
        for second in seeds.clone().filter(|it| *it != first) {
            let run = run(workload, steps, second);
            let Tried { pins, pinned, .. } = try_out(&run, &plan);
            let pinned = pinned as f64 / run.peak() as f64;
            println!("{name}: planned with {first}, run with {second}: {pinned:.3}, {pins} pins");
            most = (most.0.max(pinned), most.1.max(pins));
        }
    }
    most
}

#[test]
fn sizes_that_vary_alike_need_no_pin_and_a_run_that_has_more_at_once_pins_that_and_little_more() {
    for (name, steps, seeds, at_most) in [
        ("variable-lengths", 40, 1..5, (1.08, 0)),
        ("kv-cache", 500, 1..3, (1.08, 0)),
        // Its largest live set, which it reaches at its end, is up to a twelfth larger with other inputs.
        ("clear-181094", 10, 1..5, (1.15, 8)),
    ] {
        let (pinned, pins) = most(name, steps, seeds);
        assert!(pinned <= at_most.0 && pins <= at_most.1, "{name}: {pinned} {pins}");
    }
}
