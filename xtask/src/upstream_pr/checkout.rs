//! A PyTorch checkout: what its repository has, and the one branch that it gets.
//!
//! Knows nothing of series. Invariant: the working tree, the index, HEAD and the other branches stay as they are.

use std::path::{Path, PathBuf};

use anyhow::Result;
use xshell::{Cmd, Shell, cmd};

use super::draft::Draft;
use crate::support::refusal::refuse;
use xtask_patchkit::git;

/// The repository of one checkout.
#[derive(Debug)]
pub struct Checkout {
    /// The checkout's root.
    pub root: PathBuf,
    shell: Shell,
}

/// Author and committer of all commits, and their date. Both are the same, so that `git am` of the patches can make
/// the same commits.
#[derive(Clone, Debug)]
pub struct Author {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
    /// Seconds and time zone.
    pub date: String,
}

impl Checkout {
    /// Refuses a folder that is not a checkout's root.
    pub fn open(folder: &Path) -> Result<Self> {
        let no_checkout = |found: String| {
            refuse(format!("{} is not a git checkout", folder.display()))
                .found(found)
                .expected("the root of a clone of pytorch")
                .remedy(
                    "pass the root of a clone; cargo xtask patch apply works on trees without git",
                )
        };
        let root = std::fs::canonicalize(folder).map_err(|error| no_checkout(error.to_string()))?;
        let shell = Shell::new()?;
        let it = Self { root, shell };
        let top = it
            .text(&["rev-parse", "--show-toplevel"])
            .map_err(|error| no_checkout(error.to_string()))?;
        if Path::new(top.trim()) != it.root {
            return Err(no_checkout(format!("a folder within {}", top.trim())).into());
        }
        Ok(it)
    }

    /// The full name of a commit.
    pub fn resolve(&self, name: &str) -> Result<String> {
        let wanted = format!("{name}^{{commit}}");
        let verify = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        if let Ok(id) = self.text(&[&verify[..], &[&wanted]].concat()) {
            return Ok(id.trim().to_owned());
        }
        let shallow = self.text(&["rev-parse", "--is-shallow-repository"])?;
        let root = self.root.display();
        Err(refuse(format!("there is no {name} in {root}"))
            .found(if shallow.trim() == "true" {
                "a shallow clone, without it"
            } else {
                "no branch, tag or commit of that name"
            })
            .expected("--base with a branch, a tag or a commit of that checkout")
            .remedy(format!(
                "git -C {root} fetch origin {name}, then --base FETCH_HEAD"
            ))
            .into())
    }

    /// A file of a commit.
    pub fn read(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>> {
        let list = ["ls-tree", "--name-only", "--full-tree", commit, "--", path];
        if self.text(&list)?.is_empty() {
            return Ok(None);
        }
        let blob = format!("{commit}:{path}");
        git::output(self.git(&["cat-file", "blob", &blob])).map(Some)
    }

    /// Which of the files have changes that are not committed, as `git status` lists them.
    pub fn changes(&self, files: &[String]) -> Result<String> {
        let mut arguments = vec!["status", "--porcelain", "--untracked-files=no", "--"];
        arguments.extend(files.iter().map(String::as_str));
        self.text(&arguments)
    }

    /// Whether a branch of that name is there; refuses a name that no branch can have.
    pub fn has_branch(&self, name: &str) -> Result<bool> {
        if self.text(&["check-ref-format", "--branch", name]).is_err() {
            return Err(refuse(format!("{name:?} is no name for a branch"))
                .remedy("pass another one with --branch")
                .into());
        }
        let branch = format!("refs/heads/{name}");
        let found = self.text(&["rev-parse", "--verify", "--quiet", &branch]);
        Ok(found.is_ok())
    }

    /// The user's identity: the one thing that is taken from the user's configuration.
    pub fn author(&self) -> Result<Author> {
        let (shell, root) = (&self.shell, &self.root);
        let asked = cmd!(
            shell,
            "git -C {root} -c user.useConfigOnly=true var GIT_AUTHOR_IDENT"
        );
        let parsed = git::text(git::unbound(asked)).ok();
        parsed.and_then(|it| Author::parse(&it)).ok_or_else(|| {
            refuse("git does not know whose commits these will be")
                .expected("user.name and user.email in git's configuration")
                .remedy(format!(
                    "git -C {} config user.name NAME, and user.email ADDRESS",
                    root.display()
                ))
                .into()
        })
    }

    /// Makes a branch of a draft's commits, unless there is one of that name.
    pub fn make_branch(&self, name: &str, draft: &Draft) -> Result<()> {
        let unpack = self.git(&["unpack-objects", "-q"]).stdin(draft.pack()?);
        git::output(unpack)?;
        let nothing = "0".repeat(draft.tip.len());
        let name = format!("refs/heads/{name}");
        self.text(&["update-ref", &name, &draft.tip, &nothing])
            .map(drop)
    }

    fn text(&self, arguments: &[&str]) -> Result<String> {
        git::text(self.git(arguments))
    }

    fn git(&self, arguments: &[&str]) -> Cmd<'_> {
        git::neutral(cmd!(self.shell, "git"))
            .args(["-c", "core.quotePath=false", "-C"])
            .arg(&self.root)
            .args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0")
    }
}

impl Author {
    /// `Name <address> seconds zone`.
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.trim().split_once(" <")?;
        let (email, date) = rest.split_once("> ")?;
        Some(Self {
            name: name.to_owned(),
            email: email.to_owned(),
            date: date.to_owned(),
        })
    }
}
