//! The C++ side by itself: programs of `tests/stress` and `tests/sanitize` with stand-ins for torch, CUDA and Rust.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::compile::{self, Unit};
use super::program::{self, Run};
use super::{Looked, Sanitizer, defects};
use crate::support::paths;

/// The programs, where they are, and whether each runs once more with `BUDDY_GUARD=1`.
const PROGRAMS: [(&str, &str, bool); 6] = [
    ("blocks", "tests/stress/blocks.cpp", true),
    ("bounded", "tests/stress/bounded.cpp", false),
    ("churn", "tests/sanitize/churn.cpp", true),
    ("edges", "tests/sanitize/edges.cpp", true),
    ("events", "tests/sanitize/events.cpp", false),
    ("ending", "tests/sanitize/ending.cpp", true),
];

/// Each program, and each defect.
pub fn once(sanitizer: Sanitizer, run: Run) -> Result<Looked> {
    Ok(Looked {
        programs: programs(sanitizer, run)?,
        defects: defects::all(sanitizer)?,
        library: 0,
    })
}

/// Runs each program; how many runs there were.
pub fn programs(sanitizer: Sanitizer, run: Run) -> Result<u64> {
    let sources = paths::root().join("cxx-bridge/cpp");
    let library = library("units", None, &sources, sanitizer)?;
    let mut runs = 0;
    for (name, source, guarded) in PROGRAMS {
        let object = object(name, source, sanitizer)?;
        let program = compile::link(name, &[library.clone(), object], &[], sanitizer)?;
        let arguments = program::arguments(name, run);
        let ended = program::run_well(&program, &arguments, sanitizer, &[])?;
        runs += 1;
        ensure!(!ended.said.trim().is_empty(), "{name} did nothing");
        if guarded {
            // It fills and compares whole blocks, so a long run would take hours.
            let arguments = program::arguments(name, Run::Short);
            let guard = [("BUDDY_GUARD", "1".into())];
            program::run_well(&program, &arguments, sanitizer, &guard)?;
            runs += 1;
        }
        if name == "bounded" {
            let pins: Vec<&str> = ended.said.split_whitespace().collect();
            ensure!(
                matches!(pins[..], [before, after] if before == after),
                "threads pinned beyond what they share: {}",
                ended.said
            );
        }
    }
    Ok(runs)
}

/// The C++ side of a folder, with what stands in for all around it, behind one file more.
pub fn library(
    name: &str,
    first: Option<&str>,
    sources: &Path,
    sanitizer: Sanitizer,
) -> Result<PathBuf> {
    let tests = paths::root().join("tests/sanitize");
    let own = first
        .into_iter()
        .chain(["stand-in/engine.cpp", "clocklock.cpp"]);
    let mut all: Vec<PathBuf> = own.map(|it| tests.join(it)).collect();
    all.extend(compile::files(sources, ".cpp")?);
    Unit {
        name,
        sources: all,
        include: vec![tests.join("stand-in"), sources.to_path_buf()],
        flags: ["-DUSE_CUDA", "-DPINBUDDY_DEBUG"].map(str::to_owned).into(),
    }
    .object(sanitizer)
}

/// A program's own part.
pub fn object(name: &str, source: &str, sanitizer: Sanitizer) -> Result<PathBuf> {
    Unit {
        name: &format!("{name}-main"),
        sources: vec![paths::root().join(source)],
        include: vec![paths::root().join("tests/sanitize/stand-in")],
        flags: Vec::new(),
    }
    .object(sanitizer)
}
