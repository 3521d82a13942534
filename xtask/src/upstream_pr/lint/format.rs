//! The layout of the lines that a pull request changes, whether or not the tree checks the whole file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::Copy;
use super::tools::Toolbox;
use crate::support::progress::Step;
use crate::upstream_pr::repository::Repository;
use xtask_patchkit::git;
use xtask_patchkit::hunk::{self, FileDiff, Hunk, Line};

const SETTINGS: &str = ".clang-format";
/// What clang-format is used for.
const ENDINGS: [&str; 5] = [".h", ".cpp", ".cc", ".cu", ".cuh"];

/// A line for each C++ file.
pub fn changed_lines(
    repository: &Repository,
    base: &str,
    tip: &str,
    after: &Copy,
    toolbox: &Toolbox,
    step: &Step,
) -> Result<Vec<String>> {
    if !after.folder.path().join(SETTINGS).is_file() {
        return Ok(vec![format!("the tree has no {SETTINGS}")]);
    }
    let name = toolbox.clang_format_name();
    let packages = match toolbox.clang_format(step) {
        Ok(packages) => packages,
        Err(error) => {
            return Ok(vec![format!(
                "not run: {name}: {}",
                super::first_line(&error.to_string())
            )]);
        }
    };
    let program = packages.clang_format()?;
    let shell = Shell::new()?;
    shell.change_dir(after.folder.path());
    let mut said = Vec::new();
    for diff in hunk::parse(&repository.diff(base, tip)?)? {
        let FileDiff { path, hunks } = diff;
        if !ENDINGS.iter().any(|it| path.ends_with(it)) {
            continue;
        }
        let added = |hunk: &Hunk| {
            let lines = hunk.lines.iter();
            lines.filter(|it| matches!(it, Line::Added(_))).count()
        };
        let changed: Vec<_> = hunks
            .iter()
            .map(|hunk| hunk.new_start..hunk.new_start + added(hunk))
            .filter(|it| !it.is_empty())
            .collect();
        let ranges = changed
            .iter()
            .map(|it| format!("--lines={}:{}", it.start, it.end - 1));
        let formatted = cmd!(shell, "{program} --style=file {ranges...} {path}")
            .quiet()
            .output()
            .context("running clang-format")?;
        let better = after.folder.path().join(".formatted");
        fs::write(&better, formatted.stdout)?;
        // A comment is laid out as a whole; only what was changed of it counts.
        let others: Vec<_> = differences(&shell, &path, &better)?
            .into_iter()
            .filter(|it| changed.iter().any(|range| range.contains(&it.old_start)))
            .collect();
        said.push(match others.first() {
            None => format!("{name} leaves the changed lines of {path} as they are"),
            Some(first) => {
                let is = first.before().next().unwrap_or_default();
                let count = others.len();
                format!("{name} would lay out {count} of the changed places in {path} otherwise: line {}, `{is}`", first.old_start)
            }
        });
    }
    Ok(said)
}

/// Where two files differ.
fn differences(shell: &Shell, one: &str, other: &Path) -> Result<Vec<Hunk>> {
    let diff = cmd!(
        shell,
        "git diff --no-index --no-color --no-ext-diff --unified=0 --dst-prefix=b/ -- {one} {other}"
    );
    // Its exit status says whether they do.
    let output = git::neutral(diff).quiet().ignore_status().output();
    let text = output.context("running git diff")?.stdout;
    let files = hunk::parse(&String::from_utf8_lossy(&text))?;
    Ok(files.into_iter().flat_map(|it| it.hunks).collect())
}
