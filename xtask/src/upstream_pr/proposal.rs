//! The steps of a pull request, one a commit, and the release whose series it is made of.
//!
//! Knows no git. Invariant: a series is only proposed for a header that it fits exactly.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::message::Message;
use super::vendor::{self, Vendored};
use crate::cli::upstream_pr::Kind;
use crate::support::refusal::refuse;
use crate::upstream::tested::Tested;
use xtask_patchkit::files::Reader;
use xtask_patchkit::judge::Trial;
use xtask_patchkit::outcome::Outcome;
use xtask_patchkit::release::{Release, Versions};
use xtask_patchkit::series::{self, Patch};
use xtask_patchkit::tree::Tree;

/// The steps, and where they come from.
#[derive(Debug)]
pub struct Proposal {
    /// The release whose series it is.
    pub release: Release,
    /// Whether the header is not that release's. The series fits exactly all the same.
    pub drifted: bool,
    /// In order.
    pub steps: Vec<Step>,
    patches: Vec<Patch>,
}

/// One commit.
#[derive(Debug)]
pub struct Step {
    /// Its message.
    pub message: Message,
    /// The upstream paths that it touches.
    pub files: Vec<String>,
    /// Its change.
    pub change: Change,
}

/// The change of a commit.
#[derive(Debug)]
pub enum Change {
    /// Applies this patch.
    Patch(PathBuf),
    /// Adds files of ours.
    Add(Vendored),
}

impl Proposal {
    /// For a tree that `read` reads; `shown` names it. `root` is our own checkout.
    pub fn make(
        root: &Path,
        versions: &Versions,
        kind: Kind,
        shown: &str,
        read: &Reader<'_>,
    ) -> Result<Self> {
        let tree = Tree::read_by(Path::new(shown), versions, read)?;
        // The tree's main branch is no supported release; the newest series is for it.
        let release = tree.release(versions).or_else(|_| versions.find(None))?;
        let newest = versions.find(None)?;
        if kind == Kind::Seam && release.series != newest.series {
            return Err(refuse(format!(
                "PyTorch takes pull requests for its main branch, not for {}",
                release.version
            ))
            .found(format!(
                "{shown}, with the header of torch {}",
                release.version
            ))
            .expected(format!(
                "main, or a tree that the series for torch {} fits",
                newest.version
            ))
            .remedy("pass --base origin/main, or --kind full")
            .into());
        }
        let folder = |name: &str| root.join("patches").join(name);
        let series = series::read(&folder(&release.series))?;
        let trial = Trial {
            header: &versions.header,
            release,
            series: &series,
        };
        let drifted = match trial.forward(read)?.outcome {
            Outcome::Clean => false,
            Outcome::Drifted { .. } => true,
            outcome => return Err(refused(shown, release, &outcome).into()),
        };
        let mut patches = series;
        // The series that follow the release's own.
        let more = match kind {
            Kind::Seam => versions.pull_request.as_slice(),
            Kind::Full => &release.source_series,
        };
        for name in more {
            patches.extend(series::read(&folder(name))?);
        }
        let mut steps = Vec::new();
        for patch in &patches {
            let shown = patch.path.display();
            let text =
                fs::read_to_string(&patch.path).with_context(|| format!("reading {shown}"))?;
            steps.push(Step {
                message: Message::of_patch(&text).with_context(|| format!("in {shown}"))?,
                files: patch.files.keys().cloned().collect(),
                change: Change::Patch(patch.path.clone()),
            });
        }
        if kind == Kind::Full {
            steps.push(vendor::step(root)?);
        }
        Ok(Self {
            release: release.clone(),
            drifted,
            steps,
            patches,
        })
    }

    /// The results of the tests, if they were run on these patches.
    pub fn tested(&self) -> Option<Tested> {
        Tested::read(&self.patches)
    }

    /// The upstream paths that the steps touch, each once.
    pub fn files(&self) -> Vec<String> {
        let mut files: Vec<String> = self.steps.iter().flat_map(|it| it.files.clone()).collect();
        files.sort();
        files.dedup();
        files
    }
}

fn refused(shown: &str, release: &Release, outcome: &Outcome) -> crate::support::refusal::Refusal {
    let refusal = refuse(format!("there is nothing to propose for {shown}"))
        .found(outcome.to_string())
        .expected(format!(
            "a header that the series for torch {} fits exactly; nothing was changed",
            release.version
        ));
    match outcome {
        Outcome::AlreadyApplied => {
            refusal.remedy("pass --base with a commit from before the series")
        }
        Outcome::Conflict { .. } | Outcome::Missing { .. } => refusal.remedy(format!(
            "carry the series to that tree first: cargo xtask patch rebase --from {} --source {shown}",
            release.version
        )),
        _ => refusal.remedy(outcome.remedy()),
    }
}
