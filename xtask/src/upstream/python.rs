//! PyTorch's Python tests: their requirements, running them, and reading the report.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::outcome::{Outcome, Outcomes};
use super::process;
use crate::python::Python;
use crate::python::pip;
use crate::python::tools::Tools;
use crate::support::paths;
use crate::support::progress::Step;
use crate::support::scratch::Scratch;

/// The imports of test_cuda.py and torch.testing besides torch.
const REQUIREMENTS: [&str; 4] = ["expecttest", "hypothesis", "numpy", "psutil"];

/// A separate folder for the requirements, so that the environments do not change.
pub fn ensure_requirements(python: &Python, tools: &Tools, step: &Step) -> Result<PathBuf> {
    let key = format!("{}-{}", python.abi_tag(), REQUIREMENTS.join("-"));
    let folder = paths::target().join("upstream").join(key);
    if folder.exists() {
        return Ok(folder);
    }
    step.say(format!("pip install {}", REQUIREMENTS.join(" ")));
    pip::install_into(&tools.python, &REQUIREMENTS, false, &folder, step)?;
    Ok(folder)
}

/// The most processes; with more crashes everything is broken.
const PROCESSES: usize = 6;

/// A choice of tests, as `tests/upstream/run_tests.py` takes it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The file with the tests.
    pub file: PathBuf,
    /// Parts of names.
    pub patterns: Vec<String>,
    /// Of the tests that run behind all others.
    pub last: Vec<String>,
    /// Whole names of tests that do not run.
    pub without: Vec<String>,
    /// The time limit of a process.
    pub limit: Duration,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// How each test ended.
    pub outcomes: Outcomes,
    /// How many requests the engine served; `None` without an engine.
    pub served: Option<u64>,
    /// The same of device memory's plan.
    pub planned: Option<u64>,
}

/// Runs the tests. `command` is the environment's Python, under the simulator.
pub fn run(
    mut command: Command,
    choice: &Choice,
    requirements: &Path,
    log: &Path,
) -> Result<Report> {
    let report = log.with_extension("json");
    let folder = choice.file.parent().context("the test is in no folder")?;
    let python_path = std::env::join_paths([requirements, folder])
        .context("a folder with a colon in its name cannot be on PYTHONPATH")?;
    // Upstream's tests write files to the current folder.
    let work = Scratch::folder(&log.with_extension("work"))?;
    command
        .current_dir(work.path())
        .arg(paths::root().join("tests/upstream/run_tests.py"))
        .arg(&choice.file)
        .arg(choice.patterns.join(","))
        .arg(&report)
        .arg(choice.last.join(","))
        .arg(choice.without.join(","))
        .env("PYTHONPATH", python_path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONHOME");
    fs::remove_file(&report).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut known = Report::default();
    // After a crash the next process continues behind the crashed test.
    for part in 1..=PROCESSES {
        let log = match part {
            1 => log.to_path_buf(),
            _ => log.with_extension(format!("{part}.log")),
        };
        let ended = process::run(&mut command, choice.limit, &log)?;
        let text = fs::read_to_string(&report).unwrap_or_default();
        if !known.take(read(&text, &ended.how)?) || ended.stopped {
            break;
        }
    }
    Ok(known)
}

impl Report {
    /// Adds a later reading of the same file; returns whether another test has crashed.
    fn take(&mut self, later: Self) -> bool {
        let mut crashed = false;
        for (name, outcome) in later.outcomes {
            let known = matches!(self.outcomes.get(&name), Some(Outcome::Crashed(_)));
            if !known {
                crashed |= matches!(outcome, Outcome::Crashed(_));
                self.outcomes.insert(name, outcome);
            }
        }
        self.served = later.served;
        self.planned = later.planned;
        crashed
    }
}

/// Parses a line of the report.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Test {
        test: String,
        outcome: String,
        detail: String,
    },
    Served {
        served: u64,
        #[serde(default)]
        planned: u64,
    },
}

fn read(report: &str, how: &str) -> Result<Report> {
    let mut outcomes = Outcomes::new();
    let (mut served, mut planned) = (None, None);
    for line in report.lines() {
        // The last line of a stopped process may be cut off.
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            continue;
        };
        match line {
            Line::Served {
                served: engine,
                planned: plan,
            } => {
                served = Some(served.unwrap_or(0) + engine);
                planned = Some(planned.unwrap_or(0) + plan);
            }
            Line::Test {
                test,
                outcome,
                detail,
            } => {
                let outcome = match outcome.as_str() {
                    "started" => Outcome::Crashed(how.to_owned()),
                    "passed" => Outcome::Passed,
                    "failed" => Outcome::Failed(detail),
                    "skipped" => Outcome::Skipped(detail),
                    other => anyhow::bail!("run_tests.py says {other:?} of {test}"),
                };
                // A failed test stays failed if its teardown passes.
                let failed = matches!(outcomes.get(&test), Some(Outcome::Failed(_)));
                if !(failed && outcome == Outcome::Passed) {
                    outcomes.insert(test, outcome);
                }
            }
        }
    }
    Ok(Report {
        outcomes,
        served,
        planned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_report_of_a_process_that_crashed() {
        let report = r#"{"test": "test_a", "outcome": "started", "detail": ""}
{"test": "test_a", "outcome": "passed", "detail": ""}
{"test": "test_b", "outcome": "started", "detail": ""}
{"test": "test_b", "outcome": "failed", "detail": "AssertionError: x"}
{"test": "test_c", "outcome": "started", "detail": ""}
{"test": "te"#;
        let report = read(report, "signal 11").unwrap();
        assert_eq!(report.outcomes["test_a"], Outcome::Passed);
        assert_eq!(
            report.outcomes["test_b"],
            Outcome::Failed("AssertionError: x".into())
        );
        assert_eq!(
            report.outcomes["test_c"],
            Outcome::Crashed("signal 11".into())
        );
        assert_eq!(report.served, None);
    }

    #[test]
    fn what_crashed_stays_crashed_and_the_rest_goes_on() {
        let first = "{\"test\": \"test_a\", \"outcome\": \"started\", \"detail\": \"\"}\n";
        let mut known = Report::default();
        assert!(
            known.take(read(first, "signal 11").unwrap()),
            "to be gone on with"
        );
        let rest =
            "{\"test\": \"test_b\", \"outcome\": \"passed\", \"detail\": \"\"}\n{\"served\": 3}\n";
        let both = read(&format!("{first}{rest}"), "exit status: 0").unwrap();
        assert!(!known.take(both), "nothing new has crashed");
        assert_eq!(
            known.outcomes["test_a"],
            Outcome::Crashed("signal 11".into())
        );
        assert_eq!(known.outcomes["test_b"], Outcome::Passed);
        assert_eq!(known.served, Some(3));
    }

    #[test]
    fn reads_what_the_engine_served() {
        assert_eq!(
            read("{\"served\": 12}\n", "exit status 0").unwrap().served,
            Some(12)
        );
        let both = read("{\"served\": 1, \"planned\": 7}\n", "exit status 0");
        assert_eq!(both.unwrap().planned, Some(7));
    }
}
