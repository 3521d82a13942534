//! `simulate --device`: trainings on the model of PyTorch's device allocator, with and without a plan.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use pinbuddy_replay::device::compare::{Comparison, Run, compare};
use pinbuddy_replay::device::replay::Outcome;
use pinbuddy_replay::device::training::{TRAININGS, Training};
use serde::Serialize;

use crate::{cli, output};

/// How long a plan is looked for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The results as JSON.
#[derive(Debug, Serialize)]
struct Answer {
    seed: u64,
    /// By how much less of what is reserved is unused than with stock: the mean of all trainings.
    fragmentation_lower: f64,
    trainings: Vec<Comparison>,
}

pub(super) fn run(args: &cli::Simulate) -> Result<()> {
    let seed = args.made.seed;
    let mut trainings = Vec::new();
    for training in chosen(&args.traces)? {
        let began = Instant::now();
        let stop = || began.elapsed() > PATIENCE;
        let compared = compare(training, seed, &stop);
        trainings.push(compared.map_err(|why| anyhow!("{}: {why}", training.name))?);
    }
    let lower = trainings.iter().map(|it| less_fragmented(&it.runs[0]));
    let answer = Answer { seed, fragmentation_lower: lower.sum::<f64>() / trainings.len() as f64, trainings };
    if args.json { output::print(&output::pretty(&answer)?) } else { output::print(&Table(&answer)) }
}

fn chosen(names: &[String]) -> Result<Vec<&'static Training>> {
    if names.is_empty() {
        return Ok(TRAININGS.iter().collect());
    }
    let named = |name: &String| {
        Training::named(name).ok_or_else(|| {
            let all: Vec<&str> = TRAININGS.iter().map(|it| it.name).collect();
            anyhow!("there is no training {name}; there are {}", all.join(", "))
        })
    };
    names.iter().map(named).collect()
}

fn less_fragmented(run: &Run) -> f64 {
    let unused = |it: &Outcome| 1.0 - it.efficiency.unwrap_or(1.0);
    1.0 - unused(&run.plan) / unused(&run.stock)
}

/// For people.
struct Table<'a>(&'a Answer);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |it: &Outcome| format!("{:.2}", 100.0 * it.efficiency.unwrap_or(1.0));
        for (place, compared) in self.0.trainings.iter().enumerate() {
            if place == 0 {
                write!(f, "{:24}", "most requested at once over most reserved, %")?;
                writeln!(f)?;
                write!(f, "{:24}{:>10}", "", "GiB")?;
                for title in ["stock", "expandable", "plan", "plan + exp.", "fragm. lower"] {
                    write!(f, "{title:>14}")?;
                }
                for run in &compared.runs[1..] {
                    write!(f, "{:>21}", run.differs)?;
                }
                writeln!(f)?;
            }
            let run = &compared.runs[0];
            let gib = run.stock.peak_requested as f64 / (1_u64 << 30) as f64;
            write!(f, "{:24}{gib:>10.2}", compared.training)?;
            for outcome in [&run.stock, &run.expandable, &run.plan, &run.plan_expandable] {
                write!(f, "{:>14}", percent(outcome))?;
            }
            write!(f, "{:>13.1}%", 100.0 * less_fragmented(run))?;
            for run in &compared.runs[1..] {
                let both = format!("{} / {}", percent(&run.plan), percent(&run.stock));
                write!(f, "{both:>21}")?;
            }
            writeln!(f)?;
        }
        let mean = 100.0 * self.0.fragmentation_lower;
        let less = "less of what is reserved is unused than with stock.";
        writeln!(f, "\nOn average {mean:.1} % {less}")?;
        let last = "The last columns are runs that differ from the one that was planned";
        writeln!(f, "{last}: plan / stock.")
    }
}
