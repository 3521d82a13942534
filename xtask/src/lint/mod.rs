//! `cargo xtask lint`: what no compiler looks at: the shape of the sources, scripts, and workflows.
//!
//! Invariant: changes nothing, and names the file and the line of what it complains of.

mod calls;
mod programs;
mod tidy;
mod workflows;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::python::Python;
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::tally::Tally;
use programs::Programs;

/// A file of the checkout, by its path there.
#[derive(Debug)]
pub struct File {
    /// `ci/lint.sh`.
    pub path: String,
    /// None where it is no text.
    pub text: Option<String>,
}

impl File {
    /// A shell script.
    fn is_script(&self) -> bool {
        let first = self.text.as_ref().and_then(|it| it.lines().next());
        first.is_some_and(|it| it.starts_with("#!") && it.ends_with("bash"))
    }

    /// A workflow.
    fn is_workflow(&self) -> bool {
        self.path.starts_with(".github/workflows/")
    }
}

/// The command.
pub fn run() -> Result<()> {
    check().map(drop)
}

/// Looks at everything; what passed is counted in scripts and workflows.
pub fn check() -> Result<Tally> {
    let root = paths::root();
    let files = files(root)?;
    let progress = Progress::new(2);
    let python = Python::probe(Path::new("python3"))?;
    let programs = progress.step("get shellcheck, actionlint and zizmor", |step| {
        Programs::ensure(&python, step)
    })?;
    let complaints = progress.step("look at sources, scripts and workflows", |_| {
        let mut complaints = tidy::check(&files);
        complaints.extend(workflows::check(&files));
        complaints.extend(calls::check(root, &files));
        complaints.extend(programs.check(root, &files)?);
        Ok(complaints)
    })?;
    if complaints.is_empty() {
        let scripts = files.iter().filter(|it| it.is_script()).count();
        let workflows = files.iter().filter(|it| it.is_workflow()).count();
        println!(
            "{} files are tidy; {scripts} scripts and {workflows} workflows pass",
            files.len()
        );
        return Ok(Tally {
            passed: scripts + workflows,
            ..Tally::default()
        });
    }
    Err(
        refuse("sources, scripts or workflows are not as they should be")
            .found(complaints.join("\n"))
            .remedy("mend them; ci/README.md says what is wanted of workflows")
            .into(),
    )
}

/// What git knows of, or would with `git add`.
fn files(root: &Path) -> Result<Vec<File>> {
    let shell = Shell::new()?;
    let list = cmd!(
        shell,
        "git -C {root} ls-files -z --cached --others --exclude-standard"
    );
    let list = list
        .quiet()
        .read()
        .context("listing the checkout's files")?;
    let names = list.split('\0').filter(|it| !it.is_empty());
    let read = |path: &str| {
        let bytes = fs::read(root.join(path)).ok()?;
        let (path, text) = (path.to_owned(), String::from_utf8(bytes).ok());
        Some(File { path, text })
    };
    // Removed, and not yet with `git rm`: no file.
    Ok(names.filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What needs no program, of this checkout; the rest is a row of `cargo xtask test`.
    #[test]
    fn this_checkout() {
        let root = paths::root();
        let files = files(root).unwrap();
        assert!(files.len() > 300, "{}", files.len());
        assert_eq!(tidy::check(&files), [""; 0]);
        assert_eq!(workflows::check(&files), [""; 0]);
        assert_eq!(calls::check(root, &files), [""; 0]);
    }
}
