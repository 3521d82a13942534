//! Threads that allocate and free blocks of one size at the same time.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::axis::{Axis, Scale};
use super::figure::{Results, Target};
use super::harness::in_turns;
use super::matrix::Matrix;
use super::peer::Peer;
use super::plot::{Chart, Line, Series};
use super::rig::Rig;
use super::stats::{median, ratio_of_turns};
use xtask_support::progress::Step;

const COUNTS: [u32; 4] = [1, 2, 4, 8];
/// Of all threads together: some milliseconds.
const PAIRS: u32 = 40_000;

/// The part.
pub fn run(rig: &Rig, step: &Step, results: &mut Results) -> Result<()> {
    let mut speedup = BTreeMap::<(u32, Peer), Vec<f64>>::new();
    let mut nanoseconds = speedup.clone();
    for round in 1..=rig.effort.rounds() {
        let mut harnesses = rig.start_all(|_| vec![("BUDDY_WARMUP", "sync".to_owned())])?;
        for harness in &mut harnesses {
            harness.ask("requests 8388608")?;
        }
        for count in COUNTS {
            step.say(format!("round {round}, {count} threads"));
            let line = format!("threads {count} {}", PAIRS / count);
            let times = in_turns(&mut harnesses, rig.effort.turns().div_ceil(2), |harness| {
                harness.ask(&line)?.number("ns")
            })?;
            for (harness, own) in harnesses.iter().zip(&times) {
                let at = (count, harness.peer);
                // Stock is the first; throughput is one over time.
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
    let mut table = Matrix::new(title, Peer::TIMED.map(Peer::name));
    for count in COUNTS {
        if count > 1 {
            let path = ["threads_ratio", &count.to_string()];
            let rounds = &speedup[&(count, Peer::Pinbuddy)];
            results.rounds(&path, rounds, Some(Target::AtLeast(1.5)));
        }
        let cells = Peer::TIMED.map(|peer| Some(median(&nanoseconds[&(count, peer)])));
        table.row(format!("{count}"), cells, 1);
    }
    for count in COUNTS {
        let cells = Peer::TIMED.map(|peer| Some(median(&speedup[&(count, peer)])));
        table.row(format!("{count}, throughput / stock"), cells, 2);
    }
    results.tables.push(table.to_string());
    let series = Peer::TIMED.map(|peer| Series {
        name: peer.name(),
        points: COUNTS
            .iter()
            .map(|&count| (f64::from(count), median(&nanoseconds[&(count, peer)])))
            .collect(),
    });
    let by_peer = |of: &BTreeMap<(u32, Peer), Vec<f64>>| {
        let mut all = BTreeMap::<&str, BTreeMap<u32, f64>>::new();
        for ((count, peer), rounds) in of {
            let value = (median(rounds) * 1e4).round() / 1e4;
            all.entry(peer.name()).or_default().insert(*count, value);
        }
        json!(all)
    };
    let details = json!({"pair_ns": by_peer(&nanoseconds), "throughput": by_peer(&speedup)});
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
