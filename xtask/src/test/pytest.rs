//! Starts pytest, and counts its tests by the JUnit file that it writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::python::{Python, pip, tools};
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::scratch::Scratch;
use crate::support::table::Table;
use crate::support::tally::{self, Tally};

/// Has `python`, a command that starts an interpreter with pytest, run a folder of tests, which is given from the root on.
pub fn command(mut python: Command, folder: &str) -> Command {
    python
        .current_dir(paths::root().join(folder))
        .args(["-m", "pytest", "--color=auto", "-p", "no:cacheprovider"])
        .args(["--strict-markers", "--durations=10", "--durations-min=5"])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

/// What [`by_file`] needs.
pub const TWO: [&str; 2] = ["pytest", "pytest-xdist"];

/// In two processes, which take whole files: what a file prepares is prepared once.
pub fn by_file(command: &mut Command) -> &mut Command {
    command.args(["--numprocesses", "2", "--dist", "loadfile"])
}

/// Runs it. A run that counts nothing has failed.
pub fn counted(command: &mut Command) -> Result<Tally> {
    let report = Scratch::file(&paths::target().join("test/pytest.xml"))?;
    run(command.arg("--junitxml").arg(report.path()), report.path())
}

/// Runs a command that writes this JUnit file, and counts what is in it.
pub fn run(command: &mut Command, report: &Path) -> Result<Tally> {
    // A file of an earlier run counts nothing.
    let _ = fs::remove_file(report);
    let succeeds = succeeds(command)?;
    let text = fs::read_to_string(report).unwrap_or_default();
    Ok(tally::junit(&text).checked(succeeds))
}

/// Runs it; what it says is heard at once when it ends, if it runs beside other rows.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let run = |command: &mut Command| {
        if !Table::is_beside() {
            return command.stdout(io::stderr()).status();
        }
        let done = command.output()?;
        let [out, err] = [&done.stdout, &done.stderr].map(|it| String::from_utf8_lossy(it));
        eprint!("{out}{err}");
        Ok(done.status)
    };
    let status = run(command.stdin(Stdio::null()));
    let status = status.with_context(|| format!("running {command:?}"))?;
    Ok(status.success())
}

/// A folder of packages for PYTHONPATH, so that no environment changes.
pub fn packages(python: &Path, names: &[&str]) -> Result<PathBuf> {
    let python = Python::probe(python)?;
    let tools = tools::ensure(&python)?;
    let plain = names.join("-").replace(|it: char| !it.is_ascii_alphanumeric(), "-");
    let name = format!("{}-{plain}", python.abi_tag());
    let folder = paths::target().join("tools").join(name);
    if !folder.exists() {
        Progress::new(1).step(&format!("install {}", names.join(", ")), |step| {
            pip::install_into(&tools.python, names, false, &folder, step)
        })?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(script: &str) -> (usize, usize) {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report.xml");
        fs::write(&report, "<testsuite tests=\"7\"/>").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&report);
        let tally = run(&mut command, &report).unwrap();
        (tally.passed, tally.failed)
    }

    #[test]
    fn what_is_not_counted_by_this_run_has_failed() {
        let write = "echo '<testsuites><testsuite tests=\"3\" failures=\"1\"/></testsuites>' >\"$1\"";
        assert_eq!(counts(&format!("{write}; exit 1")), (2, 1));
        assert_eq!(counts("exit 0"), (0, 1), "an earlier run's report");
        assert_eq!(counts("exit 2"), (0, 1));
        let good = write.replace("failures=\"1\"", "failures=\"0\"");
        assert_eq!(counts(&good), (3, 0));
        assert_eq!(counts(&format!("{good}; exit 3")), (3, 1));
    }
}
