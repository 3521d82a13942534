//! `cargo xtask test-clients`: runs client programs with stock, the fork and the plug-in, and compares results,
//! exit, warnings, peak of pinned memory and statistics.
//!
//! Invariant: the command fails on an unlisted difference, and on a listed one that no longer exists.

mod client;
mod compare;
mod differences;
mod environments;
mod faults;
mod report;
mod run;
mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::cli;
use crate::python::environment::Environment;
use crate::runtime::{self, Runtime};
use crate::support::progress::{Progress, Step};
use crate::support::refusal::refuse;
use crate::support::tally::Tally;
use client::Client;
use differences::Known;
use environments::Environments;
use table::Row;

pub fn run(args: &cli::TestClients) -> Result<()> {
    if args.faults {
        return faults::run(&args.names);
    }
    let chosen = client::choose(&args.names)?;
    let known = Known::read()?;
    let runtime = runtime::choose(args.real)?;
    let environments = Environments::ensure(args)?;
    let rows = in_turn(&chosen, &environments, &runtime, &known)?;
    print!("\n{}", table::text(&rows));
    if let Some(file) = &args.json {
        write(file, &environments.torch(), &runtime, &rows)?;
    }
    let failed: Vec<_> = rows
        .iter()
        .filter(|it| it.failed())
        .map(|it| it.client)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names = failed.join(" ");
    Err(
        refuse(format!("not as with stock, or not as listed: {names}"))
            .found("the errors above")
            .expected(
                "what stock does, or a line in tests/clients/differences.toml that says why not",
            )
            .remedy(format!("cargo xtask test-clients {names}"))
            .into(),
    )
}

/// Runs the quickest clients, which need only torch, with two existing environments.
pub fn quick(fork: &Environment, stock: &Environment, runtime: &Runtime) -> Result<Tally> {
    let chosen: Vec<_> = client::CLIENTS.iter().filter(|it| it.quick).collect();
    let environments = Environments::of(stock, fork);
    let rows = in_turn(&chosen, &environments, runtime, &Known::read()?)?;
    eprint!("{}", table::text(&rows));
    let failed = rows.iter().filter(|it| it.failed()).count();
    Ok(Tally {
        passed: rows.len() - failed,
        failed,
        ..Tally::default()
    })
}

fn in_turn(
    chosen: &[&'static Client],
    environments: &Environments,
    runtime: &Runtime,
    known: &Known,
) -> Result<Vec<Row>> {
    let progress = Progress::new(chosen.len());
    let one = |client: &&'static Client| {
        progress.step(client.name, |step| {
            one(client, environments, runtime, known, step)
        })
    };
    chosen.iter().map(one).collect()
}

/// Runs a client with each environment in turn.
fn one(
    client: &'static Client,
    environments: &Environments,
    runtime: &Runtime,
    known: &Known,
    step: &Step,
) -> Result<Row> {
    step.say("stock");
    let stock = run::run(client, &environments.stock, runtime, &[])?;
    let (mut others, mut differences) = (Vec::new(), Vec::new());
    for (kind, environment) in &environments.others {
        step.say(kind.to_string());
        let ran = run::run(client, environment, runtime, &[])?;
        let found = compare::compare(&stock, &ran);
        differences.extend(known.judge(client.name, *kind, found));
        others.push((*kind, ran));
    }
    let gone = known.gone(client.name, &environments.kinds(), &differences);
    Ok(Row {
        client: client.name,
        library: client.library,
        stock,
        others,
        differences,
        gone,
    })
}

fn write(file: &Path, torch: &str, runtime: &Runtime, rows: &[Row]) -> Result<()> {
    let clients: Vec<_> = rows
        .iter()
        .map(|row| {
            let mut value = serde_json::to_value(row)?;
            value["outcome"] = serde_json::to_value(row.outcome())?;
            anyhow::Ok(value)
        })
        .collect::<Result<_>>()?;
    let whole = json!({
        "torch": torch,
        "where": runtime.place(),
        "clients": clients,
    });
    fs::write(file, serde_json::to_string_pretty(&whole)? + "\n")
        .with_context(|| format!("writing {}", file.display()))
}
