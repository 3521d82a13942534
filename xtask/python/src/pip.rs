//! Runs pip with the user's configuration, and turns its errors into one message.

use std::path::Path;

use anyhow::{Context as _, Result};
use xshell::{Shell, cmd};

use xtask_support::progress::Step;
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::scratch::Scratch;
use xtask_support::watch;

/// How many of pip's last lines a failure shows.
const LAST: usize = 4;

/// Runs `python -m pip ARGUMENTS`. `goal` completes "pip could not …".
///
/// pip unpacks and downloads into `temporary`, a scratch folder, so that an interrupted run leaves nothing.
pub fn run(python: &Path, arguments: &[&str], temporary: &Path, goal: &str) -> Result<()> {
    let shell = Shell::new()?;
    let command = cmd!(shell, "{python} -m pip {arguments...} --disable-pip-version-check --no-input")
        .env("TMPDIR", temporary)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .env("PIP_PROGRESS_BAR", "off")
        .quiet()
        .ignore_status();
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(explain(&String::from_utf8_lossy(&output.stderr), goal).into())
}

/// Installs packages into a new folder, completely or not at all; with `alone`, without their dependencies.
pub fn install_into(python: &Path, requirements: &[&str], alone: bool, folder: &Path, step: &Step) -> Result<()> {
    let scratch = Scratch::folder(folder)?;
    let temporary = Scratch::folder(&folder.with_extension("tmp"))?;
    let target = scratch.path().to_str();
    let target = target.with_context(|| format!("{} is not UTF-8", folder.display()))?;
    let mut arguments = vec!["install", "--quiet", "--only-binary=:all:", "--no-compile"];
    arguments.extend(alone.then_some("--no-deps"));
    arguments.extend(["--target", target]);
    arguments.extend(requirements);
    let goal = format!("install {}", requirements.join(" and "));
    watch::folder(scratch.path(), step, || run(python, &arguments, temporary.path(), &goal))?;
    scratch.publish(folder)
}

/// pip's last lines: which connections failed, and then what it misses.
fn explain(complaint: &str, goal: &str) -> Refusal {
    let lines: Vec<&str> = complaint.lines().collect();
    refuse(format!("pip could not {goal}"))
        .found(lines[lines.len().saturating_sub(LAST)..].join("\n"))
        .expected("a package index that answers and has it, or an earlier run's file in the cache; and room on the disk")
        .remedy(
            "connect to the network, or set pip's index or proxy (`pip config list` shows them), then run the same command again: \
             what is complete is kept",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failed_connection_is_shown_beside_what_pip_misses() {
        let retried =
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\n".repeat(9);
        let lacks = "ERROR: Could not find a version that satisfies the requirement torch==2.15.0 (from versions: none)\n\
                     ERROR: No matching distribution found for torch==2.15.0\n";
        let said = explain(&(retried + lacks), "download torch==2.15.0");
        insta::assert_snapshot!(said);
    }
}
