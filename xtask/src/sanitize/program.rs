//! Runs of a program with a sanitizer in it: each in a process that ends at the first thing that is found.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::{Sanitizer, suppressions};
use crate::support::refusal::refuse;

/// How long one run may take before it is taken to hang, on a machine where others compute, too.
const PATIENCE: &str = "300";
/// What a run ends with that was killed for its time, as `timeout` has it.
const KILLED: i32 = 124;

/// How much each program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Seconds altogether.
    Short,
    /// Longer, with more threads, and this seed.
    Long(u64),
}

/// Its arguments for each program, threads first.
pub fn arguments(program: &str, run: Run) -> Vec<String> {
    let text = match (program, run) {
        ("blocks", Run::Short) => "4 600 1".to_owned(),
        ("blocks", Run::Long(seed)) => format!("16 1000 {seed}"),
        ("bounded", Run::Short) => "4 3000 65536".to_owned(),
        ("bounded", Run::Long(seed)) => format!("8 20000 {}", (64 << 10) << (seed % 2 * 4)),
        ("edges", Run::Short) => "4 40".to_owned(),
        ("edges", Run::Long(_)) => "6 400".to_owned(),
        ("ending", Run::Short) => "4 300".to_owned(),
        ("ending", Run::Long(seed)) => format!("12 {}", seed * 97 % 400),
        ("events", Run::Short) => "4 40".to_owned(),
        ("events", Run::Long(_)) => "7 400".to_owned(),
        (_, Run::Short) => "4 4 150 1".to_owned(),
        (_, Run::Long(seed)) => format!("12 10 200 {}", seed * 1000),
    };
    text.split_whitespace().map(str::to_owned).collect()
}

/// What came of a run.
pub struct Ended {
    /// Whether it ended well.
    pub well: bool,
    /// Both its streams.
    pub said: String,
}

/// Runs it with these variables on top.
pub fn run(
    program: &Path,
    arguments: &[String],
    sanitizer: Sanitizer,
    variables: &[(&str, OsString)],
) -> Result<Ended> {
    let (name, options) = match sanitizer {
        Sanitizer::Thread => (
            "TSAN_OPTIONS",
            // A child has its parent's threads in its books, and cannot join them.
            "halt_on_error=1:exitcode=66:second_deadlock_stack=1:report_thread_leaks=0",
        ),
        // What is never destroyed, by design, is reached from statics: that is no leak.
        Sanitizer::Address => (
            "ASAN_OPTIONS",
            "detect_leaks=1:detect_stack_use_after_return=1",
        ),
    };
    let suppressions = suppressions::file(sanitizer);
    let options = format!(
        "{options}:print_suppressions=1:suppressions={}",
        suppressions.display()
    );
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", PATIENCE, "env"])
        // For the program alone: what is preloaded needs what it brings.
        .args(variables.iter().map(|(name, value)| {
            let mut assignment = OsString::from(format!("{name}="));
            assignment.push(value);
            assignment
        }))
        .arg(program)
        .args(arguments)
        .env(name, options)
        .env("UBSAN_OPTIONS", "print_stacktrace=1")
        .env_remove("LD_PRELOAD")
        .env_remove("PINBUDDY_SEEDED");
    let output = command
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(KILLED) {
        said.push_str(&format!("\nstill running after {PATIENCE} s\n"));
    }
    Ok(Ended {
        well: output.status.success(),
        said,
    })
}

/// The same, and an error where it did not end well.
pub fn run_well(
    program: &Path,
    arguments: &[String],
    sanitizer: Sanitizer,
    variables: &[(&str, OsString)],
) -> Result<Ended> {
    let ended = run(program, arguments, sanitizer, variables)?;
    if ended.well {
        return Ok(ended);
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    Err(refuse(format!(
        "the {} sanitizer, in {name} {}",
        sanitizer.name(),
        arguments.join(" ")
    ))
    .found(ended.said.trim())
    .expected("a run in which nothing is found")
    .into())
}
