//! What clang-format says of the lines that a pull request changes, with the tree's own configuration.
//!
//! Works in a temporary folder. Reports only: the tree does not format all of its files.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use diffy::DiffOptions;
use serde_json::Value;
use xshell::{Shell, cmd};

use super::draft::Draft;
use crate::python::pip;
use crate::support::paths;
use crate::support::progress::Step;
use xtask_patchkit::git;
use xtask_patchkit::series::{self, Diff};

/// The tree's configuration, in any folder.
const SETTINGS: &str = ":(glob)**/.clang-format";
/// Where the tree pins the version of clang-format.
const BINARIES: &str = "tools/linter/adapters/s3_init_config.json";
/// The files that clang-format is for.
const ENDINGS: [&str; 5] = [".h", ".cpp", ".cc", ".cu", ".cuh"];

/// A line for each C++ file. `python` installs clang-format.
pub fn check(draft: &Draft, python: &Path, step: &Step) -> Result<Vec<String>> {
    let settings = draft.list(&[SETTINGS])?;
    if settings.is_empty() {
        return Ok(vec!["not run: the tree has no .clang-format".to_owned()]);
    }
    let folder = tempfile::tempdir().context("making a folder for clang-format")?;
    let diff = draft.diff()?;
    let mut diffs = series::diffs(&diff)?;
    diffs.retain(|diff| ENDINGS.iter().any(|it| diff.path.ends_with(it)));
    let files = diffs.iter().map(|diff| diff.path.clone());
    let mut files: Vec<String> = files.chain(settings).collect();
    files.extend(draft.list(&[BINARIES])?);
    draft.write(&files, folder.path())?;
    let pins = fs::read_to_string(folder.path().join(BINARIES)).unwrap_or_default();
    let name = match pinned(&pins) {
        Some(version) => format!("clang-format=={version}"),
        None => "clang-format".to_owned(),
    };
    let program = match install(&name, python, step) {
        Ok(program) => program,
        Err(error) => return Ok(vec![not_run(&name, &error.to_string())]),
    };
    let shell = Shell::new()?;
    shell.change_dir(folder.path());
    let mut said = Vec::new();
    for Diff { path, patch, .. } in &diffs {
        let changed = patch.hunks().iter().map(|it| it.new_range().range());
        let changed: Vec<_> = changed.filter(|it| !it.is_empty()).collect();
        said.push(check_file(&shell, &name, &program, path, &changed)?);
    }
    Ok(said)
}

fn check_file(
    shell: &Shell,
    name: &str,
    program: &Path,
    path: &str,
    changed: &[Range<usize>],
) -> Result<String> {
    let ranges = changed.iter();
    let ranges = ranges.map(|it| format!("--lines={}:{}", it.start, it.end - 1));
    let text = fs::read_to_string(shell.current_dir().join(path))
        .with_context(|| format!("reading {path}"))?;
    let format = cmd!(shell, "{program} --style=file {ranges...} {path}");
    let formatted = match git::try_output(format)? {
        Ok(formatted) => String::from_utf8(formatted)?,
        Err(error) => return Ok(not_run(name, &error)),
    };
    let mut options = DiffOptions::new();
    let patch = options.set_context_len(0).create_patch(&text, &formatted);
    let lines = patch.hunks().iter().map(|hunk| hunk.old_range().start());
    // clang-format lays out a comment as a whole; only its changed lines count.
    let is_changed = |line: &usize| changed.iter().any(|range| range.contains(line));
    let others: Vec<usize> = lines.filter(is_changed).collect();
    let Some(&first) = others.first() else {
        return Ok(format!(
            "{name} leaves the changed lines of {path} as they are"
        ));
    };
    let is = text.lines().nth(first - 1).unwrap_or_default();
    let count = others.len();
    Ok(format!(
        "{name} would lay out {count} of the changed places in {path} otherwise: line {first}, `{is}`"
    ))
}

fn not_run(name: &str, why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    format!("not run: {name}: {first}")
}

/// The program, from PyPI. It stays in target/lint for the next run.
fn install(name: &str, python: &Path, step: &Step) -> Result<PathBuf> {
    let folder = paths::target().join("lint").join(name);
    if !folder.is_dir() {
        pip::install_into(python, &[name], false, &folder, step)?;
    }
    let program = folder.join("clang_format/data/bin/clang-format");
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}

/// The version in the address from which the tree downloads its clang-format for Linux.
fn pinned(text: &str) -> Option<String> {
    let config: Value = serde_json::from_str(text).ok()?;
    let address = config.pointer("/clang-format/Linux/download_url")?;
    let is_version = |part: &&str| {
        let numbers: Vec<_> = part.split('.').collect();
        numbers.len() == 3 && numbers.iter().all(|it| it.parse::<u32>().is_ok())
    };
    let part = address.as_str()?.split('/').find(is_version);
    part.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With programs that print their arguments, and that fail, in place of clang-format.
    #[test]
    fn only_changed_lines_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("A.h"), "one\ntwo\nthree\n").unwrap();
        let shell = Shell::new().unwrap();
        shell.change_dir(folder.path());
        let check = |program: &str, line: usize| {
            let changed = line..line + 1;
            let changed = std::slice::from_ref(&changed);
            check_file(&shell, "clang-format", Path::new(program), "A.h", changed).unwrap()
        };
        assert_eq!(
            check("echo", 1),
            "clang-format would lay out 1 of the changed places in A.h otherwise: line 1, `one`"
        );
        assert_eq!(
            check("echo", 3),
            "clang-format leaves the changed lines of A.h as they are"
        );
        assert!(check("false", 1).starts_with("not run: clang-format: "));
    }

    #[test]
    fn the_version_is_in_the_address_if_anywhere() {
        let config = |address: &str| {
            format!(r#"{{"clang-format": {{"Linux": {{"download_url": "{address}"}}}}}}"#)
        };
        let found = pinned(&config("https://a.b.c/linux64/17.0.6/clang-format"));
        assert_eq!(found.as_deref(), Some("17.0.6"));
        assert_eq!(pinned(&config("https://a.b.c/linux64/clang-format")), None);
        assert_eq!(pinned(""), None);
    }
}
