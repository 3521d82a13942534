//! A git repository to work on a series in, where nobody's configuration and no older work is at stake.
//!
//! Branches: `from`, the files that the series was written for; `old`, the series as commits on it; `to`,
//! the files that it is carried to; `new`, checked out, the series on those. `refs/pinbuddy/result` is
//! where `new` was when git had made all of it by itself.
//! Invariant: git in the folder does the same for everybody who runs it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use super::commits::{self, text};
use super::judge::Files;
use super::series::Patch;

/// The repository's own settings, so that plain git in it goes on as this program would.
const SETTINGS: [(&str, &str); 6] = [
    ("user.name", "pinbuddy developers"),
    ("user.email", "pinbuddy@localhost"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.abbrev", "7"),
    ("merge.conflictStyle", "zdiff3"),
];
const RESULT: &str = "refs/pinbuddy/result";
/// Commits of files get this moment, and those of patches their own, so that the same work has the same
/// hashes.
const DATE: &str = "2026-01-01T00:00:00Z";

/// The repository in a folder.
#[derive(Debug)]
pub(crate) struct Repository {
    /// Its folder.
    pub(crate) root: PathBuf,
}

/// Where a rebase stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Done, as git did it by itself: it can be made again.
    Untouched,
    /// Done, and somebody has worked on it.
    Edited,
    /// Not done: it stopped at this patch, and these files are in conflict.
    Stopped(String, Vec<String>),
}

impl Repository {
    /// An empty one in an empty folder.
    pub(crate) fn init(root: &Path) -> Result<Self> {
        let it = Self {
            root: root.to_path_buf(),
        };
        it.git(&["init", "--quiet", "--template=", "--initial-branch=from"])?;
        for (name, value) in SETTINGS {
            it.git(&["config", name, value])?;
        }
        Ok(it)
    }

    /// The one that is there, if it is one.
    pub(crate) fn at(root: &Path) -> Option<Self> {
        root.join(".git").is_dir().then(|| Self {
            root: root.to_path_buf(),
        })
    }

    /// Makes the four branches and carries the series over. A conflict is no error.
    pub(crate) fn fill(&self, from: &Side<'_>, series: &[Patch], to: &Side<'_>) -> Result<()> {
        self.commit(from)?;
        self.git(&["checkout", "--quiet", "-b", "old"])?;
        let patches: Vec<_> = series.iter().map(|patch| patch.path.as_path()).collect();
        commits::am(&self.root, &patches)?;
        self.git(&["checkout", "--quiet", "-b", "to", "from"])?;
        self.commit(to)?;
        self.git(&["checkout", "--quiet", "-b", "new", "old"])?;
        let rebased = self.git(&[
            "rebase",
            "--quiet",
            "--committer-date-is-author-date",
            "--empty=drop",
            "--onto",
            "to",
            "from",
        ]);
        match rebased {
            Ok(_) => self.git(&["update-ref", RESULT, "new"]).map(drop),
            Err(_) if self.under_way() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// All files as one side has them, in a commit.
    fn commit(&self, side: &Side<'_>) -> Result<()> {
        for (path, bytes) in side.files {
            let file = self.root.join(path);
            match bytes {
                Some(bytes) => {
                    fs::create_dir_all(file.parent().unwrap_or(&self.root))?;
                    fs::write(&file, bytes)
                        .with_context(|| format!("writing {}", file.display()))?;
                }
                None if file.exists() => fs::remove_file(&file)?,
                None => {}
            }
        }
        self.git(&["add", "--all"])?;
        let message = format!("PyTorch as {} has it", side.name);
        let commit = ["commit", "--quiet", "--allow-empty", "--message", &message];
        self.git(&commit).map(drop)
    }

    /// Goes on after a conflict. Another one is no error.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.git(&["rebase", "--continue"]) {
            Err(error) if !self.under_way() => Err(error),
            _ => Ok(()),
        }
    }

    /// Looks.
    pub(crate) fn state(&self) -> Result<State> {
        if self.under_way() {
            let stopped = self.git(&["log", "-1", "--format=%s", "REBASE_HEAD"])?;
            let files = self.git(&["diff", "--name-only", "--diff-filter=U"])?;
            let files = files.lines().map(str::to_owned).collect();
            return Ok(State::Stopped(stopped.trim().to_owned(), files));
        }
        let at = |name: &str| self.git(&["rev-parse", "--verify", "--quiet", name]);
        let same = matches!((at(RESULT), at("new")), (Ok(result), Ok(new)) if result == new);
        let clean = self.git(&["status", "--porcelain"])?.is_empty();
        Ok(if same && clean {
            State::Untouched
        } else {
            State::Edited
        })
    }

    fn under_way(&self) -> bool {
        let names = ["rebase-merge", "rebase-apply"];
        names
            .iter()
            .any(|it| self.root.join(".git").join(it).exists())
    }

    /// git's comparison of the series before and after.
    pub(crate) fn range_diff(&self) -> Result<String> {
        self.git(&["range-diff", "--no-color", "from..old", "to..new"])
    }

    /// git in the folder.
    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String> {
        let shell = Shell::new()?;
        let git = commits::of(&self.root, cmd!(shell, "git"))
            .env("GIT_AUTHOR_NAME", "pinbuddy developers")
            .env("GIT_AUTHOR_EMAIL", "pinbuddy@localhost")
            .env("GIT_EDITOR", "true");
        // Only of commits that are made here: a rebase keeps the authors' dates.
        let git = match arguments.first() {
            Some(&"commit") => git
                .env("GIT_AUTHOR_DATE", DATE)
                .env("GIT_COMMITTER_DATE", DATE),
            _ => git,
        };
        text(git.args(arguments))
    }
}

/// Files and whose they are.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    /// `torch 2.15.0`, or a folder.
    pub(crate) name: &'a str,
    /// By upstream path.
    pub(crate) files: &'a Files,
}
