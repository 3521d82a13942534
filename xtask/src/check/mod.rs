//! `cargo xtask check`: what explores rather than tests: random actions, fuzzers, interleavings, and rules on what we
//! depend on.
//!
//! Each check is a row: how much it explored, and what it found. One whose tool is missing says what to do to have it,
//! and fails, unless something else shows the same: then the row says what. Nothing is left out in silence.

mod clients;
mod coverage;
mod day;
pub mod dependencies;
mod fuzz;
mod miri;
mod model;
mod programs;
mod row;
mod sanitize;
mod shuttle;
mod unsafe_blocks;
mod upstream;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::cli;
use crate::support::failure;
use crate::support::refusal::refuse;
use row::{Explored, Outcome, Row};

/// How much is explored.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Actions of each model.
    pub actions: u64,
    /// Seconds of each fuzz target, and of each way that a sanitizer looks on.
    pub seconds: u64,
    /// Seconds of the soak.
    pub soak_seconds: u64,
}

/// One of them.
struct Check {
    name: &'static str,
    /// In a few words.
    about: &'static str,
    run: fn(Effort) -> Result<Explored>,
}

/// All of them, in the order in which they are run.
const CHECKS: [Check; 15] = [
    Check {
        name: "model",
        about: "engine and provisioner against bitmaps, audited after each action",
        run: model::run,
    },
    Check {
        name: "fuzz",
        about: "libFuzzer on what reads text and bytes from outside",
        run: fuzz::run,
    },
    Check {
        name: "shuttle",
        about: "interleavings of requests, worker, clear and exit",
        run: shuttle::run,
    },
    Check {
        name: "tsan",
        about: "the C++ side under ThreadSanitizer, by itself and under torch",
        run: sanitize::thread,
    },
    Check {
        name: "asan",
        about: "the same under AddressSanitizer and UndefinedBehaviorSanitizer",
        run: sanitize::address,
    },
    Check {
        name: "miri",
        about: "small tests of engine, slots and the spin lock in Miri",
        run: miri::run,
    },
    Check {
        name: "faults",
        about: "each call to CUDA and the kernel fails in turn, beside stock",
        run: programs::faults,
    },
    Check {
        name: "defects",
        about: "defects that were put there on purpose are found: BUDDY_GUARD=1, hazards, the audit",
        run: programs::defects,
    },
    Check {
        name: "upstream",
        about: "PyTorch's own tests, equal with stock and the fork",
        run: upstream::run,
    },
    Check {
        name: "clients",
        about: "programs that use torch as users do, each with ten faults, beside stock",
        run: clients::run,
    },
    Check {
        name: "soak",
        about: "threads, streams, forks, clears and faults at once; every block marked",
        run: programs::soak,
    },
    Check {
        name: "coverage",
        about: "which lines of the engine and the bridge run in tests, in Rust and in C++",
        run: coverage::run,
    },
    Check {
        name: "day",
        about: "a program of a day in simulated time: pinned memory does not creep",
        run: day::run,
    },
    Check {
        name: "unsafe",
        about: "unsafe blocks of ours, counted, each with its reason",
        run: unsafe_blocks::run,
    },
    Check {
        name: "deny",
        about: "licences, sources and advisories of what we depend on",
        run: dependencies::run,
    },
];

/// The command.
pub fn run(args: &cli::Check) -> Result<()> {
    let chosen = chosen(args)?;
    if chosen.is_empty() {
        for Check { name, about, .. } in &CHECKS {
            println!("{name:<10}{about}");
        }
        println!("\ncargo xtask check NAME…, or --all");
        return Ok(());
    }
    let effort = Effort {
        actions: args.actions,
        seconds: args.seconds,
        soak_seconds: args.soak_seconds.unwrap_or(args.seconds),
    };
    let prints_json = args.json.as_deref() == Some(Path::new("-"));
    let file = args.json.as_deref().filter(|_| !prints_json);
    let mut rows: Vec<Row> = Vec::new();
    for check in chosen {
        let row = one(check, effort);
        // Checks take hours: whoever stops them has the rows of those that have ended.
        eprint!("\n{}", row::text(std::slice::from_ref(&row)));
        rows.push(row);
        if let Some(file) = file {
            fs::write(file, json(&rows)?).with_context(|| format!("writing {}", file.display()))?;
        }
    }
    if prints_json {
        print!("{}", json(&rows)?);
    } else {
        print!("\n{}", row::text(&rows));
    }
    let failed: Vec<&str> = rows
        .iter()
        .filter(|row| row.outcome == Outcome::Failed)
        .map(|row| row.name)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(refuse(format!("not passed: {}", failed.join(", ")))
        .found("what is said above")
        .remedy(format!("cargo xtask check {}", failed[0]))
        .into())
}

fn json(rows: &[Row]) -> Result<String> {
    Ok(serde_json::to_string_pretty(rows)? + "\n")
}

fn chosen(args: &cli::Check) -> Result<Vec<&'static Check>> {
    if args.all {
        return Ok(CHECKS.iter().collect());
    }
    let find = |name: &String| {
        CHECKS.iter().find(|it| it.name == name).ok_or_else(|| {
            let names = CHECKS.map(|it| it.name).join(", ");
            refuse(format!("{name} is no check"))
                .expected(format!("one of {names}"))
                .remedy("cargo xtask check says what each of them is")
                .into()
        })
    };
    args.what.iter().map(find).collect()
}

/// Runs it; an error is a row as well.
fn one(check: &Check, effort: Effort) -> Row {
    eprintln!("\n== {}", check.name);
    let start = Instant::now();
    let (outcome, explored) = match (check.run)(effort) {
        Ok(explored) if explored.wrong.is_some() => (Outcome::Failed, explored),
        Ok(explored) if explored.instead.is_some() => (Outcome::Instead, explored),
        Ok(explored) => (Outcome::Passed, explored),
        Err(why) => {
            failure::say(&why);
            let text = why.to_string();
            let note = text.lines().next().unwrap_or_default().to_owned();
            (Outcome::Failed, Explored::default().wrong(note))
        }
    };
    Row {
        name: check.name,
        outcome,
        explored,
        seconds: start.elapsed().as_secs_f64(),
    }
}
