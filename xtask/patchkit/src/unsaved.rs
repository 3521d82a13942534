//! Refuses trees with work that no commit has, so that it is not lost.
//!
//! Knows nothing of series. Invariant: reads only.

use std::path::Path;

use anyhow::Result;
use xshell::{Shell, cmd};

use super::git;
use xtask_support::refusal::refuse;

/// Refuses files with changes that are not committed. A tree without git passes.
pub fn refuse_changes(root: &Path, files: &[&str], remedy: &str) -> Result<()> {
    let shell = Shell::new()?;
    let status = cmd!(
        shell,
        "git -c core.quotePath=false -C {root} status --porcelain --untracked-files=no -- {files...}"
    );
    // With the user's configuration, which may allow git to read other users' repositories.
    let status = git::unbound(status).env("GIT_OPTIONAL_LOCKS", "0");
    let Ok(changes) = git::try_output(status)? else {
        return Ok(());
    };
    let changes = String::from_utf8_lossy(&changes);
    if changes.trim().is_empty() {
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

/// Refuses a tree with staged changes, or with a `git am` or rebase that is not finished: git would take them into
/// our commits, or throw them away together.
pub fn refuse_unfinished(root: &Path) -> Result<()> {
    let shell = Shell::new()?;
    let git = |arguments: &[&str]| git::text(git::at(&shell, root).args(arguments));
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
