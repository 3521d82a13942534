//! The models, on as many actions as were asked for, on all cores.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::Effort;
use super::row::Explored;
use crate::support::{cargo, relay};

/// A line of the soak's.
#[derive(Deserialize)]
struct Line {
    model: String,
    cases: u64,
    actions: u64,
}

/// The check.
pub fn run(effort: Effort) -> Result<Explored> {
    let actions = effort.actions.to_string();
    let mut command = cargo::command();
    command
        .args(["run", "--quiet", "--package", "pinbuddy-model"])
        .args(["--example", "soak", "--", "--actions", &actions]);
    let (text, success) = relay::run(&mut command)?;
    ensure!(success, "a model and the code disagree");
    let lines: Vec<Line> = text
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("reading what the soak says")?;
    ensure!(!lines.is_empty(), "the soak said nothing");
    let all = lines.iter().fold(Explored::default(), |all, line| {
        all.figure(format!("actions on the {}", line.model), line.actions)
    });
    Ok(all.figure("cases", lines.iter().map(|it| it.cases).sum()))
}
