//! Messages about where memory comes from, each said once.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::log;

/// Whether a message was said.
#[derive(Debug, Default)]
pub(super) struct Once(AtomicBool);

impl Once {
    /// A warning if there is something to act on, as where a setting cannot be followed; else a line at level info.
    pub(super) fn say(&self, to_act_on: bool, line: impl FnOnce() -> String) {
        if !self.0.swap(true, Ordering::Relaxed) {
            if to_act_on {
                log::warn(line);
            } else {
                log::info(line);
            }
        }
    }
}

/// Which messages were said.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Larger pages are not available.
    pub(super) pages: Once,
    /// Compaction stalls transparent huge pages.
    pub(super) stalls: Once,
    /// A part of a region has small pages instead of huge ones.
    pub(super) scattered: Once,
    /// Memory does not lie on the node that was asked for, or there is no node to choose.
    pub(super) numa: Once,
    /// How regions are made, from the first one on.
    pub(super) chosen: Once,
    /// Registering fails here, and CUDA's own allocations work.
    pub(super) fallen: Once,
    /// A region could not be mapped here, and CUDA allocated it.
    pub(super) not_this: Once,
    /// CUDA allocated a region that could have been mapped here.
    pub(super) sooner: Once,
}

impl Said {
    /// Whether there was nothing to say so far, but of slow pages, which are this machine's.
    #[cfg(test)]
    pub(super) fn has_said_nothing(&self) -> bool {
        let all = [&self.pages, &self.numa, &self.chosen, &self.fallen, &self.not_this];
        all.iter().all(|it| !it.0.load(Ordering::Relaxed))
    }

    /// Memory does not lie on the node that was asked for.
    pub(super) fn misplaced(&self, line: impl FnOnce() -> String) {
        let line = || format!("BUDDY_NUMA: {}; training goes on all the same", line());
        self.numa.say(true, line);
    }
}
