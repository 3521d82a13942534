//! Rows of `cargo xtask test` for `tests/sanitize/run.py`: the C++ side by itself, and the library under real torch.
//!
//! Of the library only the C++ side is instrumented: a stable rustc cannot do that, and official wheels are what they are.
//! ThreadSanitizer sees threads, mutexes, forks and mappings, which go through libc, but not what Rust's locks order; what Rust
//! allocates behind them is suppressed. AddressSanitizer sees all of the heap.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build_wheel::compile::{Flavour, compile};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare;
use crate::support::progress::Progress;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;
use crate::support::{lock, paths};
use crate::test::pytest;
use crate::{sim, venv};

/// A sanitizer's name, the library's flavour, and a function that instrumented code calls.
const SANITIZERS: [(&str, Flavour, &str); 2] = [
    (
        "thread",
        Flavour::Sanitized {
            flags: &["-fsanitize=thread"],
            target: "wheel/cargo-thread",
        },
        "__tsan_func_entry",
    ),
    (
        "address",
        Flavour::Sanitized {
            flags: &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
            target: "wheel/cargo-address",
        },
        "__asan_report_load8",
    ),
];

/// Each program and each seeded defect once.
pub fn by_itself() -> Result<Tally> {
    run(SANITIZERS.map(|(name, ..)| name))
}

/// The library under real torch. `PINBUDDY_SANITIZER` names one of them, and `PINBUDDY_SANITIZE_SECONDS` says for how long.
pub fn library() -> Result<Tally> {
    let only = env::var("PINBUDDY_SANITIZER");
    let seconds = env::var("PINBUDDY_SANITIZE_SECONDS").unwrap_or_else(|_| "0".to_owned());
    let stock = venv::ensure(None, true, Path::new("python3"))?;
    let [preload, folders, _] = sim::build()?.env(1)?;
    let mut tally = Tally::default();
    for (name, flavour, called) in SANITIZERS {
        if only.as_ref().is_ok_and(|only| only != name) {
            continue;
        }
        let (library, cuda) = build(flavour, called)?;
        tally.add(run([
            OsStr::new(name),
            "--seconds".as_ref(),
            seconds.as_ref(),
            "--library".as_ref(),
            library.as_ref(),
            "--torch".as_ref(),
            stock.torch().as_ref(),
            "--cuda".as_ref(),
            &env::join_paths(cuda)?,
            "--preload".as_ref(),
            &preload.1,
            "--paths".as_ref(),
            &folders.1,
        ])?);
    }
    Ok(tally)
}

fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Tally> {
    let report = Scratch::file(&paths::target().join("test/sanitize.xml"))?;
    let mut command = Command::new("python3");
    command
        .arg(paths::root().join("tests/sanitize/run.py"))
        .args(arguments)
        .arg("--junitxml")
        .arg(report.path());
    pytest::run(&mut command, report.path())
}

/// The library with a sanitizer in it, and CUDA's headers.
fn build(flavour: Flavour, called: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
    let _lock = lock::take("build")?;
    let plan = Plan::make(&venv::wanted(None, Path::new("python3")))?;
    let progress = Progress::new(prepare::STEPS + 1);
    let ready = prepare::prepare(&plan, &progress)?;
    let target = paths::target().join(flavour.target());
    let path = progress.step("compile the library with a sanitizer", |step| {
        compile(&target, &ready, flavour, step)
    })?;
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut windows = bytes.windows(called.len());
    ensure!(
        windows.any(|it| it == called.as_bytes()),
        "{} has no sanitizer in it",
        path.display()
    );
    Ok((path, ready.cuda))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::tally;

    #[test]
    fn a_failure_has_a_name_in_the_report() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.xml");
        let script = "import pathlib, sys, types, run\n\
                      run.report(types.SimpleNamespace(junitxml=pathlib.Path(sys.argv[1])), 1, 'missed a <defect>\\nto do')";
        let mut command = Command::new("python3");
        command
            .current_dir(paths::root().join("tests/sanitize"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .args(["-c", script])
            .arg(&report);
        assert!(command.status().unwrap().success());
        let tally = tally::junit(&fs::read_to_string(&report).unwrap());
        assert_eq!((tally.passed, tally.failed), (0, 1));
        assert_eq!(tally.names, ["sanitize missed a <defect>"]);
    }
}
