//! `BUDDY_LIVE=1`: a page that other programs read while this one runs, for `pinbuddy top`.
//!
//! A thread of its own refreshes the page from counters that exist: requests know nothing of it. The page begins with
//! the first pin. It lies in a file without a path that `/proc/PID/fd` shows, so nothing is left behind however the
//! process ends, and only those who may read the process's memory can open it. Invariants: a failure is said once and
//! changes nothing else; a child writes to no page of its parent's.
#![cfg_attr(not(feature = "torch"), allow(dead_code))]

mod page;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use pinbuddy_live::{Counters, NodeUse, Page, Process};

use crate::backing::Device;
use crate::lock::Lock;
use crate::log;
use crate::nameless::Nameless;
use crate::sync;
use pinbuddy_store::launcher;

/// How often the page is refreshed.
const EVERY: Duration = Duration::from_millis(200);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Live {
    wanted: bool,
    begun: AtomicBool,
    /// The process ends.
    closed: AtomicBool,
    /// The device that memory was last pinned for; [`u32::MAX`]: none.
    device: AtomicU32,
    /// The page's file, so that a child can close it.
    file: Lock<Option<Nameless>>,
}

impl Live {
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            begun: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            device: AtomicU32::new(u32::MAX),
            file: Lock::default(),
        }
    }

    /// Memory is about to be pinned for `device`: the first time, begins to show what `shown` says.
    pub(crate) fn pins(
        &'static self,
        device: Device,
        shown: impl FnMut() -> (Counters, Vec<NodeUse>) + Send + 'static,
    ) {
        if !self.wanted {
            return;
        }
        self.device.store(u32::try_from(device.0).unwrap_or(u32::MAX), Ordering::Relaxed);
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(why) = self.begin(shown) {
            log::warn(|| format!("BUDDY_LIVE=1 has no effect: {why}. `pinbuddy top` does not see this process"));
        }
    }

    fn begin(
        &'static self,
        mut shown: impl FnMut() -> (Counters, Vec<NodeUse>) + Send + 'static,
    ) -> Result<(), String> {
        let (file, words) = page::make().map_err(|why| format!("its page cannot be made: {why}"))?;
        let process = this_process();
        let mut served = Served::default();
        let mut refresh = move || {
            let device = self.device.load(Ordering::Relaxed);
            let (mut counters, nodes) = shown();
            counters.served = served.next(counters.served);
            words.publish(&Page {
                process: Process { device: (device != u32::MAX).then_some(device), ..process.clone() },
                updated: now(),
                counters,
                nodes,
            });
        };
        refresh();
        *self.file.lock() = Some(file);
        let run = move || {
            while !self.closed.load(Ordering::Relaxed) {
                thread::sleep(EVERY);
                refresh();
            }
        };
        sync::start("pinbuddy-live", run).map_err(|why| format!("there is no thread for it: {why}"))
    }

    /// The process ends.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Called in a child: the page is the parent's, and so is the thread. If the child pins, it gets its own.
    pub(crate) fn enter_child(&self) {
        let file = self.file.if_free().and_then(|mut it| it.take());
        if let Some(file) = file {
            file.close_inherited();
        }
        self.begun.store(false, Ordering::Relaxed);
    }
}

/// Requests served, for a reader that takes any fall for a new beginning.
#[derive(Debug, Default)]
struct Served {
    last: u64,
    fell: bool,
}

impl Served {
    /// A fall counts if it lasts: while caches are flushed, requests are in nobody's count for a moment.
    fn next(&mut self, now: u64) -> u64 {
        let falls = now < self.last;
        if !falls || self.fell {
            self.last = now;
        }
        self.fell = falls && !self.fell;
        self.last
    }
}

fn this_process() -> Process {
    let rank = launcher::rank_of_all();
    let number = |it: usize| u32::try_from(it).ok();
    Process {
        pid: std::process::id(),
        rank: rank.and_then(|(rank, of)| number(rank).zip(number(of))),
        device: None,
        program: pinbuddy_store::name(&pinbuddy_store::words()),
        since: now(),
    }
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
