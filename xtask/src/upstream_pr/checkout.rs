//! Commits on top of one of a PyTorch checkout's, made with an index of their own, and the one branch that it gets.
//!
//! Knows nothing of series. Invariant: the working tree, the index, HEAD, the configuration and the other branches stay as
//! they are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use xshell::{Cmd, Shell, cmd};

use crate::support::refusal::refuse;
use xtask_patchkit::git;

/// A checkout, a commit of it, and the commits that were made on top.
#[derive(Debug)]
pub struct Checkout {
    /// The checkout's root.
    pub root: PathBuf,
    /// The full name of the commit to start from.
    pub base: String,
    /// The full name of the last commit.
    tip: String,
    /// The index; and the new objects, where nothing may be left in the checkout.
    own: TempDir,
    dry_run: bool,
    shell: Shell,
}

impl Checkout {
    /// Refuses a folder that is not a checkout's root, and a base that is not there.
    pub fn open(folder: &Path, base: &str, dry_run: bool) -> Result<Self> {
        let no_checkout = |found: String| {
            refuse(format!("{} is not a git checkout", folder.display()))
                .found(found)
                .expected("the root of a clone of pytorch")
                .remedy(
                    "pass the root of a clone; cargo xtask patch apply works on trees without git",
                )
        };
        let root = std::fs::canonicalize(folder).map_err(|error| no_checkout(error.to_string()))?;
        let own = tempfile::tempdir().context("making a folder for an index")?;
        std::fs::create_dir(own.path().join("objects"))?;
        let mut it = Self {
            root,
            base: String::new(),
            tip: String::new(),
            own,
            dry_run,
            shell: Shell::new()?,
        };
        let top = it.text(&["rev-parse", "--show-toplevel"]);
        let top = top.map_err(|error| no_checkout(error.to_string()))?;
        if Path::new(&top) != it.root {
            return Err(no_checkout(format!("a folder within {top}")).into());
        }
        it.base = it.resolve(base)?;
        it.tip = it.base.clone();
        it.text(&["read-tree", &it.base])?;
        Ok(it)
    }

    /// The full name of a commit or a file, if there is one of that name.
    fn find(&self, name: &str) -> Option<String> {
        let find = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        self.text(&[&find[..], &[name]].concat()).ok()
    }

    fn resolve(&self, name: &str) -> Result<String> {
        if let Some(commit) = self.find(&format!("{name}^{{commit}}")) {
            return Ok(commit);
        }
        let root = self.root.display();
        let shallow = self.text(&["rev-parse", "--is-shallow-repository"])? == "true";
        Err(refuse(format!("there is no {name} in {root}"))
            .found(match shallow {
                true => "a shallow clone, without it",
                false => "no branch, tag or commit of that name",
            })
            .expected("--base with a branch, a tag or a commit of that checkout")
            .remedy(format!(
                "git -C {root} fetch origin {name}, then --base FETCH_HEAD"
            ))
            .into())
    }

    /// Refuses a name that no branch can have, or that one has.
    pub fn require_free(&self, branch: &str) -> Result<()> {
        let is_name = self.text(&["check-ref-format", "--branch", branch]).is_ok();
        let what = if !is_name {
            format!("{branch:?} is no name for a branch")
        } else if self.find(&format!("refs/heads/{branch}")).is_some() {
            format!("{} has a branch {branch} already", self.root.display())
        } else {
            return Ok(());
        };
        Err(refuse(what)
            .expected("a name that is free; nothing was changed")
            .remedy("pass another one with --branch, or remove that branch if nobody needs it")
            .into())
    }

    /// A file of the base.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let blob = self.find(&format!("{}:{path}", self.base));
        blob.map(|it| git::output(self.git(&["cat-file", "blob", &it])))
            .transpose()
    }

    /// Which of the files have changes that are not committed, as `git status` lists them.
    pub fn changes(&self, files: &[&str]) -> Result<String> {
        let status = ["status", "--porcelain", "--untracked-files=no", "--"];
        let command = self
            .git(&[&status[..], files].concat())
            .env_remove("GIT_INDEX_FILE");
        git::text(command.env("GIT_OPTIONAL_LOCKS", "0"))
    }

    /// Commits a patch, with no fuzz and no three-way merge.
    pub fn apply(&mut self, patch: &Path, message: &str) -> Result<()> {
        let apply = self
            .git(&["apply", "--cached", "-p1", "--whitespace=nowarn"])
            .arg(patch);
        if let Err(error) = git::output(apply) {
            return Err(refuse(format!("{} does not apply", patch.display()))
                .found(error.to_string())
                .expected("every hunk's lines as the patch has them; nothing was changed")
                .remedy("refresh that patch, or pass another --base")
                .into());
        }
        self.commit(message)
    }

    /// Commits what is in a folder beside what the tree has.
    pub fn add(&mut self, folder: &Path, message: &str) -> Result<()> {
        let add = "-c core.fileMode=false add --force --ignore-removal .".split(' ');
        let git_dir = self.text(&["rev-parse", "--absolute-git-dir"])?;
        let command = self
            .git(&[])
            .env("GIT_DIR", git_dir)
            .env("GIT_WORK_TREE", folder);
        git::output(command.arg("-C").arg(folder).args(add))?;
        self.commit(message)
    }

    /// By the user's identity: the one thing that is taken from the user's configuration.
    fn commit(&mut self, message: &str) -> Result<()> {
        // A partial clone does not have the files that nobody reads.
        let tree = self.text(&["write-tree", "--missing-ok"])?;
        let (shell, root, tip) = (&self.shell, &self.root, &self.tip);
        let commit = cmd!(
            shell,
            "git -C {root} -c user.useConfigOnly=true -c i18n.commitEncoding=UTF-8 commit-tree -p {tip} {tree}"
        );
        let made = git::text(self.with_own(git::unbound(commit)).stdin(message));
        let made = made.map_err(|error| {
            refuse("git does not know whose commits these will be")
                .found(error.to_string())
                .expected("user.name and user.email in git's configuration")
                .remedy(format!(
                    "git -C {} config user.name NAME, and user.email ADDRESS",
                    root.display()
                ))
        })?;
        made.trim().clone_into(&mut self.tip);
        Ok(())
    }

    /// The commits as files that `git am` takes.
    pub fn format_patches(&self, out: &Path) -> Result<()> {
        let range = format!("{}..{}", self.base, self.tip);
        let out = out.to_str().context("the folder's name is not text")?;
        let more = ["--quiet", "--numbered", "--output-directory", out, &range];
        let arguments = git::FORMAT_PATCH.split_ascii_whitespace().chain(more);
        self.text(&arguments.collect::<Vec<_>>()).map(drop)
    }

    /// Makes a branch of the commits, unless there is one of that name.
    pub fn make_branch(&self, name: &str) -> Result<()> {
        let (name, nothing) = (format!("refs/heads/{name}"), "0".repeat(self.tip.len()));
        self.text(&["update-ref", &name, &self.tip, &nothing])
            .map(drop)
    }

    fn text(&self, arguments: &[&str]) -> Result<String> {
        Ok(git::text(self.git(arguments))?.trim_end().to_owned())
    }

    fn git(&self, arguments: &[&str]) -> Cmd<'_> {
        self.with_own(git::at(&self.shell, &self.root))
            .args(arguments)
    }

    /// The command with an index of our own, and in a dry run with a folder for new objects.
    fn with_own<'a>(&self, command: Cmd<'a>) -> Cmd<'a> {
        let command = command.env("GIT_INDEX_FILE", self.own.path().join("index"));
        if !self.dry_run {
            return command;
        }
        let (shell, root) = (&self.shell, &self.root);
        let objects = cmd!(
            shell,
            "git -C {root} rev-parse --path-format=absolute --git-path objects"
        );
        let objects = git::text(git::neutral(objects)).unwrap_or_default();
        command
            .env("GIT_OBJECT_DIRECTORY", self.own.path().join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects.trim_end())
    }
}
