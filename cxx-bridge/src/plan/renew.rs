//! How a kept plan renews itself that no run is recorded beside, as those of device memory: two runs in a row that it does not fit
//! remove it, and the next one is recorded.
//!
//! Two, so that a program whose runs have two shapes in turns keeps the plan of one of them. The first run leaves a mark on the file
//! ([`pinbuddy_store::mark`]). The next one takes it as soon as it uses the device, so a run that the plan fits leaves none even if it
//! is killed. Ranks that share a file are one run: a mark counts if it was there when the plan was read. No time is compared, since
//! machines that share a folder have a clock each.
//!
//! Invariants: no plan is marked or removed but the one that this run has read, and one that a user has named never. There is no lock:
//! who replaces the file between the look and the removal is not seen, as by the planner.

use std::fmt;
use std::fs::{self, File};
use std::io::Read as _;
use std::sync::atomic::Ordering;

use pinbuddy_plan::file::MOST_TEXT;
use pinbuddy_store::{MOST_HEAD, body, mark};

use super::Place;
use super::auto::TO_DO;
use pinbuddy_store::launcher;

/// What becomes of a plan that does not fit this run, for people at the end of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is its user's.
    Named,
    /// The next run that it does not fit removes it.
    Marked,
    /// It did not fit the last run either.
    Removed,
    /// It is other machines' as well, and the first one decides.
    Others,
    /// It is not there any more, or another one is.
    Gone,
    /// Nothing can be done here: why, and what a user can do.
    Stays(String),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "give this program's plan another name, or remove the file, and the next run is recorded",
            Self::Marked => "if it does not fit the next run either, it is removed, and the run after that is recorded",
            Self::Removed => {
                "the second run in a row that it does not fit: it is removed, and the next run is recorded"
            }
            Self::Others => "it is other machines' as well, and the first one's rank decides whether it is removed",
            Self::Gone => "another process has removed or replaced it",
            Self::Stays(why) => return write!(f, "it cannot be renewed, since {why}"),
        })
    }
}

impl Place {
    /// This run begins to use the plan, and takes its mark.
    pub(crate) fn begin(&self) {
        if let Some(kept) = &self.kept
            && self.was_marked()
        {
            // What cannot be taken is no mark: a file system may show such rights for all files.
            kept.was_marked.store(self.unmark(), Ordering::Relaxed);
        }
    }

    /// Whether the last run found that it does not fit.
    pub(crate) fn was_marked(&self) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|it| it.was_marked.load(Ordering::Relaxed))
    }

    /// The plan fits this run, which may have left a mark too early, or another rank of it has.
    pub(crate) fn fits(&self) {
        self.unmark();
    }

    /// Takes the mark of a file that was chosen here; whether it has none.
    fn unmark(&self) -> bool {
        let unmarked = || mark(&File::open(&self.path)?, false);
        self.is_ours() && unmarked().is_ok()
    }

    /// The plan does not fit this run. `is_used`: whether a text is the plan's.
    pub(crate) fn unfit(&self, is_used: impl Fn(&str) -> bool) -> Fate {
        if !self.is_kept() {
            return Fate::Named;
        }
        let Some(file) = self.used(is_used) else {
            return Fate::Gone;
        };
        if let Err(why) = self.prepare() {
            return Fate::Stays(why);
        }
        if !launcher::is_on_first_machine() {
            return Fate::Others;
        }
        if self.was_marked() {
            return match fs::remove_file(&self.path) {
                Ok(()) => Fate::Removed,
                Err(why) => Fate::Stays(format!("its file cannot be removed ({why}): {TO_DO}")),
            };
        }
        match mark(&file, true) {
            Ok(()) => Fate::Marked,
            Err(why) => {
                Fate::Stays(format!("its file cannot be marked ({why}): remove it, and the next run is recorded"))
            }
        }
    }

    /// Removes a kept plan that does harm. Whether it is gone.
    pub(crate) fn forget(&self, is_used: impl Fn(&str) -> bool) -> bool {
        self.used(is_used).is_some() && fs::remove_file(&self.path).is_ok()
    }

    /// The file, if it was chosen here and still has the plan that this run uses.
    fn used(&self, is_used: impl Fn(&str) -> bool) -> Option<File> {
        let mut file = self.is_ours().then(|| File::open(&self.path).ok())??;
        let most = (MOST_TEXT + MOST_HEAD) as u64;
        let mut text = String::new();
        (&mut file).take(most).read_to_string(&mut text).ok()?;
        (self.check(&text).is_ok() && is_used(body(&text))).then_some(file)
    }
}

#[cfg(test)]
mod tests;
