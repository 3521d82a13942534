//! Client programs under faults: each with stock and with the fork, once for each of ten calls that fail.
//!
//! The simulator makes the call fail (`tests/cuda-sim/src/fault.rs`). Allowed are an end as stock's in the same place, and
//! an end as without faults, with the same results. Whether a fault was met is known from what the simulator says.
//! `tests/clients/faults.toml` lists what differs, with its reason.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::client::{self, Client};
use super::report::Ran;
use super::run;
use crate::python::environment::Environment;
use crate::runtime;
use crate::support::paths;
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::venv;

/// The ten commonest of the sweep, as the simulator reads them: pins, unpins, events, copies, a context that is lost, and
/// memory of our own. What pinbuddy calls where stock calls something else fails with it.
const FAULTS: [(&str, &str); 10] = [
    ("a pin, once", "cudaHostAlloc:1=2;cudaHostRegister:1=2"),
    ("every pin", "cudaHostAlloc:1+=2;cudaHostRegister:1+=2"),
    (
        "the third pin and all later ones",
        "cudaHostAlloc:3+=2;cudaHostRegister:3+=2",
    ),
    ("an unpin", "cudaFreeHost:1=999;cudaHostUnregister:1=999"),
    ("an event's creation", "cudaEventCreateWithFlags:1=999"),
    ("an event's record", "cudaEventRecord:1=999"),
    ("an event's query", "cudaEventQuery:1=999"),
    ("a copy", "cudaMemcpyAsync:1=999"),
    ("a copy, and the context is lost", "cudaMemcpyAsync:2=700"),
    ("every mmap and madvise", "mmap:1+=12;madvise:1+=12"),
];

/// What the simulator says of a call that it made fail.
const MET: &str = " is made to ";

/// What became of a client under one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No call failed.
    NotMet,
    /// It ended as without faults.
    Survived,
    /// It ended as stock did.
    AsStock,
    /// Something else, as listed.
    AsListed,
    Differs,
}

/// A client under one fault.
#[derive(Debug, Serialize)]
pub struct Row {
    pub client: &'static str,
    pub fault: &'static str,
    pub stock: String,
    pub fork: String,
    pub outcome: Outcome,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(default)]
    difference: Vec<Entry>,
}

/// A difference with its reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    client: String,
    fault: String,
    why: String,
}

/// Runs the named clients, or all that need torch alone; what became of each under each fault.
pub fn all(names: &[String]) -> Result<Vec<Row>> {
    let known = known()?;
    let python = Path::new("python3");
    let chosen = client::choose(names)?;
    let chosen: Vec<_> = chosen
        .into_iter()
        .filter(|it| it.library.is_none())
        .collect();
    let runtime = runtime::choose(false, python)?;
    let fork = venv::ensure(None, false, python)?;
    let stock = venv::ensure(None, true, python)?;
    for environment in [&fork, &stock] {
        venv::require(environment, python, &["numpy"])?;
    }
    let progress = Progress::new(chosen.len());
    let mut rows = Vec::new();
    for client in chosen {
        rows.extend(progress.step(client.name, |step| {
            let one = |environment: &Environment, plan: &str| {
                let variables = [("PINBUDDY_SIM_FAULTS", plan), ("PINBUDDY_SIM_LOG", "1")];
                run::run(client, environment, &runtime, &variables)
            };
            of_client(
                client,
                |plan| one(&stock, plan),
                |plan| one(&fork, plan),
                &known,
                step,
            )
        })?);
    }
    Ok(rows)
}

fn of_client(
    client: &'static Client,
    stock: impl Fn(&str) -> Result<Ran>,
    fork: impl Fn(&str) -> Result<Ran>,
    known: &Known,
    step: &Step,
) -> Result<Vec<Row>> {
    let clean = stock("")?;
    if !clean.succeeded() {
        return Err(
            refuse(format!("{} fails with stock and no fault", client.name))
                .found(&clean.last_words)
                .remedy(format!("cargo xtask test-clients {}", client.name))
                .into(),
        );
    }
    let mut rows = Vec::new();
    for (fault, plan) in FAULTS {
        step.say(fault);
        let (stock, fork) = (stock(plan)?, fork(plan)?);
        let outcome = match outcome(client.name, &clean, &stock, &fork) {
            Outcome::Differs if known.lists(client.name, fault) => Outcome::AsListed,
            it => it,
        };
        if outcome == Outcome::Differs {
            eprintln!(
                "{}, {fault}: the fork's last words\n{}",
                client.name, fork.last_words
            );
        }
        rows.push(Row {
            client: client.name,
            fault,
            stock: end(&stock),
            fork: end(&fork),
            outcome,
        });
    }
    Ok(rows)
}

fn outcome(client: &str, clean: &Ran, stock: &Ran, fork: &Ran) -> Outcome {
    let results = |it: &Ran| it.report.as_ref().map(|it| it.results.clone());
    if fork.succeeded() && [clean, stock].iter().any(|it| results(it) == results(fork)) {
        if fork.warnings.iter().any(|it| it.contains(MET)) {
            Outcome::Survived
        } else {
            Outcome::NotMet
        }
    } else if !stock.succeeded() && ends_alike(client, stock, fork) {
        Outcome::AsStock
    } else {
        Outcome::Differs
    }
}

/// Where a DataLoader fails, its thread raises the error while its processes find their pipes closed, and which of them has the
/// last word is a race, with stock, too.
fn ends_alike(client: &str, stock: &Ran, fork: &Ran) -> bool {
    let [one, other] = [exception(stock), exception(fork)];
    let is_of_a_pipe = |it| {
        matches!(
            it,
            None | Some("ConnectionResetError" | "EOFError" | "BrokenPipeError")
        )
    };
    let races = client.starts_with("loader-") && (is_of_a_pipe(one) || is_of_a_pipe(other));
    stock.exit == fork.exit && (one == other || races)
}

/// How it ended, and with which exception.
fn end(ran: &Ran) -> String {
    if ran.succeeded() {
        return ran.exit.clone();
    }
    format!("{}, {}", ran.exit, exception(ran).unwrap_or("no exception"))
}

/// The exception that its last words are about.
fn exception(ran: &Ran) -> Option<&str> {
    let is_of_python = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        let last = name.rsplit('.').next().unwrap_or_default();
        last.ends_with("Error") && last.chars().all(char::is_alphanumeric)
    };
    let exception = ran.last_words.lines().rev().find(is_of_python);
    exception.and_then(|it| it.split(':').next())
}

impl Known {
    fn lists(&self, client: &str, fault: &str) -> bool {
        let is = |it: &Entry| it.client == client && it.fault == fault && !it.why.trim().is_empty();
        self.difference.iter().any(is)
    }
}

fn known() -> Result<Known> {
    let path = paths::root().join("tests/clients/faults.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::clients::report::Report;

    fn ran(exit: &str, said: &str, result: Option<u64>) -> Ran {
        let report = |it: u64| Report {
            results: BTreeMap::from([("data".to_owned(), it.into())]),
            statistics: BTreeMap::new(),
            names: Vec::new(),
            peak_pinned: 0,
            peak_active: 0,
            pins: 0,
        };
        Ran {
            exit: exit.to_owned(),
            seconds: 1.0,
            warnings: BTreeSet::from([said.to_owned()]),
            last_words: said.to_owned(),
            report: result.map(report),
        }
    }

    #[test]
    fn an_end_is_stocks_or_that_without_faults() {
        let clean = ran("exit code 0", "", Some(1));
        let survived = ran("exit code 0", "cudaFree is made to answer #", Some(1));
        let wrong = ran("exit code 0", "cudaFree is made to answer #", Some(2));
        let failed = ran(
            "exit code 1",
            "Traceback\ntorch.AcceleratorError: CUDA error: x\nSee above",
            None,
        );
        let otherwise = ran("exit code 1", "OSError: x", None);
        let killed = ran("signal 11", "", None);
        for (stock, fork, expected) in [
            (&clean, &clean, Outcome::NotMet),
            (&failed, &survived, Outcome::Survived),
            (&failed, &failed, Outcome::AsStock),
            (&wrong, &wrong, Outcome::Survived),
            (&failed, &otherwise, Outcome::Differs),
            (&failed, &wrong, Outcome::Differs),
            (&survived, &failed, Outcome::Differs),
            (&failed, &killed, Outcome::Differs),
            (&survived, &wrong, Outcome::Differs),
        ] {
            assert_eq!(
                outcome("kv-pool", &clean, stock, fork),
                expected,
                "{} {}",
                end(stock),
                end(fork)
            );
        }
        // Which process of a loader has the last word is a race, and how they end is none.
        let pipe = ran("exit code 1", "ConnectionResetError: [Errno 104]", None);
        assert_eq!(outcome("kv-pool", &clean, &failed, &pipe), Outcome::Differs);
        assert_eq!(
            outcome("loader-fork", &clean, &failed, &pipe),
            Outcome::AsStock
        );
        assert_eq!(
            outcome("loader-fork", &clean, &failed, &killed),
            Outcome::Differs
        );
        assert_eq!(
            outcome("loader-fork", &clean, &failed, &otherwise),
            Outcome::Differs
        );
        assert_eq!(end(&failed), "exit code 1, torch.AcceleratorError");
        assert_eq!(end(&killed), "signal 11, no exception");
    }

    #[test]
    fn what_is_listed_is_a_client_and_a_fault_with_a_reason() {
        for it in known().unwrap().difference {
            assert!(client::choose(std::slice::from_ref(&it.client)).is_ok());
            assert!(
                FAULTS.iter().any(|(name, _)| *name == it.fault),
                "{}",
                it.fault
            );
            assert!(!it.why.trim().is_empty(), "{}: {}", it.client, it.fault);
        }
    }
}
