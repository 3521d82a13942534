//! Runs git. Neither the user's nor the system's configuration is read, and a repository's own changes no patch.
//!
//! Knows nothing of series or trees.

use std::path::Path;
use std::process::Output;

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

/// Settings that win over a repository's own configuration, and over files that git reads without being told. A line for each;
/// ci/patch_git.py reads them, too.
const SETTINGS: &str = include_str!("settings.txt");

/// Applies one patch to the files below `folder`, with no fuzz and no three-way merge, and nothing of it if a hunk does
/// not fit: the inner error is git's words.
pub fn apply(patch: &Path, folder: &Path) -> Result<Result<(), String>> {
    run_apply(patch, folder, &[])
}

/// Whether a patch is in the files already: git could take it out of them.
pub fn is_applied(patch: &Path, folder: &Path) -> Result<bool> {
    Ok(run_apply(patch, folder, &["--reverse", "--check"])?.is_ok())
}

/// What a patch does, in git's words: a line for each file, with numbers of lines, then what else happens to files.
pub fn describe(patch: &Path) -> Result<String> {
    let folder = patch.parent().unwrap_or(patch);
    out_of(&apply_command(patch, folder, &["--numstat", "--summary"])?)
}

fn run_apply(patch: &Path, folder: &Path, how: &[&str]) -> Result<Result<(), String>> {
    let output = apply_command(patch, folder, &[how, &["--verbose"]].concat())?;
    let words = String::from_utf8_lossy(&output.stderr);
    let told = words.lines().filter(|it| !it.starts_with("Checking patch"));
    let told = told.collect::<Vec<_>>().join("\n");
    Ok(output.status.success().then_some(()).ok_or(told))
}

fn apply_command(patch: &Path, folder: &Path, how: &[&str]) -> Result<Output> {
    let shell = Shell::new()?;
    shell.change_dir(folder);
    // As if no repository were around it: `git apply` would skip files outside the repository.
    let command = neutral(cmd!(shell, "git"))
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder))
        .args(["-c", "core.whitespace=cr-at-eol", "apply", "-p1"])
        .arg("--whitespace=nowarn")
        .args(how)
        .arg(patch)
        .quiet()
        .ignore_status();
    command.output().context("running git apply")
}

/// The command with no configuration but the repository's own, and messages in English.
fn neutral(command: Cmd<'_>) -> Cmd<'_> {
    let command = unbound(command)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env_remove("GIT_CONFIG_PARAMETERS")
        .env("GIT_CONFIG_COUNT", SETTINGS.lines().count().to_string());
    let settings = SETTINGS.lines().filter_map(|line| line.split_once('='));
    let numbered = settings.enumerate();
    numbered.fold(command, |command, (number, (name, value))| {
        command.env(format!("GIT_CONFIG_KEY_{number}"), name).env(format!("GIT_CONFIG_VALUE_{number}"), value)
    })
}

/// The command without the variables that git sets for its hooks: they point to another repository.
pub fn unbound(command: Cmd<'_>) -> Cmd<'_> {
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"]
        .into_iter()
        .fold(command, Cmd::env_remove)
        .env("LC_ALL", "C")
}

/// Standard output as text; standard error of a command that failed is the error.
pub fn text(command: Cmd<'_>) -> Result<String> {
    let command = command.quiet().ignore_status();
    let output = command.output();
    out_of(&output.with_context(|| format!("running {command}"))?)
}

fn out_of(output: &Output) -> Result<String> {
    let told = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "git: {}", told.trim());
    Ok(str::from_utf8(&output.stdout)?.to_owned())
}
