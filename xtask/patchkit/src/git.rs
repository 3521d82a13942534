//! Runs git where nobody's configuration reaches it: not the user's, the system's or a repository's.
//!
//! Knows nothing of series or trees.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

/// Which way a patch goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As it is written.
    Forward,
    /// Taken back.
    Reverse,
}

/// Applies one patch to the files below `work`, with no fuzz and no three-way merge. What git says of
/// a patch that does not apply is the inner error.
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
    let files = files.iter().map(|it| format!("--exclude={it}"));
    let shell = Shell::new()?;
    shell.change_dir(work);
    let reverse = (direction == Direction::Reverse).then_some("--reverse");
    let command = cmd!(shell, "git -c core.autocrlf=false -c core.whitespace=cr-at-eol apply -p1 --whitespace=nowarn {reverse...} {files...} {patch}")
        // A repository around the folder would make git skip files outside it.
        .env("GIT_CEILING_DIRECTORIES", work.parent().unwrap_or(work));
    let output = neutral(command)
        .quiet()
        .ignore_status()
        .output()
        .context("running git")?;
    Ok(if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    })
}

/// The command with no configuration but the repository's own, and messages in English.
pub fn neutral(command: Cmd<'_>) -> Cmd<'_> {
    unbound(command)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env_remove("GIT_CONFIG_COUNT")
        .env_remove("GIT_CONFIG_PARAMETERS")
}

/// The command on the repository that it is pointed at, not on one that a hook of git's runs us for.
pub fn unbound(command: Cmd<'_>) -> Cmd<'_> {
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"]
        .into_iter()
        .fold(command, Cmd::env_remove)
        .env("LC_ALL", "C")
}
