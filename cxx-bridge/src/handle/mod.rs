//! One process's memory: the provisioner behind a lock, and what the allocator asks of it.
//!
//! What is pinned, when and how much is the provisioner's to decide; this module carries it out.
//! Here: the acts that need no memory, and what happens when something breaks. How a request is led
//! to its block is in `requests`, what a thread pins ahead in `worker`, pinning itself in `pins`, how
//! much may be in `left`, how memory is given back in `clear`, the end of the process and its children
//! in `ends`. Knows how to
//! pin only through [`Backing`], and nothing of PyTorch.
//!
//! Invariants: the lock is never held while memory is pinned, unpinned or waited for (I5); every
//! order is reported back, by a panic too, so that nobody waits for a pin that is no more; a panic
//! retires the engine to pass-through and goes no further (I9), and blocks that live at that moment
//! stay valid; in a forked child nothing here takes a lock that a thread of the parent's may hold.

mod clear;
mod ends;
mod left;
mod notices;
mod pins;
mod report;
mod requests;
mod worker;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, OnceLock};
use std::time::{Duration, Instant};

use pinbuddy_core::{Block, Misuse, Provisioner, SegmentId, Settings};

use crate::backing::Backing;
use crate::budget::Purse;
use crate::config::Config;
use crate::lock::{Guard, Lock};
use crate::log;
use notices::Notices;

/// A block that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where the block starts.
    pub address: usize,
    /// The engine's name for it.
    pub block: Block,
}

/// A block, or a part of a segment that is in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it starts.
    pub address: usize,
    /// Its length.
    pub bytes: usize,
    /// Whether a user has it.
    pub live: bool,
    /// Whether it was freed and events on it are outstanding.
    pub pending: bool,
}

/// One process's provisioner, and what it takes to do as it says.
#[derive(Debug)]
pub struct Handle<B> {
    config: Config,
    backing: B,
    provisioner: Lock<Provisioner>,
    /// With that lock: a pin has ended, the worker has, the cache was cleared, or all is over.
    changed: Condvar,
    /// The provisioner's clock starts here.
    since: Instant,
    /// Decided when something is first pinned: what is free then is what counts.
    purse: OnceLock<Purse>,
    notices: Notices,
    retired: AtomicBool,
    /// The process ends.
    closed: AtomicBool,
    /// Something was pinned, or was about to be.
    used: AtomicBool,
    forked: AtomicBool,
    /// For tests: the next request panics under the lock.
    #[cfg(debug_assertions)]
    broken: AtomicBool,
}

/// Who sleeps only until something changes looks again after this time, whatever was missed.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl<B: Backing> Handle<B> {
    /// An engine as `config` asks, with nothing pinned yet.
    pub fn new(config: Config, backing: B) -> Self {
        let settings = Settings {
            segment_bytes: config.block_bytes(),
            threshold_bytes: config.threshold_bytes(),
            growth: config.growth.value,
            warm_up: config.warm_up.value.into(),
            count: config.block_count.value,
        };
        Self {
            config,
            backing,
            provisioner: Lock::new(Provisioner::new(settings)),
            changed: Condvar::new(),
            since: Instant::now(),
            purse: OnceLock::new(),
            notices: Notices::default(),
            retired: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            used: AtomicBool::new(false),
            forked: AtomicBool::new(false),
            #[cfg(debug_assertions)]
            broken: AtomicBool::new(false),
        }
    }

    /// Has the next request panic in the engine, as a defect of ours would: for tests, in a debug
    /// build only.
    #[cfg(debug_assertions)]
    pub fn break_down(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    /// A block of at least `bytes` bytes, while the allocator caches blocks of so many. `None` is no
    /// answer: these are to be released, and [`Self::request`] asked.
    pub fn request_beside(&self, bytes: usize, cached: usize) -> Option<Grant> {
        self.guarded(|| {
            let mut provisioner = self.provisioner_to_ask()?;
            let engine = provisioner.engine_mut();
            if engine.is_lull(cached as u64) {
                return None;
            }
            let block = engine.request_beside(bytes)?;
            Some(grant(&provisioner, block))
        })
    }

    /// Counts requests that the allocator's cached blocks have served, and these blocks' bytes.
    pub fn reused(&self, blocks: usize, bytes: usize) {
        self.guarded(|| {
            let mut provisioner = self.provisioner()?;
            provisioner.engine_mut().reused(blocks as u64, bytes as u64);
            Some(())
        });
    }

    /// The block's events have completed, and the allocator caches it.
    pub fn cache(&self, block: Block) {
        self.unless_misused(|provisioner| provisioner.engine_mut().cache(block));
    }

    /// The user freed the block, and events on it are outstanding.
    pub fn defer(&self, block: Block) {
        self.unless_misused(|provisioner| provisioner.engine_mut().defer(block));
    }

    /// The block is free: its user is done and so is every event on it.
    pub fn release(&self, block: Block) {
        self.unless_misused(|provisioner| provisioner.engine_mut().release(block));
    }

    /// Whether this process's engine serves requests.
    pub fn is_on(&self) -> bool {
        !self.config.disable.value && !self.is_off()
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    #[inline]
    fn unless_misused(&self, act: impl FnOnce(&mut Provisioner) -> Result<(), Misuse>) {
        self.guarded(|| {
            let misuse = act(&mut *self.provisioner()?).err()?;
            self.retire(&misuse.to_string());
            Some(())
        });
    }

    /// As [`Self::provisioner`], where a test can have it break down.
    #[inline]
    fn provisioner_to_ask(&self) -> Option<Guard<'_, Provisioner>> {
        let provisioner = self.provisioner()?;
        #[cfg(debug_assertions)]
        assert!(
            !self.broken.load(Ordering::Relaxed),
            "a test had the engine break down"
        );
        Some(provisioner)
    }

    /// The provisioner under its lock, or nothing once it is off: a lock poisoned by a panic counts,
    /// since what the provisioner knew is then in doubt.
    #[inline]
    fn provisioner(&self) -> Option<Guard<'_, Provisioner>> {
        if self.is_off() {
            return None;
        }
        self.provisioner.unless_poisoned()
    }

    #[inline]
    fn is_off(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.forked.load(Ordering::Relaxed)
    }

    /// What the provisioner's clock shows.
    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// Sleeps until something changes, at the latest until then; nothing once the engine is off.
    fn sleep<'a>(
        &'a self,
        provisioner: Guard<'a, Provisioner>,
        until: Option<Duration>,
    ) -> Option<Guard<'a, Provisioner>> {
        let until = until.map_or_else(|| Instant::now() + LOOK_AGAIN, |until| self.since + until);
        let provisioner = provisioner.wait_until(&self.changed, until)?;
        (!self.is_off()).then_some(provisioner)
    }

    /// Runs what the allocator asked for; a panic becomes a retired engine and `None`.
    #[inline]
    fn guarded<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        // Unwind safety: what a panic leaves half done sits behind the provisioner's lock, which is
        // poisoned then and never entered again.
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
            self.retire("it panicked");
            None
        })
    }

    /// Hands everything from now on to upstream's path. Blocks that live keep their memory, which
    /// is never unpinned then.
    #[cold]
    fn retire(&self, why: &str) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            self.changed.notify_all();
            log::warn(|| {
                format!("the engine is retired: {why}. PyTorch's own allocator serves from now on")
            });
        }
    }
}

#[inline]
fn grant(provisioner: &Provisioner, block: Block) -> Grant {
    Grant {
        address: provisioner.engine().address(block),
        block,
    }
}

/// The block that the C++ side names by its parts.
pub fn block(segment: u32, offset: usize, bytes: usize) -> Block {
    Block {
        segment: SegmentId::from_u32(segment),
        offset,
        bytes,
    }
}

#[cfg(test)]
mod tests;
