//! What each allocator pins for the same programs: traces replayed through the real ones.

use std::collections::BTreeMap;

use anyhow::Result;
use pinbuddy_replay::workload::{Sizes, WORKLOADS, Workload};
use serde_json::json;

use super::bench::Bench;
use super::figure::{Results, Target};
use super::harness::Answer;
use super::matrix::Matrix;
use super::peer::{Memory, Peer};
use super::plot::{Axis, Chart, Scale, Series};
use super::trace::Compact;
use crate::report::progress::Step;
use crate::support::paths;
use crate::support::scratch::Scratch;

const SEED: u64 = 1;
const GIB: f64 = (1_u64 << 30) as f64;
/// One where sizes stay and one where they do not.
const PLOTTED: [(&str, &str, &str); 2] = [
    (
        "training-1f1b",
        "memory-training",
        "Pinned memory, activation offload in a 1F1B pipeline",
    ),
    (
        "variable-lengths",
        "memory-variable-lengths",
        "Pinned memory, sizes that vary from step to step",
    ),
];

/// What a replay came to.
struct Outcome {
    pinned_over_requested: f64,
    after_clear_over_live: Option<f64>,
    /// Calls to the driver after the first step.
    later_pins: f64,
    answer: Answer,
}

/// The part.
pub fn run(bench: &Bench, step: &Step, results: &mut Results) -> Result<()> {
    let mut seen = BTreeMap::<(&str, Peer), Outcome>::new();
    let file = Scratch::file(&paths::target().join("bench/trace"))?;
    for workload in &WORKLOADS {
        Compact::of(workload.events(SEED, workload.steps))?.write(file.path())?;
        for peer in Peer::ALL {
            step.say(format!("{}, {}", workload.name, peer.name()));
            let mut harness = bench.start(peer, Memory::Counted, Vec::new())?;
            let answer = harness.ask(&format!("replay {} free", file.path().display()))?;
            seen.insert((workload.name, peer), outcome(answer)?);
        }
    }
    record(&seen, results);
    for (key, title, read) in [
        (
            "pinned_over_requested",
            "pinned / requested",
            (|it| Some(it.pinned_over_requested)) as fn(&Outcome) -> Option<f64>,
        ),
        ("after_clear_over_live", "after clear / live", |it| {
            it.after_clear_over_live
        }),
        ("pins_after_warmup", "pins after the first step", |it| {
            Some(it.later_pins)
        }),
    ] {
        let digits = if key == "pins_after_warmup" { 0 } else { 3 };
        let mut table = Matrix::new(title, Peer::ALL.map(Peer::name));
        for workload in &WORKLOADS {
            let cells = Peer::ALL.map(|peer| read(&seen[&(workload.name, peer)]));
            table.row(workload.name, cells, digits);
        }
        results.tables.push(table.to_string());
    }
    for (workload, file, title) in PLOTTED {
        results.charts.push(chart(&seen, workload, file, title)?);
    }
    results.detail("memory", json!({"seed": SEED}));
    Ok(())
}

fn outcome(answer: Answer) -> Result<Outcome> {
    let ratio = |over: f64, under: f64| (under > 0.0).then_some(over / under);
    let number = |name: &str| answer.number(name);
    let pinned = ratio(number("peak_pinned")?, number("peak_live")?);
    Ok(Outcome {
        pinned_over_requested: pinned.unwrap_or(1.0),
        after_clear_over_live: ratio(number("pinned_after_clear")?, number("live_at_clear")?),
        later_pins: answer.list("iteration_pins")?.iter().skip(1).sum(),
        answer,
    })
}

fn record(seen: &BTreeMap<(&str, Peer), Outcome>, results: &mut Results) {
    for workload in &WORKLOADS {
        for peer in Peer::ALL {
            let it = &seen[&(workload.name, peer)];
            // The warm-up of the defaults is memory for what comes; exactness is the engine's.
            let exact = peer == Peer::PinbuddyExact;
            let fit = exact.then(|| bound(workload, seen));
            let path = ["pinned_over_requested", peer.name(), workload.name];
            results.value(&path, it.pinned_over_requested, fit);
            if let Some(ratio) = it.after_clear_over_live {
                let path = ["after_clear_over_live", peer.name(), workload.name];
                let target = peer.is_fork().then_some(Target::AtMost(1.02));
                results.value(&path, ratio, target);
            }
            let path = ["pins_after_warmup", peer.name(), workload.name];
            results.value(&path, it.later_pins, None);
        }
    }
}

/// At most 1.05 where sizes stay and 1.10 where they vary, and at most what any other needs.
fn bound(workload: &Workload, seen: &BTreeMap<(&str, Peer), Outcome>) -> Target {
    let own: f64 = match workload.sizes {
        Sizes::Fixed => 1.05,
        Sizes::Vary => 1.10,
    };
    let others = Peer::ALL.iter().filter(|peer| !peer.is_fork());
    let least = others
        .map(|peer| seen[&(workload.name, *peer)].pinned_over_requested)
        .fold(f64::INFINITY, f64::min);
    Target::AtMost(own.min(least))
}

fn chart(
    seen: &BTreeMap<(&str, Peer), Outcome>,
    workload: &str,
    file: &'static str,
    title: &'static str,
) -> Result<Chart> {
    let mut series = Vec::new();
    for (name, answer, field) in [(
        "live",
        &seen[&(workload, Peer::Stock)].answer,
        "sample_live",
    )]
    .into_iter()
    .chain(Peer::ALL.map(|peer| {
        let answer = &seen[&(workload, peer)].answer;
        (peer.name(), answer, "sample_pinned")
    })) {
        let times = answer.list("sample_us")?.iter().map(|it| it / 1e6);
        let values = answer.list(field)?.iter().map(|it| it / GIB);
        series.push(Series {
            name,
            points: times.zip(values).collect(),
        });
    }
    Ok(Chart {
        file,
        title,
        x: Axis::new("seconds of the program", Scale::Linear),
        y: Axis::new("GiB", Scale::Linear),
        series,
    })
}
