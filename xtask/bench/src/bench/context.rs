//! The context of a run: machine, date and versions.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::environments::cores;
use super::fixture::Fixture;
use super::subject::Subject;
use xtask_support::paths;

/// The context as JSON.
pub fn describe(fixture: &Fixture) -> Result<Map<String, Value>> {
    let Fixture {
        environments,
        effort,
        ..
    } = fixture;
    let memory = environments.lightest();
    let settings = |subject: Subject| {
        let own = subject.settings(memory);
        json!(
            own.into_iter()
                .collect::<std::collections::BTreeMap<_, _>>()
        )
    };
    let subjects: Map<String, Value> = Subject::ALL
        .iter()
        .map(|subject| (subject.name().to_owned(), settings(*subject)))
        .collect();
    let context = json!({
        "date": said("date", &["-u", "+%Y-%m-%d"])?,
        "commit": said("git", &["describe", "--always", "--dirty", "--abbrev=12"]).ok(),
        "processor": first_of("/proc/cpuinfo", "model name").unwrap_or_default(),
        "cores": cores(),
        "memory_mib": kibibytes("MemTotal")? / 1024,
        "kernel": fs::read_to_string("/proc/sys/kernel/osrelease")?.trim(),
        "load": load()?,
        "cuda": if environments.simulated() { "simulated" } else { "real" },
        "stock": environments.stock.version()?,
        "fork": environments.fork.version()?,
        "effort": effort.name(),
        "rounds": effort.rounds(),
        "turns": effort.turns(),
        "allocators": subjects,
    });
    match context {
        Value::Object(context) => Ok(context),
        _ => unreachable!("it is one, above"),
    }
}

/// The first line of the output: what ran where.
pub fn headline(context: &Map<String, Value>) -> String {
    let text = |name: &str| match &context[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "{} and {} on {}, {} cores, Linux {}, CUDA {}, load {}, {} rounds",
        text("stock"),
        text("fork"),
        text("processor"),
        text("cores"),
        text("kernel"),
        text("cuda"),
        text("load"),
        text("rounds")
    )
}

/// `MemAvailable` in bytes.
pub fn available_memory() -> Result<u64> {
    Ok(kibibytes("MemAvailable")? * 1024)
}

/// The load average of the last minute.
fn load() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    first.parse().context("/proc/loadavg holds no number")
}

fn kibibytes(name: &str) -> Result<u64> {
    let value = first_of("/proc/meminfo", name);
    let number = value.as_deref().and_then(|it| it.strip_suffix(" kB"));
    number
        .and_then(|it| it.parse().ok())
        .with_context(|| format!("/proc/meminfo says no {name}"))
}

/// The value of the first `name: value` line in a kernel file.
fn first_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(paths::root())
        .output()
        .with_context(|| format!("running {program}"))?;
    anyhow::ensure!(output.status.success(), "{program} failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
