//! A program that runs for a day, in simulated time: what is pinned does not creep.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::Effort;
use super::row::Explored;
use crate::support::{cargo, relay};

/// What the example says.
#[derive(Deserialize)]
struct Day {
    requests: u64,
    hours: u64,
    programs: u64,
}

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let mut command = cargo::command();
    command
        .args(["run", "--quiet", "--package", "pinbuddy-replay"])
        .args(["--example", "day"]);
    let (text, success) = relay::run(&mut command)?;
    ensure!(success, "pinned memory creeps");
    let line = text.lines().find(|line| line.starts_with('{'));
    let day: Day = serde_json::from_str(line.context("the day said nothing")?)?;
    Ok(Explored::default()
        .figure("programs", day.programs)
        .figure("hours", day.hours)
        .figure("requests", day.requests))
}
