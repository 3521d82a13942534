//! The layout of the lines that a pull request changes, whether or not the tree checks the whole file.

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::Copy;
use super::tools::Toolbox;
use crate::patch::hunk::{self, FileDiff};
use crate::report::progress::Step;
use crate::upstream_pr::repository::Repository;

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
        let ranges = hunks.iter().filter_map(|hunk| {
            let added = hunk.lines.iter();
            let count = added
                .filter(|it| matches!(it, hunk::Line::Added(_)))
                .count();
            (count > 0)
                .then(|| format!("--lines={}:{}", hunk.new_start, hunk.new_start + count - 1))
        });
        let ranges: Vec<_> = ranges.collect();
        if ranges.is_empty() {
            continue;
        }
        let formatted = cmd!(shell, "{program} --style=file {ranges...} {path}")
            .quiet()
            .output()
            .context("running clang-format")?;
        let text = shell.read_file(&path)?;
        let formatted = String::from_utf8_lossy(&formatted.stdout).into_owned();
        let lines = text.lines().zip(formatted.lines()).enumerate();
        let first = lines.into_iter().find(|(_, (is, should))| is != should);
        said.push(match first {
            None if text.lines().count() == formatted.lines().count() => {
                format!("{name} leaves the changed lines of {path} as they are")
            }
            None => format!("{name} would lay out the end of {path} otherwise"),
            Some((number, (is, should))) => format!(
                "{name} would lay out changed lines of {path} otherwise, first line {}: `{should}` for `{is}`",
                number + 1
            ),
        });
    }
    Ok(said)
}
