//! Applies both series to a tree's files: the seam's, whose result is pinned, and the source build's.

use anyhow::Result;

use super::plan::Plan;
use crate::support::refusal::refuse;
use xtask_patchkit::judge::{Files, Trial};
use xtask_patchkit::outcome::Outcome;
use xtask_patchkit::{change, git, unsaved};

/// The files that the series change, before and after. A series that is already applied is left alone.
pub fn patched(plan: &Plan) -> Result<(Files, Files)> {
    let shown = plan.tree.root.display().to_string();
    let trial = Trial {
        header: &plan.header,
        release: &plan.release,
        series: &plan.series,
    };
    let header = trial.forward(&|path| plan.tree.read(path))?;
    match header.outcome {
        Outcome::Clean | Outcome::AlreadyApplied => {}
        outcome => return Err(change::refused(&shown, git::Direction::Forward, &outcome).into()),
    }
    // It may change the same files as the seam's series, so it starts from that result.
    let read = |path: &str| match header.after.get(path) {
        Some(bytes) => Ok(bytes.clone()),
        None => plan.tree.read(path),
    };
    let besides = Trial {
        series: &plan.source_series,
        ..trial
    };
    let (start, end) = match besides.unpinned(&read)? {
        Ok(files) => files,
        Err(outcome) => {
            return Err(refuse(format!(
                "the series for source builds does not apply to {shown}"
            ))
            .found(outcome.to_string())
            .expected("files that it fits exactly; nothing was changed")
            .remedy(outcome.remedy())
            .into());
        }
    };
    let mut before = start;
    before.extend(header.before);
    let mut after = header.after;
    after.extend(end);
    if plan.keep {
        let touched: Vec<&str> = after
            .keys()
            .filter(|path| before.get(*path) != after.get(*path))
            .map(String::as_str)
            .collect();
        let remedy = "git commit or git stash them, or build without --keep";
        unsaved::refuse_changes(&plan.tree.root, &touched, remedy)?;
    }
    Ok((before, after))
}
