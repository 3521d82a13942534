//! The same in processes of their own, as a program with assertions meets them: one that ends well fails the test.

use std::env;
use std::process::{Command, Output};

use super::tests::{engine, tree};
use super::*;
use crate::units::{GRANULE, Granules, Home};

const VARIABLE: &str = "PINBUDDY_SEEDED";

type Break = fn(&mut Engine, SegmentId);

/// What is wrong, how, and what is said of it.
const DEFECTS: [(&str, Break, &str); 8] = [
    (
        "a block that was freed twice",
        |engine, id| tree(segment(engine, id)).free(10..30),
        "Ownership",
    ),
    (
        "memory that nobody has and nobody gets",
        |engine, id| tree(segment(engine, id)).take(500..600),
        "Ownership",
    ),
    (
        "a block in another",
        |engine, id| {
            let records = &mut segment(engine, id).records;
            records.set(Granules::new(5), Granules::new(20), State::Live);
        },
        "BlocksOverlap",
    ),
    (
        "a block past the segment's end",
        |engine, id| {
            let records = &mut segment(engine, id).records;
            records.set(Granules::new(990), Granules::new(20), State::Live);
        },
        "BlockLeavesSegment",
    ),
    (
        "a pending block that is no longer counted",
        |engine, id| segment(engine, id).pending = Tally::default(),
        "SegmentCount",
    ),
    (
        "a segment in another home's order",
        |engine, id| segment(engine, id).home = Home(1),
        "FillOrder",
    ),
    (
        "a home that missed a block",
        |engine, _| engine.demands.of_mut(Home::default()).active -= GRANULE as u64,
        "Statistic",
    ),
    (
        "statistics that missed a block",
        |engine, _| engine.stats.active_bytes.current -= GRANULE as u64,
        "Statistic",
    ),
];

fn segment(engine: &mut Engine, id: SegmentId) -> &mut Segment {
    &mut engine.arena.corrupt(id).segment
}

#[test]
#[cfg_attr(miri, ignore = "starts processes")]
fn each_defect_ends_its_process() {
    for (name, _, said) in DEFECTS {
        let output = child(name);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "nobody found {name}");
        assert!(text.contains(said), "{name} was found as {text}");
    }
    assert!(child("none").status.success(), "without a defect");
}

/// What a process of its own makes of it.
fn child(name: &str) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "audit::seeded::an_engine", "--nocapture"])
        .env(VARIABLE, name)
        .output()
        .unwrap()
}

/// With the defect that the variable names; a test by itself where there is none.
#[test]
fn an_engine() {
    let name = env::var(VARIABLE).unwrap_or_default();
    let (mut engine, id) = engine();
    if let Some((_, break_it, _)) = DEFECTS.iter().find(|it| it.0 == name) {
        break_it(&mut engine, id);
    }
    assert_eq!(engine.audit(), Ok(()));
}
