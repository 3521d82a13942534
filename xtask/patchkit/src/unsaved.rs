//! What a tree holds that no commit has, and that must not be lost.
//!
//! Knows nothing of series. Invariant: reads only.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::commits::{of, text};
use super::git;
use xtask_support::refusal::refuse;

/// Refuses files with changes that git knows of and no commit has. Without git, the hash has to do.
pub fn refuse_changes(root: &Path, files: &[&str], remedy: &str) -> Result<()> {
    let shell = Shell::new()?;
    let status = cmd!(
        shell,
        "git -c core.quotePath=false -C {root} status --porcelain --untracked-files=no -- {files...}"
    );
    // With the user's configuration: it says whose repositories git may look at.
    let status = git::unbound(status)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .quiet()
        .ignore_status()
        .output()
        .context("running git status")?;
    let changes = String::from_utf8_lossy(&status.stdout);
    if !status.status.success() || changes.trim().is_empty() {
        return Ok(());
    }
    Err(refuse(format!(
        "{} has changes that are not committed in files that the series changes",
        root.display()
    ))
    .found(changes.trim_end())
    .expected("these files as they were committed; nothing was changed")
    .remedy(remedy)
    .into())
}

/// Refuses a tree whose state git would take into the commits, or give up with them.
pub fn refuse_unfinished(root: &Path) -> Result<()> {
    let shell = Shell::new()?;
    let git = |arguments: &[&str]| text(of(root, cmd!(shell, "git")).args(arguments));
    let what = format!("no commits were made in {}", root.display());
    for state in ["rebase-apply", "rebase-merge"] {
        let path = git(&["rev-parse", "--git-path", state])?;
        if root.join(path.trim()).exists() {
            return Err(refuse(what)
                .found("a git am or rebase that is under way")
                .expected("a tree where none is")
                .remedy("finish it, or give it up: git am --abort, git rebase --abort")
                .into());
        }
    }
    let staged = git(&["diff", "--cached", "--name-only"])?;
    if staged.is_empty() {
        return Ok(());
    }
    Err(refuse(what)
        .found(format!("staged: {}", staged.trim().replace('\n', ", ")))
        .expected("nothing staged, since it would be lost or end up in them")
        .remedy("git commit or git stash it")
        .into())
}
