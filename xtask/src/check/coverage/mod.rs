//! Which lines of the engine and of the bridge run in tests: Rust's by LLVM's counters, those of C++ by gcov's.
//!
//! Counted are the Rust tests of the parts, with the models, and the Python tests with a library that counts. A process
//! that aborts or ends without its exit handlers leaves no counts, so the figures are at most too low. Lines of tests
//! are not counted (`lines`). A part with too few lines fails the check, and what did not run is in
//! `target/coverage/not-run.txt`.

mod cpp;
mod lines;
mod rust;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::Effort;
use super::row::Explored;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::test::plugin::{self, Library};
use crate::venv;
use lines::{Lines, Part};

/// What has a bound of its own, in hundredths of its lines.
static PARTS: [Part; 3] = [
    Part {
        name: "engine",
        folders: &["rust-core/engine/src"],
        at_least: 95,
    },
    Part {
        name: "the bridge's Rust",
        folders: &["cxx-bridge/src", "cxx-bridge/machine/src"],
        at_least: 85,
    },
    Part {
        name: "the bridge's C++",
        folders: &["cxx-bridge/cpp"],
        at_least: 85,
    },
];

/// The check.
pub fn run(_effort: Effort) -> Result<Explored> {
    let rust = rust::Tools::find()?;
    let cpp = cpp::Tool::find()?;
    let counts = folder().join("counts");
    if counts.exists() {
        fs::remove_dir_all(&counts).with_context(|| format!("removing {}", counts.display()))?;
    }
    fs::create_dir_all(&counts).with_context(|| format!("creating {}", counts.display()))?;
    cpp.forget()?;
    let mut programs = rust::tests(&counts)?;
    let failed = python_tests(&counts)?;
    programs.push(library());
    let mut lines = Lines::of(&PARTS);
    rust.read(&counts, &programs, &mut lines)?;
    cpp.read(&mut lines)?;
    Ok(row(&lines)?.figure("tests failed, which other rows judge", failed))
}

/// Where all of it lies.
fn folder() -> PathBuf {
    paths::target().join("coverage")
}

/// The Python tests with a library that counts; how many failed. Some have limits of time, and counting takes some: a
/// test that ended early runs fewer lines, and that is all.
fn python_tests(counts: &Path) -> Result<u64> {
    let python = Path::new("python3");
    let fork = venv::ensure(None, false, python)?;
    let stock = venv::ensure(None, true, python)?;
    let tally = plugin::asserting(None, &fork, &stock, python, Library::Coverage, |command| {
        // gcov writes its counts when libraries are unloaded, which is the last that a process does.
        command
            .env("PINBUDDY_TEST_END", "whole")
            .env("LLVM_PROFILE_FILE", rust::pattern(counts, "library"));
    })?;
    ensure!(tally.passed > 0, "no Python test passed");
    Ok(tally.failed as u64)
}

/// The library that counts.
fn library() -> PathBuf {
    let folder = Library::Coverage.flavour().target();
    paths::target()
        .join(folder)
        .join("wheel-debug/libpinbuddy_bridge.so")
}

/// What the lines say.
fn row(lines: &Lines) -> Result<Explored> {
    let mut explored = Explored::default();
    let (mut said, mut few, mut missing) = (Vec::new(), Vec::new(), String::new());
    for part in &PARTS {
        let (all, ran) = lines.count(part);
        ensure!(all > 0, "no line of {} was counted", part.name);
        explored = explored
            .figure(format!("lines of {}", part.name), all)
            .figure(format!("lines of {} that ran", part.name), ran);
        let share = format!("{} {:.1} %", part.name, 100.0 * ran as f64 / all as f64);
        if ran * 100 < all * part.at_least {
            few.push(format!("{share}, not {} %", part.at_least));
        }
        said.push(share);
        for (file, numbers) in lines.not_run(part) {
            let _ = writeln!(missing, "{file}: {numbers}");
        }
    }
    let listed = folder().join("not-run.txt");
    fs::write(&listed, missing).with_context(|| format!("writing {}", listed.display()))?;
    if few.is_empty() {
        return Ok(explored.note(said.join(", ")));
    }
    Err(refuse("too few lines run in tests")
        .found(few.join(", "))
        .remedy(format!("a test of what {} lists", paths::show(&listed)))
        .into())
}
