//! A git repository of our own, in which a series is rebased.
//!
//! Branches: `from` has the files that the series was written for, and `old` the series as commits on top; `to` has the
//! files that the series is carried to, and `new`, which is checked out, the series on top of those.
//! `refs/pinbuddy/result` is where `new` was when git had finished without help.
//! Invariant: plain git in the folder does the same for everybody who runs it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use xshell::Shell;

use super::files::{self, Files};
use super::series::Patch;
use super::{commits, git};

/// The repository's settings, with which plain git continues as this program would.
const SETTINGS: [(&str, &str); 6] = [
    ("user.name", "pinbuddy developers"),
    ("user.email", "pinbuddy@localhost"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.abbrev", "7"),
    ("merge.conflictStyle", "zdiff3"),
];
const RESULT: &str = "refs/pinbuddy/result";
/// The date of commits of files. Commits of patches have the patches' dates. So the same work has the same hashes.
const DATE: &str = "2026-01-01T00:00:00Z";

/// The repository in a folder.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The folder.
    pub(crate) root: PathBuf,
}

/// The state of a rebase.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Finished by git without help: it can be made again.
    Untouched,
    /// Finished, and somebody has edited the result.
    Edited,
    /// Stopped at this patch, with conflicts in these files.
    Stopped(String, Vec<String>),
}

impl Repository {
    /// A new repository in an empty folder.
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

    /// The repository in a folder, if there is one.
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

    /// Commits all files as one side has them.
    fn commit(&self, side: &Side<'_>) -> Result<()> {
        files::write(side.files, &self.root)?;
        self.git(&["add", "--all"])?;
        let message = format!("PyTorch as {} has it", side.name);
        let commit = ["commit", "--quiet", "--allow-empty", "--message", &message];
        self.git(&commit).map(drop)
    }

    /// Continues after a conflict. Another conflict is no error.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.git(&["rebase", "--continue"]) {
            Err(error) if !self.under_way() => Err(error),
            _ => Ok(()),
        }
    }

    /// The state now.
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
        if self.git(&["rev-list", "to..new"])?.is_empty() {
            // git compares no empty range.
            let gone = "--format=-:  %h < -:  ------- %s";
            return self.git(&["log", "--reverse", gone, "from..old"]);
        }
        self.git(&["range-diff", "--no-color", "from..old", "to..new"])
    }

    /// The files of a stopped rebase that still have conflict markers.
    pub(crate) fn marked(&self, files: &[String]) -> Vec<String> {
        let mut arguments = vec!["grep", "--name-only", "-E", "^(<<<<<<<|>>>>>>>) ", "--"];
        arguments.extend(files.iter().map(String::as_str));
        // Nothing found is an error to git.
        let found = self.git(&arguments).unwrap_or_default();
        found.lines().map(str::to_owned).collect()
    }

    /// git in the folder.
    pub(crate) fn git(&self, arguments: &[&str]) -> Result<String> {
        let shell = Shell::new()?;
        let git = git::at(&shell, &self.root)
            .env("GIT_AUTHOR_NAME", "pinbuddy developers")
            .env("GIT_AUTHOR_EMAIL", "pinbuddy@localhost")
            .env("GIT_EDITOR", "true");
        // Only for commits that are made here: a rebase keeps the authors' dates.
        let git = match arguments.first() {
            Some(&"commit") => git
                .env("GIT_AUTHOR_DATE", DATE)
                .env("GIT_COMMITTER_DATE", DATE),
            _ => git,
        };
        git::text(git.args(arguments))
    }
}

/// Files, and the name of the release or tree that has them.
#[derive(Debug)]
pub(crate) struct Side<'a> {
    /// `torch 2.15.0`, or a folder.
    pub(crate) name: &'a str,
    /// By upstream path.
    pub(crate) files: &'a Files,
}
