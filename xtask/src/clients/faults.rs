//! Client programs under faults: each with stock and with the fork, once for each of ten calls that fail.
//!
//! The simulator makes the call fail (`tests/cuda-sim/src/fault.rs`). `verdict` says what is allowed.
//! `tests/clients/faults.toml` lists what differs, with its reason.

mod verdict;

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::client::{self, Client};
use super::environments::Environments;
use super::report::Ran;
use super::run::run as run_client;
use crate::python::environment::Environment;
use crate::runtime;
use crate::support::paths;
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use verdict::Outcome;

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

/// A client under one fault.
#[derive(Debug)]
struct Row {
    client: &'static str,
    fault: &'static str,
    stock: String,
    fork: String,
    outcome: Outcome,
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

/// How often stock is run where the fork ends otherwise: where threads decide how a program ends, stock has several ends.
const STOCK_RUNS: usize = 3;

/// Runs the named clients, or all; prints a row for each fault, and sums.
pub fn run(names: &[String]) -> Result<()> {
    let rows = all(names)?;
    let count = |wanted| rows.iter().filter(|row| row.outcome == wanted).count();
    for row in &rows {
        let (client, fault) = (row.client, row.fault);
        println!("{client:<20}{fault:<34}{:<44}{}", row.stock, row.fork);
    }
    println!(
        "{} clients, {} faults not met, {} survived, {} ended as stock, {} differ as listed",
        rows.len() / FAULTS.len(),
        count(Outcome::NotMet),
        count(Outcome::Survived),
        count(Outcome::AsStock),
        count(Outcome::AsListed),
    );
    let differs = rows.iter().filter(|row| row.outcome == Outcome::Differs);
    let differs: Vec<_> = differs
        .map(|row| format!("{} ({})", row.client, row.fault))
        .collect();
    if differs.is_empty() {
        return Ok(());
    }
    Err(refuse("client programs end otherwise than with stock")
        .found(differs.join(", "))
        .expected("what stock does, or an entry in tests/clients/faults.toml that says why not")
        .into())
}

/// What became of each under each fault.
fn all(names: &[String]) -> Result<Vec<Row>> {
    let known = known()?;
    let python = Path::new("python3");
    let chosen = client::choose(names)?;
    let runtime = runtime::choose(false)?;
    let libraries = chosen.iter().any(|it| it.library.is_some());
    let environments = Environments::ensure_two(python, libraries)?;
    let (stock, fork) = (&environments.stock, &environments.others[0].1);
    let progress = Progress::new(chosen.len());
    let mut rows = Vec::new();
    for client in chosen {
        rows.extend(progress.step(client.name, |step| {
            let one = |environment: &Environment, plan: &str| {
                let variables = [("PINBUDDY_SIM_FAULTS", plan), ("PINBUDDY_SIM_LOG", "1")];
                run_client(client, environment, &runtime, &variables)
            };
            of_client(
                client,
                |plan| one(stock, plan),
                |plan| one(fork, plan),
                &known,
                step,
            )
        })?);
    }
    Ok(rows)
}

fn of_client(
    client: &'static Client,
    stock: impl Fn(&str) -> Result<Ran> + Sync,
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
        // Side by side, since each is mostly one thread that imports.
        let (fork, first) = thread::scope(|scope| {
            let beside = scope.spawn(|| stock(plan));
            (fork(plan), beside.join())
        });
        let first = first.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (fork, mut stocks) = (fork?, vec![first?]);
        let mut outcome = verdict::of(&clean, &stocks, &fork);
        while outcome == Outcome::Differs && stocks.len() < STOCK_RUNS {
            stocks.push(stock(plan)?);
            outcome = verdict::of(&clean, &stocks, &fork);
        }
        if outcome == Outcome::Differs && known.lists(client.name, fault) {
            outcome = Outcome::AsListed;
        }
        if outcome == Outcome::Differs {
            eprintln!(
                "{}, {fault}: the fork's last words\n{}",
                client.name, fork.last_words
            );
        }
        rows.push(Row {
            client: client.name,
            fault,
            stock: stocks.last().map(verdict::end).unwrap_or_default(),
            fork: verdict::end(&fork),
            outcome,
        });
    }
    Ok(rows)
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
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::verdict::tests::ran;
    use super::*;

    const CLIENT: &Client = &client::CLIENTS[0];

    /// What becomes of the first fault where stock ends so, one run after the other, and the fork so.
    fn first_of(stock: &[Ran], fork: &Ran) -> (Outcome, usize) {
        let clean = ran("exit code 0", None, Some(1));
        let runs = AtomicUsize::new(0);
        let stock = |plan: &str| {
            Ok(if plan == FAULTS[0].1 {
                let run = runs.fetch_add(1, Relaxed);
                stock[run.min(stock.len() - 1)].clone()
            } else {
                clean.clone()
            })
        };
        let fork = |plan: &str| Ok(if plan == FAULTS[0].1 { fork } else { &clean }.clone());
        let rows = Progress::new(1)
            .step("", |step| {
                of_client(CLIENT, stock, fork, &Known::default(), step)
            })
            .unwrap();
        assert_eq!(rows.len(), FAULTS.len());
        (rows[0].outcome, runs.into_inner())
    }

    #[test]
    fn stock_is_run_again_where_the_fork_ends_otherwise_and_the_fork_never() {
        let failed = ran("exit code 1", Some("torch.AcceleratorError"), None);
        let other = ran("exit code 1", Some("RuntimeError"), None);
        let one = std::slice::from_ref(&failed);
        assert_eq!(first_of(one, &failed), (Outcome::AsStock, 1));
        assert_eq!(first_of(one, &other), (Outcome::Differs, STOCK_RUNS));
        let both = [failed, other.clone()];
        assert_eq!(first_of(&both, &other), (Outcome::AsStock, 2));
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
