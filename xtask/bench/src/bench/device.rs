//! Device memory: a pair of allocate and free with a plan, and of what passes through beside one, with PyTorch's own in
//! turns.
//!
//! A first process is recorded and its plan written; each round has new processes with the plan and without. What is
//! planned is judged by the ratio, what passes through by the nanoseconds on top.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::stats::{median, ratio_of_turns};
use super::subject::Subject;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

/// Patterns: the name, what is recorded and what is measured, in the harness's words.
struct Pattern {
    name: &'static str,
    recorded: &'static str,
    measured: &'static str,
    planned: bool,
}

const fn planned(name: &'static str, requests: &'static str) -> Pattern {
    Pattern {
        name,
        recorded: requests,
        measured: requests,
        planned: true,
    }
}

const fn passes(name: &'static str, requests: &'static str) -> Pattern {
    Pattern {
        name,
        recorded: "16777216",
        measured: requests,
        planned: false,
    }
}

/// A plan of 16 MiB has no room for 64 MiB. PyTorch takes a shorter region from a segment of 20 MiB, whose rest would be one more free
/// block that its own requests look at: that is no cost of passing through.
const PATTERNS: [Pattern; 6] = [
    planned("2MiB", "2097152"),
    planned("16MiB", "16777216"),
    planned("64MiB", "67108864"),
    planned("large-mixed", "large-mixed"),
    passes("64KiB-passes", "65536"),
    passes("64MiB-passes", "67108864"),
];
const PAIRS: u32 = 4_000;
const RECORDED: u32 = 6_000;

/// The most that a planned pair takes of PyTorch's own, and the most nanoseconds more for one that passes through.
const RATIO: f64 = 0.8;
const MORE: f64 = 20.0;

type Rounds = BTreeMap<&'static str, Vec<f64>>;

#[derive(Default)]
struct Seen {
    ratio: Rounds,
    more: Rounds,
    stock: Rounds,
    ours: Rounds,
}

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let mut seen = Seen::default();
    for pattern in &PATTERNS {
        step.say(format!("{}, the first run", pattern.name));
        // A plan is only made where there is no file.
        let folder = Scratch::folder(&paths::target().join("bench/device-plan"))?;
        let plan = folder.path().join("device.plan");
        let file = plan.display().to_string();
        let with_plan = || {
            fixture.start(
                Subject::Pinbuddy,
                fixture.environments.lightest(),
                vec![("BUDDY_DEVICE_PLAN", file.clone())],
            )
        };
        let mut first = with_plan()?;
        first.ask(&format!("device {}", pattern.recorded))?;
        first.ask(&format!("device-pairs {RECORDED}"))?;
        drop(first);
        anyhow::ensure!(plan.is_file(), "the first run wrote no plan");
        for round in 1..=fixture.effort.rounds() {
            step.say(format!("{}, round {round}", pattern.name));
            let stock =
                fixture.start(Subject::Stock, fixture.environments.lightest(), Vec::new())?;
            one(fixture, pattern, [stock, with_plan()?], &mut seen)?;
        }
    }
    for pattern in &PATTERNS {
        let name = pattern.name;
        let path = ["device", name];
        if pattern.planned {
            results.rounds(
                &["device_pair_ratio", path[1]],
                &seen.ratio[name],
                Some(Target::AtMost(RATIO)),
            );
        } else {
            results.rounds(
                &["device_more_ns", path[1]],
                &seen.more[name],
                Some(Target::AtMost(MORE)),
            );
        }
    }
    results.tables.push(table(&seen).to_string());
    let medians = |of: &Rounds| -> BTreeMap<&str, f64> {
        of.iter()
            .map(|(name, it)| (*name, (median(it) * 10.0).round() / 10.0))
            .collect()
    };
    results.detail(
        "device",
        json!({ "stock_ns": medians(&seen.stock), "planned_ns": medians(&seen.ours) }),
    );
    Ok(())
}

/// Stock and ours in turns.
fn one(
    fixture: &Fixture,
    pattern: &Pattern,
    mut both: [Harness; 2],
    seen: &mut Seen,
) -> Result<()> {
    for harness in &mut both {
        harness.pin_to_one_core()?;
        harness.ask(&format!("device {}", pattern.measured))?;
        harness.ask(&format!("device-pairs {}", 4 * PAIRS))?;
    }
    let times = in_turns(&mut both, fixture.effort.turns(), |harness| {
        harness.ask(&format!("device-pairs {PAIRS}"))?.number("ns")
    })?;
    let [stock, ours] = &times[..] else {
        anyhow::bail!("two processes take turns");
    };
    let more: Vec<f64> = ours
        .iter()
        .zip(stock)
        .map(|(ours, stock)| ours - stock)
        .collect();
    for (rounds, value) in [
        (&mut seen.ratio, ratio_of_turns(ours, stock)),
        (&mut seen.more, median(&more)),
        (&mut seen.stock, median(stock)),
        (&mut seen.ours, median(ours)),
    ] {
        rounds.entry(pattern.name).or_default().push(value);
    }
    Ok(())
}

fn table(seen: &Seen) -> Matrix {
    let mut table = Matrix::new(
        "device memory, allocate + free",
        ["stock ns", "with a plan ns", "ratio"],
    );
    for pattern in &PATTERNS {
        let cell = |of: &Rounds| of.get(pattern.name).map(|it| median(it));
        table.row(
            pattern.name,
            [cell(&seen.stock), cell(&seen.ours), cell(&seen.ratio)],
            2,
        );
    }
    table
}
