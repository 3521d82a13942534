//! A series carried to other files than those that it was written for.
//!
//! `git rebase` does it, in a repository of our own below target/. So neither patches/ nor a source tree is touched. What
//! git cannot decide stays there as an ordinary conflict. Invariant: edits there are thrown away only on request.

mod goal;

use std::path::PathBuf;

use anyhow::Result;

use super::files::{self, Files};
use super::outcome::Outcome;
use super::repository::{Repository, Side, State};
use super::series::Patch;
pub use goal::{Goal, files};
use xtask_support::paths;
use xtask_support::refusal::{Refusal, refuse};
use xtask_support::scratch::Scratch;

/// The task, and the words for it in messages.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The series.
    pub series: &'a [Patch],
    /// `torch 2.15.0`.
    pub from: String,
    /// `torch 2.14.1`, or a folder.
    pub to: String,
    /// The command, without --continue or --restart.
    pub command: String,
    /// The repository's folder.
    pub folder: PathBuf,
    /// The command that puts the result where it belongs.
    pub next: String,
}

/// What happens to the result of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// It is made anew, unless somebody has edited it.
    Remade,
    /// It is continued.
    Continued,
    /// It is thrown away.
    Discarded,
}

/// Does it. `files` returns the files that the series was written for, and those that it is carried to.
pub fn carry(
    job: &Job<'_>,
    earlier: Earlier,
    files: impl FnOnce() -> Result<(Files, Files)>,
) -> Result<String> {
    let present = Repository::at(&job.folder);
    let repository = match (present, earlier) {
        (None, Earlier::Continued) => {
            return Err(refuse("there is no rebase to go on with")
                .found(format!("nothing in {}", paths::show(&job.folder)))
                .remedy(&job.command)
                .into());
        }
        (Some(repository), Earlier::Continued) => {
            go_on(job, &repository)?;
            repository
        }
        (Some(repository), Earlier::Remade) if repository.state()? != State::Untouched => {
            return Err(in_the_way(job, &repository.state()?).into());
        }
        _ => make(job, &files()?)?,
    };
    match repository.state()? {
        State::Stopped(patch, files) => Err(stopped(job, &patch, &files).into()),
        _ => conclude(job, &repository),
    }
}

fn make(job: &Job<'_>, (old, new): &(Files, Files)) -> Result<Repository> {
    let returns = |(path, bytes): (&String, &Option<Vec<u8>>)| {
        let found = bytes.as_deref().is_some_and(files::has_returns);
        found.then(|| path.clone())
    };
    if let Some(file) = new.iter().find_map(returns) {
        let outcome = Outcome::LineEndings { file };
        return Err(
            refuse(format!("the series cannot be carried to {}", job.to))
                .found(outcome.to_string())
                .expected("upstream's own line endings")
                .remedy(outcome.remedy())
                .into(),
        );
    }
    let scratch = Scratch::folder(&job.folder)?;
    let side = |name, files| Side { name, files };
    Repository::init(scratch.path())?.fill(
        &side(&job.from, old),
        job.series,
        &side(&job.to, new),
    )?;
    scratch.publish(&job.folder)?;
    Repository::at(&job.folder).ok_or_else(|| anyhow::anyhow!("the repository has gone"))
}

/// Commits the edits, if no conflict marker is left.
fn go_on(job: &Job<'_>, repository: &Repository) -> Result<()> {
    let State::Stopped(patch, files) = repository.state()? else {
        return Ok(());
    };
    let left = repository.marked(&files);
    if !left.is_empty() {
        return Err(stopped(job, &patch, &left).into());
    }
    repository.git(&["add", "--all"])?;
    repository.go_on()
}

fn stopped(job: &Job<'_>, patch: &str, files: &[String]) -> Refusal {
    let here = paths::show(&job.folder);
    let found: Vec<_> = files
        .iter()
        .map(|file| format!("a conflict in {here}/{file}"))
        .collect();
    refuse(format!(
        "\"{patch}\" of the series for {} does not fit {} as it is",
        job.from, job.to
    ))
    .found(found.join("\n"))
    .expected("the lines between <<<<<<< and >>>>>>> as they should be; nothing outside of that folder was changed")
    .remedy(format!(
        "edit them, then {} --continue\n(git -C {here} status shows more; git rebase --skip there leaves the patch out)",
        job.command
    ))
}

fn in_the_way(job: &Job<'_>, state: &State) -> Refusal {
    let found = match state {
        State::Stopped(patch, _) => format!("a rebase that stopped at \"{patch}\""),
        _ => "commits or files that somebody has edited".to_owned(),
    };
    refuse(format!(
        "there is work in {} already",
        paths::show(&job.folder)
    ))
    .found(found)
    .expected("nothing, or what an earlier run has made by itself")
    .remedy(format!(
        "{} --continue, to go on with it\n{0} --restart, to throw it away",
        job.command
    ))
}

/// git's comparison, and the next command.
fn conclude(job: &Job<'_>, repository: &Repository) -> Result<String> {
    let compared = repository.range_diff()?;
    let count = |sign| compared.lines().filter(|it| is_pair(it, sign)).count();
    let (same, changed, gone, new) = (count("="), count("!"), count("<"), count(">"));
    let mut said = format!("{compared}\n");
    said += &format!(
        "{} patches of {} on {}: {same} as they were, {changed} changed, {gone} gone, {new} new\n",
        job.series.len(),
        job.from,
        job.to
    );
    said += &if same + changed + new == 0 {
        "all of it is there already, and nothing is left to carry\n".to_owned()
    } else {
        format!(
            "it is in {}, branch new; to do: {}\n",
            paths::show(&job.folder),
            job.next
        )
    };
    Ok(said)
}

/// Whether it is a line like `1:  1234567 = 1:  89abcde Subject`; differences follow, indented by four spaces.
fn is_pair(line: &str, sign: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().is_some_and(|it| it.ends_with(':'));
    !line.starts_with("    ") && number && words.nth(1) == Some(sign)
}
