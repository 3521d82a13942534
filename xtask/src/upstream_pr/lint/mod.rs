//! The tree's own linters on the files that a pull request touches, and on the same files before it.
//!
//! Works on copies, in folders of its own. Invariant: a linter that matches a touched file is in the report,
//! with what it said or with why it was not run.

mod config;
mod format;
mod report;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use tempfile::TempDir;
use xshell::{Shell, cmd};

use super::repository::Repository;
use crate::support::progress::Step;
use config::{FILE, Linter, Needs, PATHS};
pub use report::{Report, Said};
use tools::Toolbox;

/// What linters read besides the files themselves.
const SETTINGS: [&str; 4] = [FILE, ".clang-format", ".cmakelintrc", "tools/linter"];

/// One thing that a linter says of a file.
#[derive(Debug, Deserialize)]
struct Message {
    path: Option<String>,
    line: Option<u64>,
    name: String,
    severity: String,
    description: Option<String>,
}

/// Runs what can be run. `python` is the interpreter for it.
pub fn run(
    repository: &Repository,
    base: &str,
    tip: &str,
    files: &[String],
    python: &Path,
    step: &Step,
) -> Result<Report> {
    let mut report = Report::default();
    let Some(text) = repository.read(tip, FILE)? else {
        report.none = Some(format!("the tree has no {FILE}"));
        return Ok(report);
    };
    let linters = config::parse(&String::from_utf8_lossy(&text))?;
    let before = Copy::make(repository, base, files)?;
    let after = Copy::make(repository, tip, files)?;
    let toolbox = Toolbox::new(python, after.folder.path());
    for linter in linters {
        let touched = linter.matching(files)?;
        if touched.is_empty() {
            continue;
        }
        step.say(linter.code.clone());
        let said = on_both(&linter, &touched, &before, &after, &toolbox, step)?;
        report.add(&linter.code, touched, said);
    }
    report.layout = format::changed_lines(repository, base, tip, &after, &toolbox, step)?;
    Ok(report)
}

fn on_both(
    linter: &Linter,
    touched: &[String],
    before: &Copy,
    after: &Copy,
    toolbox: &Toolbox,
    step: &Step,
) -> Result<Said> {
    let packages = match linter.needs() {
        Needs::Other(why) => return Ok(Said::NotRun(why)),
        Needs::Nothing => toolbox.nothing(),
        Needs::Packages(packages) => toolbox.packages(&packages, step),
        Needs::ClangFormat => toolbox.clang_format(step).and_then(|packages| {
            packages.link_clang_format(before.folder.path())?;
            packages.link_clang_format(after.folder.path())?;
            Ok(packages)
        }),
    };
    let packages = match packages {
        Ok(packages) => packages,
        Err(error) => return Ok(Said::NotRun(first_line(&error.to_string()))),
    };
    let mut sides = Vec::new();
    for copy in [before, after] {
        let there = |file: &&String| copy.folder.path().join(file).is_file();
        let there: Vec<_> = touched.iter().filter(there).collect();
        match copy.run(linter, &there, &packages)? {
            Ok(messages) => sides.push(messages),
            Err(why) => return Ok(Said::NotRun(first_line(&why))),
        }
    }
    // Lines move, so what was there before is told by how often it was said of a file.
    let mut known: BTreeMap<(Option<String>, String), usize> = BTreeMap::new();
    for message in &sides[0] {
        *known
            .entry((message.path.clone(), message.name.clone()))
            .or_default() += 1;
    }
    let mut new = Vec::new();
    for message in sides.pop().unwrap_or_default() {
        match known.get_mut(&(message.path.clone(), message.name.clone())) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new.push(message.shown()),
        }
    }
    Ok(Said::Ran {
        new,
        before: sides[0].len(),
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl Message {
    fn shown(&self) -> String {
        let place = self.path.clone().unwrap_or_default();
        let line = self.line.map(|it| format!(":{it}")).unwrap_or_default();
        let more = self
            .description
            .as_deref()
            .map(str::trim)
            .unwrap_or_default();
        format!(
            "{place}{line}: {} ({}) {}",
            self.name,
            self.severity,
            first_line(more)
        )
    }
}

/// Files of a commit in a folder, with the linters and their settings.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn make(repository: &Repository, commit: &str, files: &[String]) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder to lint in")?;
        let mut all = repository.list(commit, &SETTINGS)?;
        let touched: Vec<&str> = files.iter().map(String::as_str).collect();
        all.extend(repository.list(commit, &touched)?);
        repository.index(commit)?.export(&all, folder.path())?;
        Ok(Self { folder })
    }

    /// What the linter says of the files, or why it ended early.
    fn run(
        &self,
        linter: &Linter,
        files: &[&String],
        packages: &tools::Packages,
    ) -> Result<Result<Vec<Message>, String>> {
        if files.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let list = tempfile::NamedTempFile::new().context("making a list of files")?;
        let names: String = files.iter().map(|it| format!("{it}\n")).collect();
        fs::write(list.path(), names)?;
        let argument = format!("@{}", list.path().display());
        let arguments = linter.command[1..]
            .iter()
            .map(|it| it.replace(PATHS, &argument));
        let shell = Shell::new()?;
        shell.change_dir(self.folder.path());
        let python = packages.python();
        let command = packages.around(cmd!(shell, "{python}").args(arguments));
        let output = command
            .quiet()
            .ignore_status()
            .output()
            .with_context(|| format!("running the linter {}", linter.code))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or_default();
            return Ok(Err(format!(
                "its program ended with {}: {last}",
                output.status
            )));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter(|it| !it.is_empty());
        let messages: Result<Vec<Message>, _> = messages.map(serde_json::from_str).collect();
        Ok(messages.map_err(|error| format!("what it says cannot be read: {error}")))
    }
}
