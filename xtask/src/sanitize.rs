//! The row of `cargo xtask test --all` for `tests/sanitize/run.py`: the library under real torch, with seeded defects.
//!
//! Of the library only the C++ side is instrumented: a stable rustc cannot do that, and official wheels are what they are.
//! ThreadSanitizer sees threads, mutexes, forks and mappings, which go through libc, but not what Rust's locks order: where a block
//! passes it is told, and what Rust allocates behind them is suppressed. AddressSanitizer sees all of the heap.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::build_wheel::compile::{Flavour, SEEDED, compile};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare;
use crate::support::progress::Progress;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;
use crate::support::{lock, paths};
use crate::test::pytest;
use crate::{sim, venv};

/// A sanitizer's name, what g++ is told, and a function that instrumented code calls.
const SANITIZERS: [(&str, &[&str], &str); 2] = [
    ("thread", &["-fsanitize=thread"], "__tsan_func_entry"),
    ("address", &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "__asan_report_load8"),
];

/// The library under real torch. `PINBUDDY_SANITIZER` names one of them, and `PINBUDDY_SANITIZE_SECONDS` says for how long.
pub fn library() -> Result<Tally> {
    let only = env::var("PINBUDDY_SANITIZER");
    let seconds = env::var("PINBUDDY_SANITIZE_SECONDS").unwrap_or_else(|_| "0".to_owned());
    let stock = venv::ensure(None, true, Path::new("python3"))?;
    let [preload, folders, _] = sim::build()?.env(1)?;
    let mut tally = Tally::default();
    for (name, flags, called) in SANITIZERS {
        if only.as_ref().is_ok_and(|only| only != name) {
            continue;
        }
        let (library, cuda) = build(flags, called)?;
        let report = Scratch::file(&paths::target().join("test/sanitize.xml"))?;
        let mut command = python();
        command.arg(format!("--flags={}", flags.join(" ")));
        command.args([name, "--seconds", &seconds, "--library"]);
        command.arg(library).arg("--torch").arg(stock.torch());
        command.arg("--cuda").arg(env::join_paths(cuda)?);
        command.arg("--preload").arg(&preload.1);
        command.arg("--paths").arg(&folders.1);
        command.arg("--junitxml").arg(report.path());
        tally.add(pytest::run(&mut command, report.path())?);
    }
    Ok(tally)
}

fn python() -> Command {
    let mut command = Command::new("python3");
    command.arg(paths::root().join("tests/sanitize/run.py"));
    command
}

/// The library with a sanitizer in it, and CUDA's headers.
fn build(flags: &'static [&'static str], called: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
    let _lock = lock::take("build")?;
    let mut seed = python();
    seed.arg("seed").arg(paths::target().join(SEEDED));
    ensure!(seed.status()?.success(), "the defects have no place");
    let plan = Plan::make(&venv::wanted(None, Path::new("python3")))?;
    let progress = Progress::new(prepare::STEPS + 1);
    let ready = prepare::prepare(&plan, &progress)?;
    let flavour = Flavour::Sanitized(flags);
    let target = paths::target().join(flavour.target());
    let path = progress.step("compile the library with a sanitizer", |step| compile(&target, &ready, flavour, step))?;
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut windows = bytes.windows(called.len());
    ensure!(windows.any(|it| it == called.as_bytes()), "{} has no sanitizer in it", path.display());
    Ok((path, ready.cuda))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::tally;

    #[test]
    fn seeded_defects_have_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let status = python().arg("seed").arg(folder.path()).status();
        assert!(status.unwrap().success());
    }

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
