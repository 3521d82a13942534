//! Runs pip, under the user's own configuration, and turns its failures into one message.

use std::path::Path;

use anyhow::{Context as _, Result};
use xshell::{Shell, cmd};

use crate::report::progress::Step;
use crate::report::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::watch;

/// Runs `python -m pip ARGUMENTS`. `goal` completes "pip could not …".
///
/// `temporary` is where pip unpacks and downloads: a scratch folder, so that nothing of an
/// interrupted run stays.
pub fn run(python: &Path, arguments: &[&str], temporary: &Path, goal: &str) -> Result<()> {
    let shell = Shell::new()?;
    let command = cmd!(
        shell,
        "{python} -m pip {arguments...} --disable-pip-version-check --no-input"
    )
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

/// Installs packages into a folder of their own, whole or not at all; with `alone`, without what
/// they depend on.
pub fn install_into(
    python: &Path,
    requirements: &[&str],
    alone: bool,
    folder: &Path,
    step: &Step,
) -> Result<()> {
    let scratch = Scratch::folder(folder)?;
    let temporary = Scratch::folder(&folder.with_extension("tmp"))?;
    let target = scratch.path().to_str();
    let target = target.with_context(|| format!("{} is not UTF-8", folder.display()))?;
    let mut arguments = vec!["install", "--quiet", "--only-binary=:all:", "--no-compile"];
    arguments.extend(alone.then_some("--no-deps"));
    arguments.extend(["--target", target]);
    arguments.extend(requirements);
    let goal = format!("install {}", requirements.join(" and "));
    watch::folder(scratch.path(), step, || {
        run(python, &arguments, temporary.path(), &goal)
    })?;
    scratch.publish(folder)
}

fn explain(complaint: &str, goal: &str) -> crate::report::refusal::Refusal {
    const NETWORK: [&str; 7] = [
        "NewConnectionError",
        "NameResolutionError",
        "ConnectTimeoutError",
        "ProxyError",
        "Connection refused",
        "Temporary failure in name resolution",
        "Network is unreachable",
    ];
    // pip repeats a warning for each retry; its errors are what says something.
    let mut errors: Vec<&str> = complaint
        .lines()
        .filter(|line| line.starts_with("ERROR"))
        .collect();
    if errors.is_empty() {
        errors = complaint.lines().rev().take(6).collect();
        errors.reverse();
    }
    let refusal = refuse(format!("pip could not {goal}")).found(errors.join("\n"));
    if complaint.contains("No space left on device") {
        refusal
            .expected("room on the disk")
            .remedy("free some space, and run the same command again")
    } else if NETWORK.iter().any(|sign| complaint.contains(sign)) {
        refusal
            .expected("a package index that answers, or the file in the cache from an earlier run")
            .remedy("connect to the network, or set pip's index or proxy (`pip config list` shows them), then run the same command again")
    } else {
        refusal.remedy("run the same command again; what is complete is kept")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_network() {
        let complaint = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\n\
             ERROR: Could not find a version that satisfies the requirement torch==2.15.0 (from versions: none)\n\
             ERROR: No matching distribution found for torch==2.15.0\n";
        insta::assert_snapshot!(explain(complaint, "download torch 2.15.0"));
    }

    #[test]
    fn full_disk() {
        let complaint = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
        insta::assert_snapshot!(explain(complaint, "download torch 2.15.0"));
    }
}
