//! `cargo xtask bench`: the fork beside the official wheel and other allocators, in one run.
//!
//! Invariant: what is compared ran in this run, in turns, on the same requests; ratios are the result.

pub mod part;
mod place;
mod script;

use anyhow::Result;

use crate::cli;
use crate::report::progress::Progress;
use part::Part;
use place::Place;

/// The command.
pub fn run(args: &cli::Bench) -> Result<()> {
    let parts = Part::chosen(&args.only);
    let place = Place::prepare(args)?;
    let progress = Progress::new(parts.len());
    for part in parts {
        let outcome = progress.step(&part.name(), |_| match part {
            Part::WarmUp => script::run(&place, "cold_start"),
            Part::Overhead => script::run(&place, "measure"),
            Part::Production => script::run(&place, "production"),
        })?;
        println!("{}", outcome.text);
        if let Some(file) = &args.json {
            std::fs::write(file, serde_json::to_string_pretty(&outcome.results)?)?;
        }
    }
    Ok(())
}
