//! `cargo xtask patch rebase`: a series carried to other files than those that it was written for, by `git rebase` in a
//! repository of its own.
//!
//! Branches: `from` has the files that the series was written for, and `old` the series as commits on top; `to` has the
//! files that it is carried to, and `new`, which is checked out, the series on top of those. What git cannot decide stays
//! there as an ordinary conflict, for ordinary git. Invariant: a repository that is there is never changed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use xshell::Shell;

use super::fit::{self, Files};
use super::git;
use super::series::Patch;
use xtask_support::paths;
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;

/// The repository's settings, with which plain git continues as this program would.
const SETTINGS: [(&str, &str); 6] = [
    ("user.name", "pinbuddy developers"),
    ("user.email", "pinbuddy@localhost"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.abbrev", "7"),
    ("merge.conflictStyle", "zdiff3"),
];

/// The task, and the words for it in messages.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The series.
    pub series: &'a [Patch],
    /// `torch 2.15.0`, and the files as it has them.
    pub from: (String, Files),
    /// `torch 2.14.1` or a folder, and the files as it has them.
    pub to: (String, Files),
    /// The repository's folder.
    pub folder: PathBuf,
    /// The command that puts the result where it belongs.
    pub next: String,
}

/// Carries the series over; returns git's comparison of the series before and after, and the next command.
pub fn carry(job: &Job<'_>) -> Result<String> {
    let here = paths::show(&job.folder);
    if job.folder.exists() {
        return Err(refuse(format!("{here} is there already"))
            .found("what an earlier run, and maybe somebody since, has made")
            .expected("no such folder")
            .remedy(format!(
                "{}\nor, to begin anew: rm -r {here}",
                finish(job, &here)
            ))
            .into());
    }
    let scratch = Scratch::folder(&job.folder)?;
    let rebased = make(job, scratch.path());
    let stopped = scratch.path().join(".git/rebase-merge").exists();
    if rebased.is_err() && !stopped {
        return rebased;
    }
    scratch.publish(&job.folder)?;
    let git = |arguments: &[&str]| run(&job.folder, arguments);
    if stopped {
        let files = git(&["diff", "--name-only", "--diff-filter=U"])?;
        let subject = git(&["log", "-1", "--format=%s", "REBASE_HEAD"])?;
        let found = files
            .lines()
            .map(|file| format!("a conflict in {here}/{file}"));
        return Err(refuse(format!(
            "\"{}\" of the series for {} does not fit {} as it is",
            subject.trim(),
            job.from.0,
            job.to.0
        ))
        .found(found.collect::<Vec<_>>().join("\n"))
        .expected("the lines between <<<<<<< and >>>>>>> as they should be; nothing outside of that folder was changed")
        .remedy(format!("edit them, then {}", finish(job, &here)))
        .into());
    }
    if git(&["rev-list", "to..new"])?.is_empty() {
        return Ok(format!(
            "{} has all of the series for {} already\n",
            job.to.0, job.from.0
        ));
    }
    let compared = git(&["range-diff", "--no-color", "from..old", "to..new"])?;
    Ok(format!(
        "{compared}\nit is in {here}, branch new; to do: {}\n",
        job.next
    ))
}

fn finish(job: &Job<'_>, here: &str) -> String {
    format!(
        "git -C {here} add --all && git -C {here} rebase --continue\n\
         git -C {here} range-diff from..old to..new  # shows what has changed\n{}",
        job.next
    )
}

fn make(job: &Job<'_>, root: &Path) -> Result<String> {
    let git = |arguments: &[&str]| run(root, arguments);
    let commit = |(name, files): &(String, Files)| {
        fit::write(files, root)?;
        git(&["add", "--all"])?;
        let message = format!("PyTorch as {name} has it");
        git(&["commit", "--quiet", "--allow-empty", "--message", &message])
    };
    git(&["init", "--quiet", "--template=", "--initial-branch=from"])?;
    for (name, value) in SETTINGS {
        git(&["config", name, value])?;
    }
    commit(&job.from)?;
    git(&["checkout", "--quiet", "-b", "old"])?;
    let patches = job
        .series
        .iter()
        .map(|patch| patch.path.to_str().unwrap_or_default());
    let am = "am --quiet --keep-cr --no-3way --whitespace=nowarn --";
    git(&am.split(' ').chain(patches).collect::<Vec<_>>())?;
    git(&["checkout", "--quiet", "-b", "to", "from"])?;
    commit(&job.to)?;
    git(&["checkout", "--quiet", "-b", "new", "old"])?;
    git(&["rebase", "--quiet", "--empty=drop", "--onto", "to", "from"])
}

fn run(root: &Path, arguments: &[&str]) -> Result<String> {
    let shell = Shell::new()?;
    git::text(
        git::at(&shell, root)
            .args(arguments)
            .env("GIT_EDITOR", "true"),
    )
}
