//! Messages about where memory comes from, each said once: a warning if a setting cannot be followed,
//! else a line at level info.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::log;

/// Which messages were said.
#[derive(Debug, Default)]
pub(super) struct Said {
    pages: AtomicBool,
    stalls: AtomicBool,
    scattered: AtomicBool,
    numa: AtomicBool,
    chosen: AtomicBool,
    fallen: AtomicBool,
    not_this: AtomicBool,
    sooner: AtomicBool,
}

impl Said {
    /// Whether there was nothing to say so far, but of slow pages, which are this machine's.
    #[cfg(test)]
    pub(super) fn has_said_nothing(&self) -> bool {
        let all = [
            &self.pages,
            &self.numa,
            &self.chosen,
            &self.fallen,
            &self.not_this,
        ];
        all.iter().all(|it| !it.load(Ordering::Relaxed))
    }

    /// Larger pages are not available.
    pub(super) fn pages(&self, asked_for: bool, line: impl FnOnce() -> String) {
        once(&self.pages, asked_for, || {
            format!("BUDDY_HUGE_PAGES: {}", line())
        });
    }

    /// Compaction stalls transparent huge pages.
    pub(super) fn stalls(&self, asked_for: bool, line: impl FnOnce() -> String) {
        once(&self.stalls, asked_for, || {
            format!("BUDDY_HUGE_PAGES: {}", line())
        });
    }

    /// A part of a region has small pages instead of huge ones.
    pub(super) fn scattered(&self, asked_for: bool, line: impl FnOnce() -> String) {
        once(&self.scattered, asked_for, || {
            format!("BUDDY_HUGE_PAGES: {}", line())
        });
    }

    /// Memory does not lie on the node that was asked for.
    pub(super) fn numa(&self, line: impl FnOnce() -> String) {
        once(&self.numa, true, || {
            format!("BUDDY_NUMA: {}; training goes on all the same", line())
        });
    }

    /// There is no NUMA node to choose.
    pub(super) fn nothing_to_choose(&self, why: &str) {
        once(&self.numa, false, || {
            format!("BUDDY_NUMA: {why}; nothing changes")
        });
    }

    /// How regions are made, from the first one on.
    pub(super) fn chosen(&self, line: impl FnOnce() -> String) {
        once(&self.chosen, false, line);
    }

    /// Registering fails here, and CUDA's own allocations work.
    pub(super) fn fallen(&self, line: impl FnOnce() -> String) {
        once(&self.fallen, true, line);
    }

    /// CUDA allocated a region that could have been mapped here.
    pub(super) fn sooner(&self, line: impl FnOnce() -> String) {
        once(&self.sooner, false, line);
    }

    /// A region could not be mapped here, and CUDA allocated it.
    pub(super) fn not_this(&self, line: impl FnOnce() -> String) {
        once(&self.not_this, true, line);
    }
}

fn once(said: &AtomicBool, to_act_on: bool, line: impl FnOnce() -> String) {
    if !said.swap(true, Ordering::Relaxed) {
        if to_act_on {
            log::warn(line);
        } else {
            log::info(line);
        }
    }
}
