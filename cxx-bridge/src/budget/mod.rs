//! How much the engine may pin, so that it never takes the machine down.
//!
//! Page-locked memory cannot be swapped out or reclaimed. So, unless `BUDDY_MAX_MB` is set, the budget
//! is half of what the machine, the control group and the lock limit would leave if nothing were pinned; a quarter
//! where GPUs have their memory from the machine's.
//! It is shared with other processes with this library: as many as a launcher started here, and those
//! that claim memory (`claims`, `share`). That changes while a program runs, so the budget is decided
//! again and again (`quota`). Knows neither the engine nor how memory is pinned. Invariant: claims of
//! others can make a budget smaller, but never larger than half of what is there.

mod account;
mod claims;
mod heard;
mod quota;
mod share;

use std::path::Path;

pub use account::Account;
use pinbuddy_machine::{Files, Limit, Limits, Of};
pub(crate) use quota::Quota;

use crate::config::MIB;
use crate::log::Bytes;
use claims::Claim;
use pinbuddy_store::launcher;
use share::{Other, Share};

/// A pin takes at most one of so many parts of what is free.
const PARTS: u64 = 2;

/// A process that has pinned more within so many seconds is likely to go on.
const GROWS: u64 = 60;

/// The most that the engine pins, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The most that may be pinned at once, in bytes.
    pub bytes: usize,
    /// The reason, for people; completes "... may pin 2 GiB, ...".
    pub why: String,
    /// Decided before it was known what other processes have pinned: good for one pin.
    pub guessed: bool,
}

/// What limits memory now, for people.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// What is left under each limit that is known.
    pub limits: Vec<Limit>,
    /// Bytes that other processes with this library have pinned.
    pub others: u64,
}

/// What the machine and other processes leave to this one. Reads files, so it is never called under a
/// lock (I5).
pub trait Capacity: std::fmt::Debug + Send + Sync {
    /// The most ordinary memory that this process may pin now, while `taken` of it is taken.
    fn budget(&self, max_mb: Option<usize>, taken: usize) -> Budget;

    /// Whether a pin of `bytes` leaves enough to others now. After a refusal the answer may stay the same
    /// for a second, unless something is unpinned.
    fn has_room(&self, bytes: usize) -> bool;

    /// Bytes that the machine and the control group leave now; `None` if unknown.
    fn free(&self) -> Option<usize>;

    /// Which limits there are, and what others have pinned.
    fn standing(&self) -> Standing;

    /// Waits until it is known what other processes have pinned: up to 30 ms, once.
    fn hear(&self);

    /// Tells other processes that this one has pinned so much more.
    fn claim(&self, bytes: usize);
    /// Tells other processes that this one has unpinned so much.
    fn unclaim(&self, bytes: usize);
}

impl Budget {
    /// The budget on the machine below `root`, now, of a process that has pinned and taken so many bytes
    /// ([`Self::decide`]), beside others' claims. `shared_with_gpus`: see [`Limits`].
    pub(crate) fn on(
        root: &Path,
        max_mb: Option<usize>,
        own: (u64, u64),
        shared_with_gpus: impl FnOnce() -> bool,
        others: impl FnOnce() -> Option<Vec<Claim>>,
    ) -> Self {
        if let Some(max) = max_mb {
            let why = "which is BUDDY_MAX_MB".to_owned();
            return Self { bytes: max.saturating_mul(MIB), why, guessed: false };
        }
        let files = Files::below(root);
        let limits = Limits { shared_with_gpus: shared_with_gpus(), ..Limits::read(&files) };
        let now = claims::now();
        let other = |it: &Claim| Other {
            bytes: it.bytes,
            grows: it.grew.abs_diff(now) < GROWS,
            inside: matches!(&limits.cgroup, Some(tightest) if tightest.group.has(&files, it.process)),
        };
        let heard = others();
        let others: Vec<Other> = heard.iter().flatten().map(other).collect();
        Self { guessed: heard.is_none(), ..Self::decide(&limits, launcher::processes(), own, &others) }
    }

    /// The budget under `limits` beside `others`; `processes` is how many a launcher started, and the
    /// variable that says so. This process has `pinned` so much; `taken` also counts pins under way, and
    /// the budget is never less than that.
    fn decide(
        limits: &Limits,
        processes: Option<(usize, &str)>,
        (pinned, taken): (u64, u64),
        others: &[Other],
    ) -> Self {
        let (launched, variable) = processes.unwrap_or((1, ""));
        let in_use = limits.total.zip(limits.available);
        let in_use = in_use.map_or(u64::MAX, |(total, available)| total.saturating_sub(available));
        let others = share::believed(others, in_use.saturating_sub(pinned));
        let fair = |limit: Limit| {
            let (own, others) = match limit.of {
                Of::Machine => (pinned, others.clone()),
                Of::Group => {
                    let inside = others.iter().filter(|it| it.inside);
                    (pinned, inside.copied().collect())
                }
                Of::Process => (0, Vec::new()),
            };
            let parts = parts(limit);
            let share = share::fair(limit.bytes, own, &others, launched as u64, parts);
            (limit, share)
        };
        let Some((limit, share)) = limits.all().map(fair).min_by_key(|(_, it)| it.bytes) else {
            return Self { bytes: usize::MAX, why: "since no limit is known".to_owned(), guessed: false };
        };
        let mut why = reason(limit, &share, variable);
        if taken > share.bytes {
            why = format!("as it has pinned already: more than {why}");
        }
        Self { bytes: usize::try_from(share.bytes.max(taken)).unwrap_or(usize::MAX), why, guessed: false }
    }

    /// Whether a pin of `bytes` takes at most half of what is free now: processes without this library need
    /// memory, too.
    pub fn leaves_enough(bytes: usize, limits: &Limits) -> bool {
        let free = limits.least().map_or(u64::MAX, |limit| limit.bytes);
        bytes as u64 <= free / PARTS
    }
}

/// One of so many parts of what is left under a limit may be pinned. A GPU that has its memory from the same needs as much as
/// the programs.
fn parts(limit: Limit) -> u64 {
    if limit.of_gpus_too { 2 * PARTS } else { PARTS }
}

/// The reason for a share of what a limit leaves; the variable is a launcher's.
fn reason(limit: Limit, share: &Share, variable: &str) -> String {
    let part = if limit.of_gpus_too { "a quarter" } else { "half" };
    let mut why = format!("{part} of the {} of {}", Bytes(share.whole), limit.name);
    if share.pinned {
        why += " and of what is pinned";
    }
    if share.settled > 0 {
        let (processes, theirs) = (share.settled, Bytes(share.theirs));
        why += &match processes {
            1 => format!(", less {theirs} that another process holds"),
            _ => format!(", less {theirs} that {processes} other processes hold"),
        };
    }
    match (share.processes, variable) {
        (..2, _) => {}
        (many, "") => why += &format!(", shared by {many} processes that pin now"),
        (many, variable) => why += &format!(", shared by {many} processes ({variable})"),
    }
    if limit.of_gpus_too {
        why += ", as the GPU uses that memory, too";
    }
    why
}

#[cfg(test)]
pub(crate) mod tests;
