//! Outcomes of tests, the verdict on the fork, and its table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::support::tally::Tally;

/// Tests of the default tree that fail with the official wheel, too: (test, reason).
///
/// An unlisted failure with the official wheel fails the run, since it could hide a failure of the fork.
const KNOWN_STOCK_FAILURES: &[(&str, &str)] = &[(
    "test_copy_non_blocking_type_conversion",
    "it converts on the GPU, and the simulator's kernels compute nothing",
)];

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Passed.
    Passed,
    /// Failed; the first line of the reason.
    Failed(String),
    /// Skipped; the reason.
    Skipped(String),
    /// Crashed or timed out; the end of the process.
    Crashed(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
            Self::Crashed(_) => "CRASHED",
        }
    }

    fn detail(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(text) | Self::Skipped(text) | Self::Crashed(text) => Some(text),
        }
    }
}

/// Outcomes by test, of one file.
pub type Outcomes = BTreeMap<String, Outcome>;

/// Whether all outcomes are fine or have a known reason.
pub fn is_explained(outcomes: &Outcomes) -> bool {
    let explained = |(name, outcome): (&String, &Outcome)| match outcome {
        Outcome::Passed | Outcome::Skipped(_) => true,
        Outcome::Failed(_) => known(name).is_some(),
        Outcome::Crashed(_) => false,
    };
    !outcomes.is_empty() && outcomes.iter().all(explained)
}

/// The results of a configuration.
#[derive(Clone, Debug)]
pub struct Run {
    /// The column's title.
    pub title: &'static str,
    /// Whether this is the official wheel, the baseline.
    pub baseline: bool,
    /// How each test ended.
    pub outcomes: Outcomes,
    /// Whether the engine must have served requests, and how many it served, if known.
    pub served: Served,
}

impl Run {
    /// The column's width.
    fn column(&self) -> usize {
        self.title.len().max("CRASHED".len())
    }
}

/// The engine's part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// Irrelevant.
    Any,
    /// The engine must have served requests; it served this many.
    Wanted(u64),
}

/// The requirement on the official wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Every test passes or its failure is explained, since the simulator's limits are known.
    Whole,
    /// Every test runs and some pass; other failures are the machine's.
    AsItIs,
}

/// All runs, and the expected tests.
#[derive(Debug)]
pub struct Verdict {
    expected: Vec<String>,
    baseline: Baseline,
    runs: Vec<Run>,
}

impl Verdict {
    /// A verdict on the tests that the sources name.
    pub fn new(expected: Vec<String>, baseline: Baseline, runs: Vec<Run>) -> Self {
        let ran: BTreeSet<&String> = runs.iter().flat_map(|run| run.outcomes.keys()).collect();
        let expected = expected
            .iter()
            .flat_map(|name| made_of(name, &expected, &ran));
        Self {
            expected: expected.collect(),
            baseline,
            runs,
        }
    }

    /// The table of tests by configuration, with a legend of everything but "passed".
    pub fn table(&self) -> String {
        let names = self.names();
        let width = names.iter().map(|name| name.len()).max().unwrap_or(4);
        let mut text = format!("{:width$}", "test");
        for run in &self.runs {
            write!(text, "  {:1$}", run.title, run.column()).expect("writing to a string");
        }
        let mut details = String::new();
        for name in names {
            write!(text, "\n{name:width$}").expect("writing to a string");
            for run in &self.runs {
                let outcome = run.outcomes.get(name);
                let word = outcome.map_or("NOT RUN", Outcome::word);
                write!(text, "  {word:0$}", run.column()).expect("writing to a string");
                if let Some(detail) = outcome.and_then(Outcome::detail) {
                    writeln!(details, "  {name} ({}): {detail}", run.title).expect("the same");
                }
                if let Some(reason) = known(name).filter(|_| run.baseline) {
                    writeln!(details, "  {name} is known to fail with stock: {reason}")
                        .expect("the same");
                }
            }
        }
        let lines = text
            .lines()
            .map(str::trim_end)
            .collect::<Vec<_>>()
            .join("\n");
        if details.is_empty() {
            lines
        } else {
            format!("{lines}\n\n{}", details.trim_end())
        }
    }

    /// All tests of all runs.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for outcome in self.runs.iter().flat_map(|run| run.outcomes.values()) {
            match outcome {
                Outcome::Passed => tally.passed += 1,
                // Without complaints, all failures are known failures of stock.
                _ => tally.skipped += 1,
            }
        }
        tally
    }

    /// All complaints, one per line.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.expected.is_empty() {
            complaints.push("the sources name no test at all".to_owned());
        }
        let baseline = self.runs.iter().find(|run| run.baseline);
        let passes = |run: &Run| run.outcomes.values().any(|it| *it == Outcome::Passed);
        if !baseline.is_none_or(passes) {
            complaints.push("not one test passes with the official wheel".to_owned());
        }
        for run in &self.runs {
            for name in &self.expected {
                complaints.extend(self.complaint(run, baseline, name));
            }
            if run.served == Served::Wanted(0) {
                complaints.push(format!("{}: no request went through the engine", run.title));
            }
        }
        complaints
    }

    fn complaint(&self, run: &Run, baseline: Option<&Run>, name: &str) -> Option<String> {
        let stock = baseline.and_then(|run| run.outcomes.get(name));
        let what = match run.outcomes.get(name) {
            Some(Outcome::Passed) => return None,
            None => "did not run",
            Some(Outcome::Skipped(_)) => "was skipped",
            Some(Outcome::Failed(_)) => "failed",
            Some(Outcome::Crashed(_)) => "crashed",
        };
        if run.baseline {
            let explained = match self.baseline {
                Baseline::Whole => known(name).is_some() && what == "failed",
                // After a crash the other tests do not run, and tell nothing about the fork.
                Baseline::AsItIs => what != "did not run",
            };
            return (!explained).then(|| format!("{name} {what} with the official wheel"));
        }
        // A test that the official wheel fails tells nothing about the fork.
        (stock == Some(&Outcome::Passed)).then(|| {
            format!(
                "{name} {what} with {}, and passes with the official wheel",
                run.title
            )
        })
    }

    /// Expected tests first, then others that ran.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.expected.iter().map(String::as_str).collect();
        for name in self.runs.iter().flat_map(|run| run.outcomes.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

/// The tests that ran for a name in the sources: the name itself, or its parametrized variants. A name without any
/// stands for itself.
fn made_of(name: &str, expected: &[String], ran: &BTreeSet<&String>) -> Vec<String> {
    let begins = |test: &str, name: &str| {
        let rest = test.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let nearer = |test: &str| {
        let mut others = expected.iter().filter(|it| it.len() > name.len());
        others.any(|it| test == it.as_str() || begins(test, it))
    };
    let mut made: Vec<String> = ran
        .iter()
        .filter(|test| begins(test, name) && !nearer(test))
        .map(|&test| test.clone())
        .collect();
    if made.is_empty() || ran.contains(&name.to_owned()) {
        made.push(name.to_owned());
    }
    made
}

fn known(name: &str) -> Option<&'static str> {
    KNOWN_STOCK_FAILURES
        .iter()
        .find(|(test, _)| *test == name)
        .map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests;
