//! Programs with cold starts, growth, clears, shortage and exits, where an allocator that pins ahead can be worse
//! than stock. Each shows by how much.
//!
//! Invariant: if a program fails, the figures of the others are kept.

mod harnessed;
pub mod program;
mod script;

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::context;
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::matrix::Matrix;
use super::stats::median;
use program::{Judged, PROGRAMS, Program, Run};
use script::Figures;
use xtask_support::progress::Step;

/// Memory for one program: 6,000 MiB pinned for real, and what it uses besides.
const NEEDED: u64 = 8 << 30;
/// Starting torch takes longer than most programs.
const MOST_ROUNDS: usize = 5;

/// The figures of both in each round; stock's are empty if the fork runs alone.
#[derive(Debug, Default)]
struct Seen {
    stock: Vec<Figures>,
    fork: Vec<Figures>,
}

impl Seen {
    /// The values of one figure, one for each round.
    fn rounds(&self, judged: &Judged) -> Vec<f64> {
        let fork = values(&self.fork, judged.key);
        if self.stock.is_empty() {
            return fork;
        }
        let stock = values(&self.stock, judged.key);
        stock
            .iter()
            .zip(fork)
            .map(|(&stock, fork)| judged.how.of(stock, fork))
            .collect()
    }

    /// The medians of all printed figures.
    fn details(&self) -> Value {
        let medians = |of: &[Figures]| -> Map<String, Value> {
            let keys = of.iter().flat_map(Figures::keys);
            keys.map(|key| {
                (
                    key.clone(),
                    json!((median(&values(of, key)) * 1e4).round() / 1e4),
                )
            })
            .collect()
        };
        json!({"stock": medians(&self.stock), "fork": medians(&self.fork)})
    }
}

/// Over the rounds that have it.
fn values(of: &[Figures], key: &str) -> Vec<f64> {
    of.iter().filter_map(|it| it.get(key).copied()).collect()
}

/// Runs the named programs, or all.
pub fn run(fixture: &Fixture, named: &[&str], step: &Step, results: &mut Results) -> Result<()> {
    let available = context::available_memory()?;
    if available < NEEDED {
        let needed = NEEDED >> 20;
        let why = format!("{} MiB are available, not {needed}", available >> 20);
        results.skip("worst", &why);
        return Ok(());
    }
    let mut table = Matrix::new("worst", ["stock", "pinbuddy", "judged"]);
    let mut details = BTreeMap::new();
    let mut failed = Vec::new();
    let chosen = |it: &&Program| named.is_empty() || named.contains(&it.name);
    for program in PROGRAMS.iter().filter(chosen) {
        let done = match program.run {
            Run::Pairs => harnessed::pairs(fixture, program.name, step, results),
            Run::Statistics => harnessed::statistics(fixture, program.name, step, results),
            Run::Holes => harnessed::holes(fixture, program.name, step, results),
            Run::Beside(..) | Run::Alone(..) => in_rounds(fixture, program, step).map(|seen| {
                judge(program, &seen, &mut table, results);
                details.insert(program.name, seen.details());
            }),
        };
        if let Err(error) = done {
            xtask_support::failure::say(&error);
            results.skip(program.name, "it failed");
            failed.push(program.name);
        }
    }
    if !details.is_empty() {
        results.tables.push(table.to_string());
        results.detail("worst", json!(details));
    }
    anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn in_rounds(fixture: &Fixture, program: &Program, step: &Step) -> Result<Seen> {
    let mut seen = Seen::default();
    for round in 0..fixture.effort.rounds().min(MOST_ROUNDS) {
        step.say(format!("round {}, {}", round + 1, program.name));
        // Alternate who goes first.
        for turn in [round % 2, (round + 1) % 2] {
            let fork = turn == 1;
            if fork {
                seen.fork.push(script::run(fixture, program, fork)?);
            } else if matches!(program.run, Run::Beside(..)) {
                seen.stock.push(script::run(fixture, program, fork)?);
            }
        }
    }
    Ok(seen)
}

fn judge(program: &Program, seen: &Seen, table: &mut Matrix, results: &mut Results) {
    for judged in program.judged {
        let rounds = seen.rounds(judged);
        let path: Vec<&str> = program.name.split('/').chain([judged.name]).collect();
        results.rounds(&path, &rounds, Some(Target::AtMost(judged.target)));
        let of = |figures: &[Figures]| {
            let values = values(figures, judged.key);
            (!values.is_empty()).then(|| median(&values))
        };
        let cells = [of(&seen.stock), of(&seen.fork), Some(median(&rounds))];
        table.row(path[1..].join(" "), cells, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pairs: &[(&str, f64)]) -> Figures {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
    }

    #[test]
    fn a_round_is_judged_against_its_own() {
        let captures = PROGRAMS.iter().find(|it| it.name == "worst/captures");
        let seen = Seen {
            stock: vec![
                figures(&[("seconds", 0.4), ("slowest", 0.02), ("pins", 40.0)]),
                figures(&[("seconds", 0.8), ("slowest", 0.02), ("pins", 40.0)]),
            ],
            fork: vec![
                figures(&[("seconds", 0.8), ("slowest", 0.05), ("pins", 41.0)]),
                figures(&[("seconds", 0.8), ("slowest", 2.25), ("pins", 41.0)]),
            ],
        };
        let mut results = Results::default();
        let mut table = Matrix::new("worst", ["stock", "pinbuddy", "judged"]);
        judge(captures.unwrap(), &seen, &mut table, &mut results);
        insta::assert_snapshot!("judged", format!("{table}{results}"));
        let details = serde_json::to_string_pretty(&seen.details()).unwrap();
        insta::assert_snapshot!("details", details);
    }

    #[test]
    fn alone_it_is_as_it_is() {
        let ranks = PROGRAMS.iter().find(|it| it.name == "worst/spawn-ranks");
        let seen = Seen {
            stock: Vec::new(),
            fork: vec![figures(&[("budgets_over_half", 3.9)])],
        };
        assert_eq!(seen.rounds(&ranks.unwrap().judged[0]), [3.9]);
    }
}
