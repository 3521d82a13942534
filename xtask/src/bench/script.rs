//! Parts of a benchmark that are Python programs of `tests/python`: run, shown, read.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::place::{Place, python};
use crate::report::refusal::refuse;
use crate::support::paths;
use crate::support::scratch::Scratch;

/// What a script printed for people, and what it measured.
#[derive(Debug)]
pub struct Outcome {
    /// Its tables.
    pub text: String,
    /// Its JSON.
    pub results: Value,
}

/// Runs `tests/python/NAME.py` on both environments.
pub fn run(place: &Place, name: &str) -> Result<Outcome> {
    let folder = paths::root().join("tests/python");
    let file = Scratch::file(&paths::target().join(format!("bench/{name}.json")))?;
    let interpreter = python(&place.stock);
    let mut command = place.command(&interpreter)?;
    command
        .current_dir(&folder)
        .arg(format!("{name}.py"))
        .args([&interpreter, &python(&place.fork)])
        .arg("--json")
        .arg(file.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command
        .output()
        .with_context(|| format!("running {name}.py"))?;
    if !output.status.success() {
        return Err(refuse(format!("tests/python/{name}.py failed"))
            .found(String::from_utf8_lossy(&output.stderr).trim())
            .expected("two working environments, and memory for what it pins")
            .remedy("cargo xtask doctor says what this machine has")
            .into());
    }
    let results = fs::read(file.path()).with_context(|| format!("{name}.py wrote no results"))?;
    Ok(Outcome {
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        results: serde_json::from_slice(&results)
            .with_context(|| format!("reading the results of {name}.py"))?,
    })
}
