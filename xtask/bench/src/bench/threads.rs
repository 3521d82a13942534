//! Several threads that allocate and free blocks of one size.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::axis::{Axis, Scale};
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::in_turns;
use super::matrix::Matrix;
use super::plot::{Chart, Line, Series};
use super::stats::{median, ratio_of_turns};
use super::subject::Subject;
use xtask_support::progress::Step;

const COUNTS: [u32; 4] = [1, 2, 4, 8];
/// Pairs of all threads together: some milliseconds.
const PAIRS: u32 = 40_000;

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let mut speedup = BTreeMap::<(u32, Subject), Vec<f64>>::new();
    let mut nanoseconds = speedup.clone();
    for round in 1..=fixture.effort.rounds() {
        let mut harnesses = fixture.start_all(|_| vec![("BUDDY_WARMUP", "sync".to_owned())])?;
        for harness in &mut harnesses {
            harness.ask("requests 8388608")?;
        }
        for count in COUNTS {
            step.say(format!("round {round}, {count} threads"));
            let line = format!("threads {count} {}", PAIRS / count);
            let times = in_turns(
                &mut harnesses,
                fixture.effort.turns().div_ceil(2),
                |harness| harness.ask(&line)?.number("ns"),
            )?;
            for (harness, own) in harnesses.iter().zip(&times) {
                let at = (count, harness.subject);
                // Stock comes first; throughput is the inverse of time.
                speedup
                    .entry(at)
                    .or_default()
                    .push(ratio_of_turns(&times[0], own));
                nanoseconds
                    .entry(at)
                    .or_default()
                    .push(median(own) / f64::from(PAIRS));
            }
        }
    }
    let title = "threads, ns a pair of all";
    let mut table = Matrix::new(title, Subject::TIMED.map(Subject::name));
    for count in COUNTS {
        if count > 1 {
            let path = ["threads_ratio", &count.to_string()];
            let rounds = &speedup[&(count, Subject::Pinbuddy)];
            results.rounds(&path, rounds, Some(Target::AtLeast(1.5)));
        }
        let cells = Subject::TIMED.map(|subject| Some(median(&nanoseconds[&(count, subject)])));
        table.row(format!("{count}"), cells, 1);
    }
    for count in COUNTS {
        let cells = Subject::TIMED.map(|subject| Some(median(&speedup[&(count, subject)])));
        table.row(format!("{count}, throughput / stock"), cells, 2);
    }
    results.tables.push(table.to_string());
    let series = Subject::TIMED.map(|subject| Series {
        name: subject.name(),
        points: COUNTS
            .iter()
            .map(|&count| (f64::from(count), median(&nanoseconds[&(count, subject)])))
            .collect(),
    });
    let by_subject = |of: &BTreeMap<(u32, Subject), Vec<f64>>| {
        let mut all = BTreeMap::<&str, BTreeMap<u32, f64>>::new();
        for ((count, subject), rounds) in of {
            let value = (median(rounds) * 1e4).round() / 1e4;
            all.entry(subject.name()).or_default().insert(*count, value);
        }
        json!(all)
    };
    let details = json!({"pair_ns": by_subject(&nanoseconds), "throughput": by_subject(&speedup)});
    results.detail("threads", details);
    results.charts.push(Chart {
        file: "latency-by-threads",
        title: "Allocate + free of 8 MiB by several threads at once".to_owned(),
        x: Axis::new("threads", Scale::Doublings),
        y: Axis::new("nanoseconds a pair, all threads together", Scale::Linear),
        line: Line::Marked,
        series: series.into(),
    });
    Ok(())
}
