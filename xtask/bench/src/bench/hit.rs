//! Hits: allocate and free of a cached block, by size, mixed sizes and with events; and a request that splits a
//! block, whose free merges it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use super::axis::{Axis, Scale};
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::plot::{Chart, Line, Series};
use super::stats::{median, ratio_of_turns};
use super::subject::Subject;
use xtask_support::progress::Step;

/// A pattern of requests.
struct Pattern {
    name: &'static str,
    /// Its name in the harness.
    requests: &'static str,
    /// Its size, if it has only one.
    bytes: Option<f64>,
    /// This many pairs take about a millisecond.
    pairs: u32,
    /// Target of the median. The target of the slowest 1 % is stock's.
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

/// Split and merge, compared with stock's hit of 8 MiB, since stock splits nothing.
const MISS: &str = "miss";
const STOCKS_HIT: &str = "8388608";

/// Rounds by pattern and subject.
type Rounds = BTreeMap<(&'static str, Subject), Vec<f64>>;

#[derive(Default)]
struct Seen {
    /// Ratio to stock.
    ratio: Rounds,
    p99_ratio: Rounds,
    nanoseconds: Rounds,
}

impl Seen {
    fn median(of: &Rounds, pattern: &'static str, subject: Subject) -> Option<f64> {
        of.get(&(pattern, subject)).map(|rounds| median(rounds))
    }
}

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let mut seen = Seen::default();
    for round in 1..=fixture.effort.rounds() {
        let mut harnesses = fixture.start_all(|_| vec![("BUDDY_WARMUP", "sync".to_owned())])?;
        harnesses.iter().try_for_each(Harness::pin_to_one_core)?;
        for pattern in &PATTERNS {
            step.say(format!("round {round}, {}", pattern.name));
            one(fixture, &mut harnesses, pattern, &mut seen)?;
        }
        step.say(format!("round {round}, {MISS}"));
        miss(fixture, &mut harnesses, &mut seen)?;
    }
    for pattern in &PATTERNS {
        let ours = (pattern.name, Subject::Pinbuddy);
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
    let miss = &seen.ratio[&(MISS, Subject::Pinbuddy)];
    results.rounds(&["miss_ratio"], miss, Some(Target::AtMost(3.0)));
    results.tables.push(table(&seen).to_string());
    results.detail("hit", details(&seen));
    results.charts.push(chart(&seen));
    Ok(())
}

fn one(
    fixture: &Fixture,
    harnesses: &mut [Harness],
    pattern: &Pattern,
    seen: &mut Seen,
) -> Result<()> {
    let pairs = pattern.pairs;
    for harness in harnesses.iter_mut() {
        harness.ask(&format!("requests {}", pattern.requests))?;
        harness.ask(&format!("pairs {}", 4 * pairs))?;
    }
    let times = in_turns(harnesses, fixture.effort.turns(), |harness| {
        harness.ask(&format!("pairs {pairs}"))?.number("ns")
    })?;
    record(
        &mut seen.ratio,
        &mut seen.nanoseconds,
        harnesses,
        pattern.name,
        &times,
    );
    let slowest = in_turns(harnesses, fixture.effort.turns(), |harness| {
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

fn miss(fixture: &Fixture, harnesses: &mut [Harness], seen: &mut Seen) -> Result<()> {
    const PAIRS: u32 = 5_000;
    for harness in harnesses.iter_mut() {
        let requests = if harness.subject == Subject::Stock {
            STOCKS_HIT
        } else {
            MISS
        };
        harness.ask(&format!("requests {requests}"))?;
        // Each size once before, so that pins by stock-tuned are not measured.
        harness.ask("pairs 16000")?;
    }
    let times = in_turns(harnesses, fixture.effort.turns(), |harness| {
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
    // Stock comes first.
    for (harness, own) in harnesses.iter().zip(times) {
        let at = (name, harness.subject);
        ratio
            .entry(at)
            .or_default()
            .push(ratio_of_turns(own, &times[0]));
        nanoseconds.entry(at).or_default().push(median(own));
    }
}

fn table(seen: &Seen) -> Matrix {
    let names = Subject::TIMED.map(Subject::name);
    let mut table = Matrix::new("allocate + free, ns", names);
    let patterns = || PATTERNS.iter().map(|it| it.name).chain([MISS]);
    for name in patterns() {
        let cells = Subject::TIMED.map(|subject| Seen::median(&seen.nanoseconds, name, subject));
        let title = if name == MISS {
            "miss (stock: hit)"
        } else {
            name
        };
        table.row(title, cells, 1);
    }
    for name in patterns() {
        let cells = Subject::TIMED.map(|subject| Seen::median(&seen.ratio, name, subject));
        table.row(format!("{name} / stock"), cells, 3);
    }
    for pattern in &PATTERNS {
        let cells =
            Subject::TIMED.map(|subject| Seen::median(&seen.p99_ratio, pattern.name, subject));
        table.row(format!("{} p99 / stock", pattern.name), cells, 3);
    }
    table
}

fn details(seen: &Seen) -> Value {
    let by_peer = |of: &Rounds| -> Value {
        let mut all = BTreeMap::<&str, BTreeMap<&str, f64>>::new();
        for ((pattern, subject), rounds) in of {
            let value = (median(rounds) * 1e4).round() / 1e4;
            all.entry(subject.name())
                .or_default()
                .insert(pattern, value);
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
    let series = Subject::TIMED.map(|subject| Series {
        name: subject.name(),
        points: PATTERNS
            .iter()
            .filter_map(|it| {
                Some((
                    it.bytes?,
                    Seen::median(&seen.nanoseconds, it.name, subject)?,
                ))
            })
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
