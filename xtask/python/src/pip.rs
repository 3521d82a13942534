//! Runs pip with the user's configuration, and turns its errors into one message.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result};
use indicatif::DecimalBytes;
use xshell::{Shell, cmd};

use xtask_support::progress::Step;
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::scratch::Scratch;
use xtask_support::watch;

/// Runs `python -m pip ARGUMENTS`. `goal` completes "pip could not …".
///
/// pip unpacks and downloads into `temporary`, a scratch folder, so that an interrupted run leaves nothing.
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

/// Installs packages into a new folder, completely or not at all; with `alone`, without their dependencies.
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

/// Downloads with a progress bar. `arguments` name the packages and the folder.
pub fn download(
    python: &Path,
    arguments: &[&str],
    temporary: &Path,
    goal: &str,
    step: &Step,
) -> Result<()> {
    let mut child = Command::new(python)
        .args(["-m", "pip", "download"])
        .args(arguments)
        // pip's progress format for programs: a line for each part received.
        .args(["--progress-bar", "raw"])
        .args(["--disable-pip-version-check", "--no-input"])
        .env("TMPDIR", temporary)
        .env_remove("PIP_QUIET")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("running {} -m pip", python.display()))?;
    let mut complaint = String::new();
    thread::scope(|scope| {
        if let Some(lines) = child.stdout.take() {
            scope.spawn(move || show(BufReader::new(lines), step));
        }
        if let Some(mut errors) = child.stderr.take() {
            let mut bytes = Vec::new();
            // A line that cannot be read is not shown.
            let _ = errors.read_to_end(&mut bytes);
            complaint = String::from_utf8_lossy(&bytes).into_owned();
        }
    });
    let status = child.wait().context("waiting for pip")?;
    if status.success() {
        return Ok(());
    }
    Err(explain(&complaint, goal).into())
}

/// Shows pip's progress for one file.
fn show(lines: impl BufRead, step: &Step) {
    let (mut total, mut shown) = (0, 0);
    for line in lines.lines().map_while(Result::ok) {
        let Some((now, all)) = progress(&line) else {
            continue;
        };
        if all != total {
            (total, shown) = (all, 0);
            step.say("");
            step.total(all);
            step.note_for_logs(&format!("{} to fetch", DecimalBytes(all)));
        }
        // An interrupted download may start again from zero.
        step.advance(now.saturating_sub(shown));
        shown = now.max(shown);
    }
}

/// `Progress 262144 of 16918164`, in bytes.
fn progress(line: &str) -> Option<(u64, u64)> {
    let (now, all) = line.trim().strip_prefix("Progress ")?.split_once(" of ")?;
    Some((now.parse().ok()?, all.parse().ok().filter(|it| *it > 0)?))
}

/// pip's phrases for a failed connection.
const NETWORK: [&str; 12] = [
    "NewConnectionError",
    "NameResolutionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "SSLError",
    "ProtocolError",
    "Connection refused",
    "Connection reset",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "timed out",
];

/// The cause according to pip's output: the disk, the network, or an index without the package.
fn explain(complaint: &str, goal: &str) -> Refusal {
    let lines = |found: fn(&str) -> bool| complaint.lines().filter(move |line| found(line));
    // pip repeats a warning for each retry; only its errors are informative.
    let mut errors: Vec<&str> = lines(|it| it.starts_with("ERROR")).collect();
    if errors.is_empty() {
        errors = complaint.lines().rev().take(6).collect();
        errors.reverse();
    }
    if complaint.contains("No space left on device") {
        return refuse(format!("pip could not {goal}"))
            .found(errors.join("\n"))
            .expected("room on the disk")
            .remedy("free some space, and run the same command again");
    }
    let none = complaint.contains("(from versions: none)");
    let lacks = complaint.contains("No matching distribution found");
    if lacks && !none {
        return refuse(format!("pip could not {goal}: the package index does not have it"))
            .found(errors.join("\n"))
            .expected("an index that has this version, for this Python and this system")
            .remedy("`pip config list` shows which index it is; one that mirrors a part of another may lack it");
    }
    let sign = lines(|it| NETWORK.iter().any(|sign| it.contains(sign))).next_back();
    let remedy = "connect to the network, or set pip's index or proxy (`pip config list` shows them), then run the same command again";
    if let Some(sign) = sign {
        // pip then also reports a missing version, which is misleading.
        return refuse(format!("pip could not {goal}: no package index answers"))
            .found(reason(sign))
            .expected("a package index that answers, or the file in the cache from an earlier run")
            .remedy(remedy);
    }
    if lacks {
        return refuse(format!(
            "pip could not {goal}: no package index answers, or it has no version of it at all"
        ))
        .found(errors.join("\n"))
        .expected("a package index that has it, or the file in the cache from an earlier run")
        .remedy(remedy);
    }
    refuse(format!("pip could not {goal}"))
        .found(errors.join("\n"))
        .remedy("run the same command again; what is complete is kept")
}

/// The cause of a failed connection in one of pip's warnings.
fn reason(line: &str) -> &str {
    let after = line.split_once("connection broken by ").map(|it| it.1);
    after.unwrap_or(line).trim_start_matches(['\'', '"'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pip_complains_of_is_explained() {
        let retried = |error| {
            format!(
                "WARNING: Retrying (Retry(total=0)) after connection broken by '{error}(...)'\n"
            )
        };
        let lacks = |versions| {
            format!(
                "ERROR: Could not find a version that satisfies the requirement torch==2.15.0 (from versions: {versions})\n\
                 ERROR: No matching distribution found for torch==2.15.0\n"
            )
        };
        let full = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n";
        for (name, complaint) in [
            ("no_network", retried("NewConnectionError") + &lacks("none")),
            // The index answered in the end.
            (
                "an_index_that_lacks_it",
                retried("ReadTimeoutError") + &lacks("2.8.0, 2.9.0"),
            ),
            // Without retries pip does not mention the network.
            ("an_index_that_is_empty_or_not_there", lacks("none")),
            ("full_disk", full.to_owned()),
        ] {
            insta::assert_snapshot!(name, explain(&complaint, "download torch==2.15.0"));
        }
    }

    #[test]
    fn how_much_of_how_much() {
        assert_eq!(
            progress("Progress 262144 of 16918164"),
            Some((262_144, 16_918_164))
        );
        for line in [
            "Progress 1 of 0",
            "Progress 1",
            "Collecting torch",
            "Progress x of y",
        ] {
            assert_eq!(progress(line), None, "{line}");
        }
    }
}
