//! A split-and-merge request among more and more blocks, live and free.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::axis::{Axis, Scale};
use super::effort::Effort;
use super::figure::{Results, Target};
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::peer::Peer;
use super::plot::{Chart, Line, Series};
use super::rig::Rig;
use super::stats::{Spread, median};
use xtask_support::progress::Step;

const COUNTS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// How long an allocator may take to make a crowd, in seconds; one that takes longer has no larger.
const PATIENCE: u32 = 20;

/// The part.
pub fn run(rig: &Rig, step: &Step, results: &mut Results) -> Result<()> {
    let counts = match rig.effort {
        Effort::Full => &COUNTS[..],
        Effort::Quick | Effort::Smoke => &COUNTS[..4],
    };
    let mut seen = BTreeMap::<(u32, Peer), Vec<f64>>::new();
    // Making a crowd takes longer than all turns.
    for round in 1..=rig.effort.rounds().min(5) {
        let mut harnesses = rig.start_all(|_| {
            vec![
                ("BUDDY_WARMUP", "sync".to_owned()),
                ("BUDDY_THRESHOLD_MB", "0".to_owned()),
                // Live and free blocks of 4 KiB, a million each, and room beside them.
                ("BUDDY_BLOCK_COUNT", "10".to_owned()),
            ]
        })?;
        harnesses.iter().try_for_each(Harness::pin_to_one_core)?;
        for harness in &mut harnesses {
            harness.ask("requests small-miss")?;
        }
        for &count in counts {
            step.say(format!("round {round}, {count} blocks"));
            let mut able = Vec::new();
            for mut harness in harnesses {
                if harness
                    .ask(&format!("crowd {count} {PATIENCE}"))?
                    .number("done")?
                    == 1.0
                {
                    harness.ask("pairs 1000")?;
                    able.push(harness);
                }
            }
            harnesses = able;
            let times = in_turns(&mut harnesses, rig.effort.turns().div_ceil(2), |harness| {
                harness.ask("pairs 1000")?.number("ns")
            })?;
            for (harness, own) in harnesses.iter().zip(&times) {
                seen.entry((count, harness.peer))
                    .or_default()
                    .push(median(own));
            }
        }
    }
    let at = |count: u32, peer: Peer| seen.get(&(count, peer)).map(|rounds| median(rounds));
    let title = "among blocks, ns a pair";
    let mut table = Matrix::new(title, Peer::TIMED.map(Peer::name));
    for &count in counts {
        table.row(
            count.to_string(),
            Peer::TIMED.map(|peer| at(count, peer)),
            1,
        );
        for peer in Peer::TIMED {
            if let Some(rounds) = seen.get(&(count, peer)) {
                let path = ["scaling", peer.name(), &count.to_string()];
                results.rounds(&path, rounds, None);
            }
        }
    }
    results.tables.push(table.to_string());
    let ours: Vec<f64> = counts
        .iter()
        .filter_map(|&it| at(it, Peer::Pinbuddy))
        .collect();
    let Spread { least, most, .. } = Spread::of(&ours);
    let path = ["context", "scaling_slowest_over_fastest"];
    results.value(&path, most / least, Some(Target::AtMost(2.0)));
    results.detail(
        "scaling",
        json!({"patience_s": PATIENCE, "block_bytes": 4096}),
    );
    let series = Peer::TIMED.map(|peer| Series {
        name: peer.name(),
        points: counts
            .iter()
            .filter_map(|&count| Some((f64::from(count), at(count, peer)?)))
            .collect(),
    });
    results.charts.push(Chart {
        file: "latency-by-blocks",
        title: "Allocate + free, no two sizes alike, among other blocks".to_owned(),
        x: Axis::new(
            "live blocks, and as many free ones between them",
            Scale::Logarithmic,
        ),
        y: Axis::new("nanoseconds a pair", Scale::Logarithmic),
        line: Line::Marked,
        series: series.into(),
    });
    Ok(())
}
