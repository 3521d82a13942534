//! Commits on top of one of a checkout's, made in a repository beside the checkout.
//!
//! Knows nothing of series. Invariants: the checkout is only read; no git configuration changes a byte.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::Cmd;

use super::checkout::{Author, Checkout};
use super::message::Message;
use xtask_patchkit::aside::Aside;
use xtask_patchkit::git;

/// The repository, with an index that has what the last commit has.
#[derive(Debug)]
pub struct Draft {
    aside: Aside,
    base: String,
    /// The full name of the last commit.
    pub tip: String,
    author: Author,
}

impl Draft {
    /// With no commit yet. `files` are those that commits will change.
    pub fn new(checkout: &Checkout, base: &str, files: &[String]) -> Result<Self> {
        // A partial clone fetches a file when it is read, which the repository beside it cannot.
        for file in files {
            checkout.read(base, file)?;
        }
        let aside = Aside::of(&checkout.root)?;
        aside.text(&["read-tree", base])?;
        Ok(Self {
            aside,
            base: base.to_owned(),
            tip: base.to_owned(),
            author: checkout.author()?,
        })
    }

    /// Applies a patch to the index, with no fuzz and no three-way merge. The inner error is git's message about a
    /// patch that does not apply.
    pub fn apply(&self, patch: &Path) -> Result<Result<(), String>> {
        let command = self.aside.git();
        let command = command.args(["apply", "--cached", "-p1", "--whitespace=nowarn"]);
        Ok(git::try_output(command.arg(patch))?.map(drop))
    }

    /// Adds what is in a folder to the index.
    pub fn add(&self, folder: &Path) -> Result<()> {
        let add = self.in_folder(folder, &["-c", "core.fileMode=false"]);
        git::output(add.args(["add", "--force", "--ignore-removal", "."])).map(drop)
    }

    /// Commits the index.
    pub fn commit(&mut self, message: &Message) -> Result<()> {
        // A partial clone does not have the files that nobody reads.
        let tree = self.aside.text(&["write-tree", "--missing-ok"])?;
        let commit = ["commit-tree", "-p", &self.tip, tree.trim()];
        let mut command = self.aside.git().args(commit);
        let Author { name, email, date } = &self.author;
        for role in ["AUTHOR", "COMMITTER"] {
            for (what, value) in [("NAME", name), ("EMAIL", email), ("DATE", date)] {
                command = command.env(format!("GIT_{role}_{what}"), value);
            }
        }
        let id = git::text(command.stdin(message.text()))?;
        id.trim().clone_into(&mut self.tip);
        Ok(())
    }

    /// The commits as files that `git am` takes.
    pub fn format_patches(&self, out: &Path) -> Result<()> {
        let out = out.to_str().context("the folder's name is not text")?;
        let range = format!("{}..{}", self.base, self.tip);
        let mut arguments = vec!["format-patch", "--quiet", "--output-directory", out];
        arguments.extend(["--full-index", "-p", "--no-renames", "--no-signature"]);
        arguments.extend(["--numbered", &range]);
        self.aside.text(&arguments).map(drop)
    }

    /// What the commits change, with no lines around it.
    pub fn diff(&self) -> Result<String> {
        let (base, tip) = (&self.base, &self.tip);
        self.aside
            .text(&["diff", "--no-renames", "--unified=0", base, tip])
    }

    /// The files of the index that match these patterns.
    pub fn list(&self, patterns: &[&str]) -> Result<Vec<String>> {
        let arguments = [&["ls-files", "--"], patterns].concat();
        let names = self.aside.text(&arguments)?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Writes files of the index below a folder.
    pub fn write(&self, files: &[String], folder: &Path) -> Result<()> {
        let checkout = self.in_folder(folder, &["checkout-index", "--force", "--"]);
        git::output(checkout.args(files)).map(drop)
    }

    /// The new objects, as git sends them.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let arguments = ["pack-objects", "--quiet", "--revs", "--stdout"];
        let revisions = format!("{}\n^{}\n", self.tip, self.base);
        git::output(self.aside.git().args(arguments).stdin(revisions))
    }

    /// git with a folder as its working tree.
    fn in_folder(&self, folder: &Path, arguments: &[&str]) -> Cmd<'_> {
        let command = self.aside.git().arg("-C").arg(folder);
        command.env("GIT_WORK_TREE", folder).args(arguments)
    }
}
