//! A request that finds its block: allocate and free, over sizes, mixes and events; and one for which
//! the engine splits a block and merges it again.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::axis::{Axis, Scale};
use super::figure::{Results, Target};
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::peer::Peer;
use super::plot::{Chart, Line, Series};
use super::rig::Rig;
use super::stats::{median, ratio_of_turns};
use xtask_support::progress::Step;

/// What is asked for, and what that is called.
struct Pattern {
    name: &'static str,
    /// As the harness knows it.
    requests: &'static str,
    /// Where the name is a size.
    bytes: Option<f64>,
    /// So many take about a millisecond.
    pairs: u32,
    /// Of the median. The slowest in a hundred are to be no slower than stock's.
    target: f64,
}

const P99_TARGET: f64 = 1.0;

const fn size(name: &'static str, requests: &'static str, bytes: f64) -> Pattern {
    Pattern {
        name,
        requests,
        bytes: Some(bytes),
        pairs: 8_000,
        target: 0.8,
    }
}

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

const PATTERNS: [Pattern; 12] = [
    size("4KiB", "4096", 4.0 * KIB),
    size("64KiB", "65536", 64.0 * KIB),
    size("1MiB", "1048576", MIB),
    size("4MiB", "4194304", 4.0 * MIB),
    size("8MiB", "8388608", 8.0 * MIB),
    size("16MiB", "16777216", 16.0 * MIB),
    size("64MiB", "67108864", 64.0 * MIB),
    size("129.5MiB", "135790592", 129.5 * MIB),
    size("512MiB", "536870912", 512.0 * MIB),
    Pattern {
        name: "mixed",
        requests: "mixed",
        bytes: None,
        pairs: 8_000,
        target: 0.8,
    },
    Pattern {
        name: "event",
        requests: "event",
        bytes: None,
        pairs: 1_500,
        target: 0.9,
    },
    Pattern {
        name: "event-64KiB",
        requests: "small-event",
        bytes: None,
        pairs: 1_500,
        target: 0.9,
    },
];

/// Split and merge; against stock's hit of 8 MiB, which has nothing to split.
const MISS: &str = "miss";
const STOCKS_HIT: &str = "8388608";

/// Rounds by pattern and peer.
type Rounds = BTreeMap<(&'static str, Peer), Vec<f64>>;

#[derive(Default)]
struct Seen {
    /// Over stock.
    ratio: Rounds,
    p99_ratio: Rounds,
    nanoseconds: Rounds,
}

impl Seen {
    fn median(of: &Rounds, pattern: &'static str, peer: Peer) -> Option<f64> {
        of.get(&(pattern, peer)).map(|rounds| median(rounds))
    }
}

/// The part.
pub fn run(rig: &Rig, step: &Step, results: &mut Results) -> Result<()> {
    let mut seen = Seen::default();
    for round in 1..=rig.effort.rounds() {
        let mut harnesses = rig.start_all(|_| vec![("BUDDY_WARMUP", "sync".to_owned())])?;
        harnesses.iter().try_for_each(Harness::pin_to_one_core)?;
        for pattern in &PATTERNS {
            step.say(format!("round {round}, {}", pattern.name));
            one(rig, &mut harnesses, pattern, &mut seen)?;
        }
        step.say(format!("round {round}, {MISS}"));
        miss(rig, &mut harnesses, &mut seen)?;
    }
    for pattern in &PATTERNS {
        let ours = (pattern.name, Peer::Pinbuddy);
        let path = ["hit_pair_ratio", pattern.name];
        results.rounds(
            &path,
            &seen.ratio[&ours],
            Some(Target::AtMost(pattern.target)),
        );
        let path = ["p99_ratio", pattern.name];
        results.rounds(
            &path,
            &seen.p99_ratio[&ours],
            Some(Target::AtMost(P99_TARGET)),
        );
    }
    let miss = &seen.ratio[&(MISS, Peer::Pinbuddy)];
    results.rounds(&["miss_ratio"], miss, Some(Target::AtMost(3.0)));
    results.tables.push(table(&seen).to_string());
    results.detail("hit", details(&seen));
    results.charts.push(chart(&seen));
    Ok(())
}

fn one(rig: &Rig, harnesses: &mut [Harness], pattern: &Pattern, seen: &mut Seen) -> Result<()> {
    let pairs = pattern.pairs;
    for harness in harnesses.iter_mut() {
        harness.ask(&format!("requests {}", pattern.requests))?;
        harness.ask(&format!("pairs {}", 4 * pairs))?;
    }
    let times = in_turns(harnesses, rig.effort.turns(), |harness| {
        harness.ask(&format!("pairs {pairs}"))?.number("ns")
    })?;
    record(
        &mut seen.ratio,
        &mut seen.nanoseconds,
        harnesses,
        pattern.name,
        &times,
    );
    let slowest = in_turns(harnesses, rig.effort.turns(), |harness| {
        harness.ask(&format!("single {pairs}"))?.number("p99")
    })?;
    let mut unused = Rounds::new();
    record(
        &mut seen.p99_ratio,
        &mut unused,
        harnesses,
        pattern.name,
        &slowest,
    );
    Ok(())
}

fn miss(rig: &Rig, harnesses: &mut [Harness], seen: &mut Seen) -> Result<()> {
    const PAIRS: u32 = 5_000;
    for harness in harnesses.iter_mut() {
        let requests = if harness.peer == Peer::Stock {
            STOCKS_HIT
        } else {
            MISS
        };
        harness.ask(&format!("requests {requests}"))?;
        // Every size once: what stock tuned pins for them is not what is measured.
        harness.ask("pairs 16000")?;
    }
    let times = in_turns(harnesses, rig.effort.turns(), |harness| {
        harness.ask(&format!("pairs {PAIRS}"))?.number("ns")
    })?;
    record(
        &mut seen.ratio,
        &mut seen.nanoseconds,
        harnesses,
        MISS,
        &times,
    );
    Ok(())
}

fn record(
    ratio: &mut Rounds,
    nanoseconds: &mut Rounds,
    harnesses: &[Harness],
    name: &'static str,
    times: &[Vec<f64>],
) {
    // Stock is the first.
    for (harness, own) in harnesses.iter().zip(times) {
        let at = (name, harness.peer);
        ratio
            .entry(at)
            .or_default()
            .push(ratio_of_turns(own, &times[0]));
        nanoseconds.entry(at).or_default().push(median(own));
    }
}

fn table(seen: &Seen) -> Matrix {
    let names = Peer::TIMED.map(Peer::name);
    let mut table = Matrix::new("allocate + free, ns", names);
    let patterns = || PATTERNS.iter().map(|it| it.name).chain([MISS]);
    for name in patterns() {
        let cells = Peer::TIMED.map(|peer| Seen::median(&seen.nanoseconds, name, peer));
        let title = if name == MISS {
            "miss (stock: hit)"
        } else {
            name
        };
        table.row(title, cells, 1);
    }
    for name in patterns() {
        let cells = Peer::TIMED.map(|peer| Seen::median(&seen.ratio, name, peer));
        table.row(format!("{name} / stock"), cells, 3);
    }
    for pattern in &PATTERNS {
        let cells = Peer::TIMED.map(|peer| Seen::median(&seen.p99_ratio, pattern.name, peer));
        table.row(format!("{} p99 / stock", pattern.name), cells, 3);
    }
    table
}

fn details(seen: &Seen) -> Value {
    let by_peer = |of: &Rounds| -> Value {
        let mut all = BTreeMap::<&str, BTreeMap<&str, f64>>::new();
        for ((pattern, peer), rounds) in of {
            let value = (median(rounds) * 1e4).round() / 1e4;
            all.entry(peer.name()).or_default().insert(pattern, value);
        }
        json!(all)
    };
    json!({
        "pair_ns": by_peer(&seen.nanoseconds),
        "ratio": by_peer(&seen.ratio),
        "p99_ratio": by_peer(&seen.p99_ratio),
    })
}

fn chart(seen: &Seen) -> Chart {
    let series = Peer::TIMED.map(|peer| Series {
        name: peer.name(),
        points: PATTERNS
            .iter()
            .filter_map(|it| Some((it.bytes?, Seen::median(&seen.nanoseconds, it.name, peer)?)))
            .collect(),
    });
    Chart {
        file: "latency-by-size",
        title: "Allocate + free of a cached block".to_owned(),
        x: Axis::new("size of the request", Scale::Bytes),
        y: Axis::new("nanoseconds a pair", Scale::Linear),
        line: Line::Marked,
        series: series.into(),
    }
}
