//! Split and merge among a growing number of live and free blocks.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::axis::{Axis, Scale};
use super::effort::Effort;
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::{Harness, in_turns};
use super::matrix::Matrix;
use super::plot::{Chart, Line, Series};
use super::stats::{Spread, median};
use super::subject::Subject;
use xtask_support::progress::Step;

const COUNTS: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Seconds that an allocator may take to make the blocks; if it takes longer, larger numbers are skipped.
const PATIENCE: u32 = 20;

pub fn run(fixture: &Fixture, step: &Step, results: &mut Results) -> Result<()> {
    let counts = match fixture.effort {
        Effort::Full => &COUNTS[..],
        Effort::Quick | Effort::Smoke => &COUNTS[..4],
    };
    let mut seen = BTreeMap::<(u32, Subject), Vec<f64>>::new();
    // Making the blocks takes longer than all turns.
    for round in 1..=fixture.effort.rounds().min(5) {
        let mut harnesses = fixture.start_all(|_| {
            vec![
                ("BUDDY_WARMUP", "sync".to_owned()),
                ("BUDDY_THRESHOLD_MB", "0".to_owned()),
                // Room for a million live and a million free blocks of 4 KiB, and more.
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
            let times = in_turns(
                &mut harnesses,
                fixture.effort.turns().div_ceil(2),
                |harness| harness.ask("pairs 1000")?.number("ns"),
            )?;
            for (harness, own) in harnesses.iter().zip(&times) {
                seen.entry((count, harness.subject))
                    .or_default()
                    .push(median(own));
            }
        }
    }
    let at =
        |count: u32, subject: Subject| seen.get(&(count, subject)).map(|rounds| median(rounds));
    let title = "among blocks, ns a pair";
    let mut table = Matrix::new(title, Subject::TIMED.map(Subject::name));
    for &count in counts {
        table.row(
            count.to_string(),
            Subject::TIMED.map(|subject| at(count, subject)),
            1,
        );
        for subject in Subject::TIMED {
            if let Some(rounds) = seen.get(&(count, subject)) {
                let path = ["scaling", subject.name(), &count.to_string()];
                results.rounds(&path, rounds, None);
            }
        }
    }
    results.tables.push(table.to_string());
    let ours: Vec<f64> = counts
        .iter()
        .filter_map(|&it| at(it, Subject::Pinbuddy))
        .collect();
    let Spread { least, most, .. } = Spread::of(&ours);
    let path = ["context", "scaling_slowest_over_fastest"];
    results.value(&path, most / least, Some(Target::AtMost(2.0)));
    results.detail(
        "scaling",
        json!({"patience_s": PATIENCE, "block_bytes": 4096}),
    );
    let series = Subject::TIMED.map(|subject| Series {
        name: subject.name(),
        points: counts
            .iter()
            .filter_map(|&count| Some((f64::from(count), at(count, subject)?)))
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
