//! How tests ended, what that means for the fork, and the table that says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report::tally::Tally;

/// Tests that fail with the official wheel too: (test, reason). None is known in 2.15.0.
///
/// A failure with the official wheel that is not listed here fails the run: it would hide what
/// the fork breaks.
const KNOWN_STOCK_FAILURES: &[(&str, &str)] = &[];

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran and passed.
    Passed,
    /// It ran and failed; the first line of why.
    Failed(String),
    /// It did not want to run; its reason.
    Skipped(String),
    /// It never ended; what became of the process.
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

/// Every test by name, of one file.
pub type Outcomes = BTreeMap<String, Outcome>;

/// What one configuration gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// The column's title.
    pub title: &'static str,
    /// Whether this is the official wheel, that the others are compared with.
    pub baseline: bool,
    /// How each test ended.
    pub outcomes: Outcomes,
    /// Whether the engine must have served requests, and how many it did where that is known.
    pub served: Served,
}

impl Run {
    /// The column's width: the title's, and at least that of the longest word.
    fn column(&self) -> usize {
        self.title.len().max("CRASHED".len())
    }
}

/// What the engine had to do with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// It is of no matter.
    Any,
    /// The tests must have gone through the engine; it served so many requests.
    Wanted(u64),
}

/// All runs, and the tests that had to take part.
#[derive(Debug)]
pub struct Verdict {
    expected: Vec<String>,
    runs: Vec<Run>,
}

impl Verdict {
    /// For the tests that the sources name.
    pub fn new(expected: Vec<String>, runs: Vec<Run>) -> Self {
        Self { expected, runs }
    }

    /// Test by configuration, with a legend of everything that is not "passed".
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
                // Where nothing is to be complained of, what failed is known to fail with stock.
                _ => tally.skipped += 1,
            }
        }
        tally
    }

    /// What is wrong, a line each; nothing where all is well.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.expected.is_empty() {
            complaints.push("the sources name no test at all".to_owned());
        }
        let baseline = self.runs.iter().find(|run| run.baseline);
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
            let explained = known(name).is_some() && what == "failed";
            return (!explained).then(|| format!("{name} {what} with the official wheel"));
        }
        // A test that the official wheel fails says nothing about the fork.
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

fn known(name: &str) -> Option<&'static str> {
    KNOWN_STOCK_FAILURES
        .iter()
        .find(|(test, _)| *test == name)
        .map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(title: &'static str, baseline: bool, outcomes: &[(&str, Outcome)]) -> Run {
        let outcomes = outcomes
            .iter()
            .map(|(name, it)| ((*name).to_owned(), it.clone()))
            .collect();
        Run {
            title,
            baseline,
            outcomes,
            served: Served::Any,
        }
    }

    fn expected(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_only_the_fork_fails_is_a_complaint_and_all_of_it_is_shown() {
        let failed = Outcome::Failed("AssertionError: 1 != 2".into());
        let verdict = Verdict::new(
            expected(&["test_a", "test_b"]),
            vec![
                run(
                    "stock",
                    true,
                    &[("test_a", Outcome::Passed), ("test_b", failed.clone())],
                ),
                run(
                    "fork",
                    false,
                    &[("test_a", failed.clone()), ("test_b", failed)],
                ),
            ],
        );
        insta::assert_snapshot!(verdict.table(), @"
        test    stock    fork
        test_a  passed   FAILED
        test_b  FAILED   FAILED

          test_a (fork): AssertionError: 1 != 2
          test_b (stock): AssertionError: 1 != 2
          test_b (fork): AssertionError: 1 != 2
        ");
        insta::assert_snapshot!(verdict.complaints().join("\n"), @"
        test_b failed with the official wheel
        test_a failed with fork, and passes with the official wheel
        ");
    }

    #[test]
    fn a_test_that_did_not_run_is_a_complaint() {
        let skipped = Outcome::Skipped("no CUDA".into());
        let runs = vec![run("stock", true, &[("test_a", skipped)])];
        let complaints = Verdict::new(expected(&["test_a", "test_b"]), runs).complaints();
        insta::assert_snapshot!(complaints.join("\n"), @"
        test_a was skipped with the official wheel
        test_b did not run with the official wheel
        ");
    }

    #[test]
    fn no_tests_is_a_complaint_and_so_is_an_engine_that_served_nothing() {
        assert!(!Verdict::new(Vec::new(), Vec::new()).complaints().is_empty());
        let mut idle = run("fork", false, &[("test_a", Outcome::Passed)]);
        idle.served = Served::Wanted(0);
        let stock = run("stock", true, &[("test_a", Outcome::Passed)]);
        let complaints = Verdict::new(expected(&["test_a"]), vec![stock, idle]).complaints();
        assert_eq!(complaints, ["fork: no request went through the engine"]);
    }
}
