//! Plans of amounts in a run with other inputs: sizes drawn anew, so that no request is one of the record's.
//!
//! A second run with the same inputs says nothing of a program whose sizes never come again.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use pinbuddy_core::{Config, Decision, Engine, NewSegment, Region};
use pinbuddy_events::Op;
use pinbuddy_plan::{Options, Plan, Record, plan};
use pinbuddy_replay::workload::Workload;

/// The plan of a run with these inputs.
fn planned(workload: &Workload, steps: u32, seed: u64) -> Plan {
    let mut record = Record::new(u32::MAX);
    for event in workload.events(seed, steps) {
        if event.op != Op::Iteration {
            record.push(event.op);
        }
    }
    plan(&record, &Options::default(), &|| true)
}

/// The engine with the regions of a plan, as a run has it; what finds no room is pinned for.
struct Run {
    engine: Engine,
    pinned: u64,
    regions: usize,
}

impl Run {
    fn new(plan: &Plan) -> Self {
        let config = Config {
            segment_bytes: plan.regions[0] as usize,
            threshold_bytes: 0,
        };
        let engine = Engine::new(config).mixing();
        let mut run = Self {
            engine,
            pinned: 0,
            regions: 0,
        };
        plan.regions.iter().for_each(|it| run.pin(*it as usize));
        run
    }

    fn pin(&mut self, bytes: usize) {
        self.regions += 1;
        self.pinned += bytes as u64;
        let base = self.regions << 40;
        let segment = NewSegment::new(Region { base, bytes }).unwrap();
        self.engine.adopt(segment.mixing()).unwrap();
    }
}

/// A run with these inputs and a plan: what it pins, over the most that it has at once, and its pins after the warm-up.
fn run(workload: &Workload, steps: u32, plan: &Plan, seed: u64) -> (f64, usize) {
    let (mut run, mut live, mut largest) = (Run::new(plan), HashMap::new(), 0);
    let mut now = 0;
    for event in workload.events(seed, steps) {
        match event.op {
            Op::Request { id, bytes, .. } => {
                now += bytes;
                largest = now.max(largest);
                let wanted = plan.size_class(bytes) as usize;
                let block = match run.engine.request(wanted) {
                    Decision::Block(block) => block,
                    Decision::Pin { bytes } => {
                        run.pin(bytes);
                        match run.engine.request(wanted) {
                            Decision::Block(block) => block,
                            other => panic!("{other:?}"),
                        }
                    }
                    other => panic!("{other:?}"),
                };
                live.insert(id, (block, bytes));
            }
            Op::Free { id, .. } => {
                let (block, bytes) = live.remove(&id).unwrap();
                now -= bytes;
                run.engine.release(block).unwrap();
            }
            _ => {}
        }
    }
    (
        run.pinned as f64 / largest as f64,
        run.regions - plan.regions.len(),
    )
}

/// Of runs with all of these seeds, each with the plans of all: the most pinned and the most pins.
fn most(name: &str, steps: u32, seeds: std::ops::Range<u64>) -> (f64, usize) {
    let workload = Workload::named(name).unwrap();
    let mut most = (0.0_f64, 0);
    for first in seeds.clone() {
        let plan = planned(workload, steps, first);
        assert!(plan.slots.is_empty());
        for second in seeds.clone().filter(|it| *it != first) {
            let (pinned, pins) = run(workload, steps, &plan, second);
            println!("{name}: planned with {first}, run with {second}: {pinned:.3}, {pins} pins");
            most = (most.0.max(pinned), most.1.max(pins));
        }
    }
    most
}

#[test]
fn sizes_that_vary_alike_in_each_run_need_no_pin() {
    let (pinned, pins) = most("variable-lengths", 40, 1..5);
    assert!(pinned <= 1.08 && pins == 0, "{pinned} {pins}");
    let (pinned, pins) = most("kv-cache", 500, 1..3);
    assert!(pinned <= 1.08 && pins == 0, "{pinned} {pins}");
}

/// Its largest live set, which it reaches at its end, is up to a twelfth larger with other inputs.
#[test]
fn where_one_run_has_more_at_once_than_another_it_pins_that_and_little_more() {
    let (pinned, pins) = most("clear-181094", 10, 1..5);
    assert!(pinned <= 1.15 && pins <= 8, "{pinned} {pins}");
}
