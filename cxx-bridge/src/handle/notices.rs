//! Messages that are said once, with the numbers.
//!
//! Invariant: nothing is said once the process ends, since a driver whose statics are gone returns
//! meaningless errors.

use std::sync::atomic::{AtomicBool, Ordering};

use pinbuddy_core::{Refusal, Stats};
use pinbuddy_slots::Served;
use pinbuddy_store::AUTO;

use super::Handle;
use super::pinner::Refused;
use super::planned::Planned;
use crate::backing::Memory;
use crate::lock::Lock;
use crate::log::{self, Bytes};

/// Which messages were said.
#[derive(Debug, Default)]
pub(super) struct Notices {
    shrunk: AtomicBool,
    refused: AtomicBool,
    used_up: AtomicBool,
    full: AtomicBool,
    hidden: AtomicBool,
    pub(super) no_thread: AtomicBool,
    /// Why nothing more is pinned ahead, until the cache is cleared.
    stopped: Lock<Option<String>>,
}

impl Notices {
    /// Nothing more is pinned ahead, for this reason.
    pub(super) fn stopped(&self, why: &str) {
        *self.stopped.lock() = Some(why.to_owned());
    }

    /// The reason may not hold any more.
    pub(super) fn may_go_on(&self) {
        *self.stopped.lock() = None;
    }

    /// Whether it was said that children cannot read some blocks.
    pub(super) fn has_told_of_children(&self) -> bool {
        self.hidden.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn has_shrunk(&self) -> bool {
        self.shrunk.load(Ordering::Relaxed)
    }

    /// Why nothing more is pinned ahead, if anything prevents it.
    pub(super) fn why_stopped(&self) -> Option<String> {
        self.stopped.lock().clone()
    }
}

impl<M: Memory> Handle<M> {
    /// The warm-up pins fewer segments than wanted.
    pub(super) fn say_shrunk(&self, segments: usize, wanted: usize) {
        let quota = self.pinner.quota();
        let budget = quota.budget();
        let pinned = match quota.taken() {
            0 => String::new(),
            taken => format!(" {} are pinned already.", Bytes(taken as u64)),
        };
        self.once(&self.notices.shrunk, || {
            format!(
                "the warm-up pins {segments} of {wanted} blocks of {}: the engine may pin {} in \
                 all, {}.{pinned} BUDDY_MAX_MB sets another limit",
                Bytes(self.settings.segment_bytes as u64),
                Bytes(budget.bytes as u64),
                budget.why,
            )
        });
    }

    /// A region of `bytes` bytes ahead of requests was refused: nothing more is pinned ahead.
    pub(super) fn say_refused_ahead(&self, bytes: usize, refused: &Refused) {
        if refused.why == Refusal::Stopped || self.cell.is_closed() {
            return;
        }
        self.notices.stopped(refused.reason());
        if refused.why == Refusal::Driver {
            let size = Bytes(bytes as u64);
            let pinned = self.progress().map_or(0, |it| it.pinned);
            let ends = match self.settings.count {
                Some(wanted) => format!("The warm-up ends with {pinned} of {wanted} blocks"),
                None => "Nothing more is pinned ahead".to_owned(),
            };
            let why = refused.reason();
            self.once(&self.notices.refused, || {
                format!(
                    "could not pin {size}: {why}. {ends}{}; what does not fit in what is pinned \
                     already is pinned by itself, or PyTorch's own",
                    self.standing()
                )
            });
        } else {
            self.say_refused(bytes, refused.why, Some(refused));
        }
    }

    /// A request that needs a region of `bytes` bytes is left to upstream. `refused` is the outcome of its
    /// own pin, if one was tried.
    pub(super) fn say_refused(&self, bytes: usize, why: Refusal, refused: Option<&Refused>) {
        let size = Bytes(bytes as u64);
        let words = refused.map_or("", Refused::reason);
        match why {
            Refusal::Driver => self.once(&self.notices.refused, || {
                format!(
                    "could not pin {size}: {words}{}. What does not fit in memory that is pinned \
                     already is PyTorch's own",
                    self.standing()
                )
            }),
            Refusal::Budget => {
                // Said once: every request may come here once the budget is used up.
                self.once(&self.notices.used_up, || {
                    let budget = self.pinner.quota().budget();
                    format!(
                        "a pin of {size} would pass the budget of {}, {}{}. What does not fit in \
                         memory that is pinned already is PyTorch's own; BUDDY_MAX_MB sets another \
                         limit",
                        Bytes(budget.bytes as u64),
                        budget.why,
                        self.standing(),
                    )
                });
            }
            Refusal::Machine => self.once(&self.notices.full, || {
                format!(
                    "a pin of {size} is left to PyTorch's own allocator: it is more than half of \
                     what the machine has left{}. BUDDY_MAX_MB sets a limit that does not depend \
                     on that; pinbuddy top --all shows who else holds memory",
                    self.standing()
                )
            }),
            Refusal::Stopped => {}
        }
    }

    /// What is pinned, and why that does not serve.
    fn standing(&self) -> String {
        // Pins in place count, too.
        let taken = self.pinner.quota().taken() as u64;
        let standing = |it: Stats| standing(&it, taken.max(it.pinned_bytes.current));
        self.stats().map_or_else(String::new, standing)
    }

    /// A child cannot read so many blocks of tensors.
    pub(super) fn say_hidden(&self, blocks: u64, bytes: u64) {
        let size = Bytes(bytes);
        let s = if blocks == 1 { "" } else { "s" };
        self.once(&self.notices.hidden, || {
            format!(
                "a child was forked that cannot read {size} of pinned tensors, in {blocks} block{s}: \
                 BUDDY_FORK=hide keeps them from children, and one that reads or writes them ends \
                 with SIGSEGV. BUDDY_FORK=share, the default, does not"
            )
        });
    }

    /// The plan does not fit a thread any more.
    #[cold]
    pub(super) fn say_given_up(&self, planned: &Planned) {
        if planned.is_misfit() {
            return;
        }
        self.once(planned.given_up(), || {
            let Served { served, asked } = planned.served();
            let remove = how_to_remove(self.config.plan.value.as_deref());
            format!(
                "the plan does not fit any more: a thread asks for other sizes, in another order, than it did in the run that was \
                 recorded; of all {asked} requests {served} had a place. It is served as without a plan, until it does as planned \
                 again. If that comes in every run, {remove}, and the next run is recorded anew"
            )
        });
    }

    pub(super) fn once(&self, given: &AtomicBool, line: impl FnOnce() -> String) {
        if !self.cell.is_closed() && !given.swap(true, Ordering::Relaxed) {
            log::warn(line);
        }
    }
}

/// The plan that `BUDDY_PLAN` names.
fn how_to_remove(plan: Option<&str>) -> &'static str {
    match plan {
        Some(AUTO) => "remove the plan by `pinbuddy plans rm KEY` (`pinbuddy plans ls` has the keys)",
        _ => "remove the plan's file",
    }
}

/// As the end of a sentence.
fn standing(of: &Stats, pinned: u64) -> String {
    let (idle, run) = (of.idle_bytes, of.largest_free_run_bytes);
    match (pinned, idle) {
        (0, _) => " (nothing is pinned)".to_owned(),
        (_, 0) => format!(" ({} are pinned, none of it idle)", Bytes(pinned)),
        _ if run == 0 => format!(" ({} are pinned, {} of it idle, in the plan's places)", Bytes(pinned), Bytes(idle)),
        _ => {
            format!(" ({} are pinned, {} of it idle, at most {} in one piece)", Bytes(pinned), Bytes(idle), Bytes(run))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pinned_is_said_with_why_it_does_not_serve() {
        let mut of = Stats::default();
        assert_eq!(standing(&of, 0), " (nothing is pinned)");
        let pinned = 5 << 20;
        assert_eq!(standing(&of, pinned), " (5 MiB are pinned, none of it idle)");
        (of.idle_bytes, of.largest_free_run_bytes) = (3 << 20, 1 << 20);
        let expected = " (5 MiB are pinned, 3 MiB of it idle, at most 1 MiB in one piece)";
        assert_eq!(standing(&of, pinned), expected);
        of.largest_free_run_bytes = 0;
        assert_eq!(standing(&of, pinned), " (5 MiB are pinned, 3 MiB of it idle, in the plan's places)");
    }
}
