//! Every generator: the same seed gives the same bytes, events are valid, all blocks are freed, and
//! sizes are as documented.

use std::collections::BTreeSet;

use super::*;
use pinbuddy_events::trace::Writer;
use pinbuddy_events::{Checker, Op};

fn bytes(workload: &Workload, seed: u64, steps: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for event in workload.events(seed, steps) {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_one_others_where_sizes_vary() {
    for workload in &WORKLOADS {
        let steps = workload.steps.min(5);
        let one = bytes(workload, 1, steps);
        assert_eq!(one, bytes(workload, 1, steps), "{}", workload.name);
        let same = one == bytes(workload, 2, steps);
        assert_eq!(same, workload.sizes == Sizes::Fixed, "{}", workload.name);
    }
}

#[test]
fn names_are_unlike_and_found() {
    let names: BTreeSet<_> = WORKLOADS.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), WORKLOADS.len());
    assert_eq!(Workload::named("kv-cache").unwrap().steps, 2_000);
    assert!(Workload::named("kv").is_none());
}

/// The figures of a whole workload in a line; checks that it is valid and frees everything.
fn figures(workload: &Workload) -> String {
    let mut checker = Checker::default();
    let mut sizes = BTreeSet::new();
    let (mut steps, mut requests, mut live) = (0, 0, 0);
    for (line, event) in (1..).zip(workload.events(7, workload.steps)) {
        checker.check(line, event).unwrap();
        live = live.max(checker.bytes());
        match event.op {
            Op::Request { bytes, .. } => {
                requests += 1;
                sizes.insert(bytes);
            }
            Op::Iteration => steps += 1,
            _ => {}
        }
    }
    let (name, count) = (workload.name, sizes.len());
    assert_eq!(checker.blocks(), 0, "{name}: all is freed");
    let [least, most] = [sizes.first(), sizes.last()].map(Option::unwrap);
    format!(
        "{name:22}{steps:6} steps {requests:7} requests {count:6} sizes {least:9} to {most:11} bytes, at most {live:12} live\n"
    )
}

/// The figures that documentation and benchmarks use.
#[test]
fn what_the_workloads_are_like() {
    insta::assert_snapshot!(WORKLOADS.iter().map(figures).collect::<String>());
}

#[test]
fn a_last_clear_finds_what_is_kept() {
    let kept = |name: &str| {
        let workload = Workload::named(name).unwrap();
        let mut checker = Checker::default();
        let mut at_clear = 0;
        for (line, event) in (1..).zip(workload.events(1, workload.steps)) {
            checker.check(line, event).unwrap();
            if event.op == Op::Clear {
                at_clear = checker.bytes();
            }
        }
        at_clear
    };
    assert_eq!(kept("fixed-129.5mib"), 40 * mib(129.5));
    assert_eq!(kept("training-1f1b"), 0);
    assert!((3_700_000_000..3_710_000_000).contains(&kept("clear-181094")));
}

#[test]
fn lengths_vary_as_documented() {
    let workload = Workload::named("variable-lengths").unwrap();
    let requests = workload.events(3, 40).filter_map(|it| match it.op {
        Op::Request { bytes, .. } => Some(bytes),
        _ => None,
    });
    let sizes: Vec<u64> = requests.collect();
    assert_eq!(sizes.len(), 40 * 18);
    let bases = [3.0, 7.0, 12.0, 20.0, 33.0, 48.0, 65.0, 110.0, 200.0];
    for (place, bytes) in sizes.iter().enumerate() {
        let base = bases[place % 18 / 2];
        let scale = *bytes as f64 / mib(base) as f64;
        assert!((0.699..1.3).contains(&scale), "{place}: {bytes}");
    }
}
