//! Plans generated trainings, replays them on their plans, and says how much is reserved and how many
//! requests find their slot: in the same run, in another one, and with 5 % of the requests changed.
//!
//! `script [SECONDS [NAME]]`: at most so many for each.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use pinbuddy_events::Op;
use pinbuddy_plan::{Options, check_plan, plan};

#[path = "../tests/programs/mod.rs"]
mod programs;
use programs::{Training, changed, record};

fn main() {
    let argument = |at| std::env::args().nth(at);
    let seconds = argument(1).map_or(10.0, |it| it.parse().expect("seconds"));
    let wanted = argument(2);
    let plain = Training::default();
    let cases = [
        ("dense", plain),
        (
            "no marks",
            Training {
                marks: false,
                ..plain
            },
        ),
        (
            "recompute",
            Training {
                recompute: true,
                ..plain
            },
        ),
        (
            "loader",
            Training {
                loader: true,
                ..plain
            },
        ),
        (
            "loader, no marks",
            Training {
                loader: true,
                marks: false,
                ..plain
            },
        ),
        (
            "clears",
            Training {
                clear: true,
                ..plain
            },
        ),
        (
            "evaluation",
            Training {
                evaluate: 2,
                iterations: 8,
                ..plain
            },
        ),
        (
            "evaluation, no marks",
            Training {
                evaluate: 3,
                iterations: 8,
                marks: false,
                ..plain
            },
        ),
        (
            "experts",
            Training {
                experts: 25,
                ..plain
            },
        ),
        (
            "experts, no marks",
            Training {
                experts: 25,
                marks: false,
                ..plain
            },
        ),
        (
            "experts, all",
            Training {
                experts: 100,
                ..plain
            },
        ),
        (
            "experts, 500,000",
            Training {
                experts: 25,
                layers: 100,
                micro_batches: 32,
                ..plain
            },
        ),
        (
            "100,000",
            Training {
                layers: 60,
                iterations: 4,
                micro_batches: 16,
                ..plain
            },
        ),
        (
            "1,000,000",
            Training {
                layers: 100,
                iterations: 5,
                micro_batches: 78,
                ..plain
            },
        ),
    ];
    println!(
        "{:22} {:>8} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7}",
        "", "requests", "iter", "slots", "gap %", "E", "s", "own %", "other %", "changed"
    );
    for (name, training) in cases {
        if wanted.as_ref().is_some_and(|it| it != name) {
            continue;
        }
        let events = training.events();
        let recorded = record(&events);
        let options = Options {
            threads: 2,
            ..Options::default()
        };
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(seconds);
        let made = plan(&recorded, &options, &|| Instant::now() >= until);
        let took = start.elapsed().as_secs_f64();
        made.check().expect("a plan");
        let other = Training {
            seed: 2,
            ..training
        }
        .events();
        let hits = |events: &[Op]| {
            let recorded = record(events);
            let replayed = check_plan(&recorded, &made);
            100.0 * replayed.hits as f64 / recorded.len() as f64
        };
        let missed = live(&events, &check_plan(&recorded, &made).missed);
        println!(
            "{name:22} {:8} {:6} {:6} {:7.2} {:7.3} {took:6.1} {:7.2} {:7.2} {:7.2} busy {} missed MiB {} regions {:?}",
            recorded.len(),
            made.facts.iterations,
            made.slots.len(),
            made.facts.gap_percent,
            made.facts.efficiency,
            hits(&events),
            hits(&other),
            hits(&changed(&other, 50, 3)),
            check_plan(&recorded, &made).busy,
            missed >> 20,
            made.regions.iter().map(|it| it >> 20).collect::<Vec<_>>(),
        );
    }
}

/// The most bytes that some requests have at once.
fn live(events: &[Op], some: &[u32]) -> u64 {
    let mut bytes = std::collections::HashMap::new();
    let (mut number, mut live, mut most) = (0, 0, 0);
    for event in events {
        match *event {
            Op::Request { id, bytes: own, .. } => {
                if some.binary_search(&number).is_ok() {
                    bytes.insert(id, own);
                    live += own;
                    most = live.max(most);
                }
                number += 1;
            }
            Op::Free { id, .. } => live -= bytes.remove(&id).unwrap_or(0),
            _ => {}
        }
    }
    most
}
