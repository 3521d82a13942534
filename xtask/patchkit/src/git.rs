//! Runs git. Neither the user's nor the system's configuration is read.
//!
//! Knows nothing of series or trees.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

/// Which way a patch is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As it is written.
    Forward,
    /// Taken back.
    Reverse,
}

/// Applies one patch to the files below `work`, with no fuzz and no three-way merge. The inner error is
/// git's message about a patch that does not apply.
pub fn apply(patch: &Path, work: &Path, direction: Direction) -> Result<Result<(), String>> {
    apply_except(patch, work, direction, &[])
}

/// The same, and leaves out what the patch does to these files.
pub fn apply_except(
    patch: &Path,
    work: &Path,
    direction: Direction,
    files: &[&str],
) -> Result<Result<(), String>> {
    let shell = Shell::new()?;
    let command = outside(&shell, work)
        .args(["-c", "core.whitespace=cr-at-eol", "apply", "-p1"])
        .arg("--whitespace=nowarn")
        .args((direction == Direction::Reverse).then_some("--reverse"))
        .args(files.iter().map(|it| format!("--exclude={it}")));
    Ok(try_output(command.arg(patch))?.map(drop))
}

/// git in a folder, as if no repository were around it: `git apply` would skip files outside the repository.
fn outside<'a>(shell: &'a Shell, folder: &Path) -> Cmd<'a> {
    shell.change_dir(folder);
    let ceiling = folder.parent().unwrap_or(folder);
    neutral(cmd!(shell, "git")).env("GIT_CEILING_DIRECTORIES", ceiling)
}

/// git in a repository, with a committer that is the same for everybody.
pub fn at<'a>(shell: &'a Shell, repository: &Path) -> Cmd<'a> {
    neutral(cmd!(shell, "git"))
        .arg("-C")
        .arg(repository)
        .env("GIT_COMMITTER_NAME", "pinbuddy developers")
        .env("GIT_COMMITTER_EMAIL", "pinbuddy@localhost")
}

/// Settings that win over a repository's own configuration, and over files that git reads without being told.
const SETTINGS: [(&str, &str); 4] = [
    ("core.attributesFile", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.excludesFile", "/dev/null"),
    ("core.hooksPath", "/dev/null"),
];

/// The command with no configuration but the repository's own, and messages in English.
pub fn neutral(command: Cmd<'_>) -> Cmd<'_> {
    let command = unbound(command)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env_remove("GIT_CONFIG_PARAMETERS")
        .env("GIT_CONFIG_COUNT", SETTINGS.len().to_string());
    let numbered = SETTINGS.iter().enumerate();
    numbered.fold(command, |command, (number, (name, value))| {
        command
            .env(format!("GIT_CONFIG_KEY_{number}"), name)
            .env(format!("GIT_CONFIG_VALUE_{number}"), value)
    })
}

/// The command without the variables that git sets for its hooks: they point to another repository.
pub fn unbound(command: Cmd<'_>) -> Cmd<'_> {
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"]
        .into_iter()
        .fold(command, Cmd::env_remove)
        .env("LC_ALL", "C")
}

/// Standard output; the inner error is standard error of a command that failed.
pub fn try_output(command: Cmd<'_>) -> Result<Result<Vec<u8>, String>> {
    let command = command.quiet().ignore_status();
    let output = command.output();
    let output = output.with_context(|| format!("running {command}"))?;
    Ok(if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    })
}

/// Standard output; standard error of a command that failed is the error.
pub fn output(command: Cmd<'_>) -> Result<Vec<u8>> {
    try_output(command)?.map_err(|said| anyhow::anyhow!("git: {said}"))
}

/// The same as text.
pub fn text(command: Cmd<'_>) -> Result<String> {
    Ok(String::from_utf8(output(command)?)?)
}
