//! A PyTorch checkout's repository, read and added to without its working tree, its index or its HEAD.
//!
//! Commits are made from an index of our own. Knows nothing of series.
//! Invariants: nothing but a new branch, and objects that it reaches, is ever added; no git configuration
//! but the author's identity changes a byte of them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use xshell::{Cmd, Shell, cmd};

use crate::support::refusal::refuse;
use crate::upstream_pr::message::Message;
use xtask_patchkit::commits::{EXPORT, SETTINGS};
use xtask_patchkit::git;

/// The repository of one checkout.
#[derive(Debug)]
pub struct Repository {
    /// The checkout's root.
    pub root: PathBuf,
    shell: Shell,
    diverted: Option<Diverted>,
}

/// Where new objects go, if not into the repository, and where that has its own.
#[derive(Debug)]
struct Diverted {
    objects: TempDir,
    real: PathBuf,
}

/// Who commits, and when: the same for all commits, as author and as committer, so that `git am` of the
/// patches can make the same commits anew.
#[derive(Clone, Debug)]
pub struct Author {
    name: String,
    email: String,
    date: String,
}

impl Repository {
    /// The one of a checkout. Where it is only tried out, new objects go into a temporary folder.
    pub fn open(folder: &Path, only_try: bool) -> Result<Self> {
        let no_checkout = |found: String| {
            refuse(format!("{} is not a git checkout", folder.display()))
                .found(found)
                .expected("the root of a clone of pytorch")
                .remedy(
                    "pass the root of a clone; cargo xtask patch apply works on trees without git",
                )
        };
        let root = std::fs::canonicalize(folder).map_err(|error| no_checkout(error.to_string()))?;
        let mut it = Self {
            root,
            shell: Shell::new()?,
            diverted: None,
        };
        let top = it
            .text(&["rev-parse", "--show-toplevel"])
            .map_err(|error| no_checkout(error.to_string()))?;
        if Path::new(top.trim()) != it.root {
            return Err(no_checkout(format!("a folder within {}", top.trim())).into());
        }
        if only_try {
            it.divert()?;
        }
        Ok(it)
    }

    /// The full name of a commit.
    pub fn resolve(&self, name: &str) -> Result<String> {
        let wanted = format!("{name}^{{commit}}");
        let found = self.text(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &wanted,
        ]);
        if let Ok(id) = found {
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

    /// A file as a commit has it.
    pub fn read(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>> {
        if self.list(commit, &[path])?.is_empty() {
            return Ok(None);
        }
        run(self.git(&["cat-file", "blob", &format!("{commit}:{path}")])).map(Some)
    }

    /// The files of a commit at these paths and below them.
    pub fn list(&self, commit: &str, paths: &[&str]) -> Result<Vec<String>> {
        let mut arguments = vec![
            "ls-tree",
            "-r",
            "-z",
            "--name-only",
            "--full-tree",
            commit,
            "--",
        ];
        arguments.extend(paths);
        let names = self.text(&arguments)?;
        let names = names.split_terminator('\0');
        Ok(names.map(str::to_owned).collect())
    }

    /// Those of the files that have changes which no commit has.
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
        Ok(self
            .text(&[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("refs/heads/{name}"),
            ])
            .is_ok())
    }

    /// The user's identity: the one thing that is taken from the user's configuration.
    pub fn author(&self) -> Result<Author> {
        let (shell, root) = (&self.shell, &self.root);
        let asked = cmd!(
            shell,
            "git -C {root} -c user.useConfigOnly=true var GIT_AUTHOR_IDENT"
        );
        let parsed = run(git::unbound(asked))
            .ok()
            .and_then(|it| Author::parse(&String::from_utf8_lossy(&it)));
        parsed.ok_or_else(|| {
            refuse("git does not know whose commits these will be")
                .expected("user.name and user.email in git's configuration")
                .remedy(format!(
                    "git -C {} config user.name NAME, and user.email ADDRESS",
                    root.display()
                ))
                .into()
        })
    }

    /// An index that has what a commit has.
    pub fn index(&self, commit: &str) -> Result<Index<'_>> {
        let folder = tempfile::tempdir().context("making a folder for an index")?;
        let index = Index {
            repository: self,
            folder,
        };
        index.text(&["read-tree", commit])?;
        Ok(index)
    }

    /// The commits after `base` as files that `git am` takes.
    pub fn format_patches(&self, base: &str, tip: &str, out: &Path) -> Result<()> {
        let range = format!("{base}..{tip}");
        // git would take a relative one to be below the checkout.
        let out = std::path::absolute(out)?;
        let out = out.to_str().context("the folder's name is not text")?;
        let mut arguments = vec!["format-patch", "--quiet", "--output-directory", out];
        let single = ["--stdout", "-1", "--zero-commit", "--no-numbered"];
        arguments.extend(EXPORT.iter().filter(|it| !single.contains(it)));
        arguments.extend(["--numbered", &range]);
        self.text(&arguments).map(drop)
    }

    /// What differs between two commits, with no lines around it.
    pub fn diff(&self, from: &str, to: &str) -> Result<String> {
        let plain = [
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--unified=0",
        ];
        let prefixes = [
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--inter-hunk-context=0",
        ];
        let mut arguments = vec!["diff"];
        arguments.extend(plain.into_iter().chain(prefixes).chain([from, to]));
        self.text(&arguments)
    }

    /// Makes a branch, unless there is one.
    pub fn make_branch(&self, name: &str, commit: &str) -> Result<()> {
        let nothing = "0".repeat(commit.len());
        let name = format!("refs/heads/{name}");
        self.text(&["update-ref", &name, commit, &nothing])
            .map(drop)
    }

    /// Makes new objects land in a temporary folder.
    fn divert(&mut self) -> Result<()> {
        let objects = tempfile::tempdir().context("making a folder for objects")?;
        let place = [
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ];
        let real = self.text(&place)?.trim().into();
        self.diverted = Some(Diverted { objects, real });
        Ok(())
    }

    /// git's standard output, as text.
    fn text(&self, arguments: &[&str]) -> Result<String> {
        Ok(String::from_utf8(run(self.git(arguments))?)?)
    }

    fn git(&self, arguments: &[&str]) -> Cmd<'_> {
        let command = git::neutral(cmd!(self.shell, "git"))
            .args(SETTINGS.iter().flat_map(|it| ["-c", it]))
            .args([
                "-c",
                "core.quotePath=false",
                "-c",
                "i18n.commitEncoding=UTF-8",
            ])
            .arg("-C")
            .arg(&self.root)
            .args(arguments)
            .env("GIT_OPTIONAL_LOCKS", "0");
        match &self.diverted {
            None => command,
            Some(Diverted { objects, real }) => command
                .env("GIT_OBJECT_DIRECTORY", objects.path())
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", real),
        }
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

/// An index of our own, and what is committed of it.
#[derive(Debug)]
pub struct Index<'a> {
    repository: &'a Repository,
    folder: TempDir,
}

impl Index<'_> {
    /// Applies a patch, with no fuzz and no three-way merge. What git says of one that does not apply is
    /// the inner error.
    pub fn apply(&self, patch: &Path) -> Result<Result<(), String>> {
        let command = self.git(&["apply", "--cached", "-p1", "--whitespace=nowarn"]);
        let output = command.arg(patch).ignore_status().output();
        let output = output.context("running git")?;
        Ok(if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        })
    }

    /// Adds files that lie below `folder` as files below `into`.
    pub fn add(&self, folder: &Path, files: &[String], into: &str) -> Result<()> {
        let paths = files
            .iter()
            .map(|it| format!("{}\n", folder.join(it).display()));
        let hash = self.git(&["hash-object", "-w", "--no-filters", "--stdin-paths"]);
        let hashes = run(hash.stdin(paths.collect::<String>()))?;
        let hashes = String::from_utf8(hashes)?;
        let entries = hashes.lines().zip(files);
        let entries = entries.map(|(hash, name)| format!("100644 {hash}\t{into}/{name}\n"));
        let update = self.git(&["update-index", "--add", "--index-info"]);
        run(update.stdin(entries.collect::<String>())).map(drop)
    }

    /// Makes a commit of it, and returns its name.
    pub fn commit(&self, parent: &str, message: &Message, author: &Author) -> Result<String> {
        let tree = self.text(&["write-tree"])?;
        let mut command = self.git(&["commit-tree", "--no-gpg-sign", "-p", parent, tree.trim()]);
        for role in ["AUTHOR", "COMMITTER"] {
            for (what, value) in [
                ("NAME", &author.name),
                ("EMAIL", &author.email),
                ("DATE", &author.date),
            ] {
                command = command.env(format!("GIT_{role}_{what}"), value);
            }
        }
        let id = run(command.stdin(message.text()))?;
        Ok(String::from_utf8(id)?.trim().to_owned())
    }

    /// Writes files of it below a folder.
    pub fn export(&self, files: &[String], into: &Path) -> Result<()> {
        let names: String = files.iter().map(|it| format!("{it}\0")).collect();
        let prefix = format!("--prefix={}/", into.display());
        let command = self.git(&["checkout-index", "-z", "--stdin", &prefix]);
        run(command.stdin(names)).map(drop)
    }

    fn text(&self, arguments: &[&str]) -> Result<String> {
        Ok(String::from_utf8(run(self.git(arguments))?)?)
    }

    fn git(&self, arguments: &[&str]) -> Cmd<'_> {
        let index = self.folder.path().join("index");
        self.repository.git(arguments).env("GIT_INDEX_FILE", index)
    }
}

fn run(command: Cmd<'_>) -> Result<Vec<u8>> {
    let output = command.quiet().ignore_status().output();
    let output = output.context("running git")?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    anyhow::bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim())
}
