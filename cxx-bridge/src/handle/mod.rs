//! One process's engine behind a lock, and the acts that its decisions ask for.
//!
//! Here: what the allocator asks for, and what happens when something breaks. How room is made is
//! in `room`, how regions that do not fit are replaced in `renew`, pinning itself in `pins`. Knows
//! how to pin only through [`Backing`], and nothing of PyTorch. Invariants: the engine's lock is
//! never held while memory is pinned, unpinned or waited for (I5); a panic retires the engine to
//! pass-through and goes no further (I9), and blocks that live at that moment stay valid; in a
//! forked child nothing here takes a lock.

mod notices;
mod pins;
mod renew;
mod report;
mod room;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinbuddy_core::{
    Block, Config as EngineConfig, Decision, Engine, Growth, Kept, SegmentId, Stats,
};

use crate::backing::{Backing, background};
use crate::budget::Purse;
use crate::config::Config;
use crate::lock::{Guard, Lock};
use crate::log;
use crate::warmup::WarmUp;
use notices::Notices;
use pins::Speed;
use renew::Renewal;
use room::Room;

/// A block that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where the block starts.
    pub address: usize,
    /// The engine's name for it.
    pub block: Block,
}

/// What the engine says to a request that is its own.
#[derive(Debug)]
enum Answer {
    Block(Grant),
    /// So many bytes are to be pinned.
    Pin(usize),
    Renew(Renewal),
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

/// One process's engine and its warm-up.
#[derive(Debug)]
pub struct Handle<B> {
    config: Config,
    backing: B,
    engine: Lock<Engine>,
    warm_up: WarmUp,
    /// Decided when something is first pinned: what is free then is what counts.
    purse: OnceLock<Purse>,
    speed: Speed,
    notices: Notices,
    /// A whole segment could not be pinned: requests get regions of their own, until an
    /// empty_cache.
    no_segments: AtomicBool,
    retired: AtomicBool,
    /// The engine's lock was taken at least once.
    used: AtomicBool,
    forked: AtomicBool,
    /// For tests: the next request panics under the engine's lock.
    #[cfg(debug_assertions)]
    broken: AtomicBool,
}

/// How often a request that found no room may wait for a segment, or pin one, and be beaten to it
/// by other threads.
const ATTEMPTS: usize = 16;

/// How long the end of the process waits for a pin that is going on.
const LAST_PIN: Duration = Duration::from_secs(10);

impl<B: Backing> Handle<B> {
    /// An engine as `config` asks, with nothing pinned yet.
    pub fn new(config: Config, backing: B) -> Self {
        let engine = Engine::new(EngineConfig {
            segment_bytes: config.block_bytes(),
            threshold_bytes: config.threshold_bytes(),
            growth: config.growth.value,
        });
        let engine = match config.growth.value {
            Growth::Segment => engine,
            Growth::Exact => engine.renewing(),
        };
        Self {
            warm_up: WarmUp::new(config.block_count.value),
            config,
            backing,
            engine: Lock::new(engine),
            purse: OnceLock::new(),
            speed: Speed::default(),
            notices: Notices::default(),
            no_segments: AtomicBool::new(false),
            retired: AtomicBool::new(false),
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

    /// A block of at least `bytes` bytes, or `None` where upstream's own path serves the request:
    /// below the threshold, when nothing more can be pinned, and once the engine is retired.
    pub fn request(&'static self, bytes: usize) -> Option<Grant> {
        self.guarded(|| {
            let mut refused = None;
            for attempt in 0..ATTEMPTS {
                if attempt > 0 {
                    // Streams may have come on while this thread waited.
                    self.backing.reap();
                }
                let seen = self.warm_up.brought();
                let room = match self.ask(bytes)? {
                    Answer::Block(grant) if attempt == 0 => return Some(grant),
                    Answer::Block(grant) => Room::Served(grant),
                    Answer::Pin(need) => self.make_room(bytes, need, seen),
                    Answer::Renew(renewal) => self.renew(bytes, renewal),
                };
                match room {
                    Room::Served(grant) => return self.unless_closed(Some(grant)),
                    Room::AskAgain => {}
                    Room::Refused(bytes) => {
                        refused = Some(bytes);
                        break;
                    }
                    Room::Closed => return self.unless_closed(None),
                }
            }
            let grant = self.last_resort(bytes, refused);
            self.unless_closed(grant)
        })
    }

    /// A block of at least `bytes` bytes, where that costs nothing of what the allocator keeps whole.
    /// `None` is no answer: that is to be released, and [`Self::request`] asked.
    pub fn request_beside(&self, bytes: usize, kept: &Kept) -> Option<Grant> {
        self.guarded(|| {
            let mut engine = self.engine_to_ask()?;
            if engine.is_lull(kept) {
                return None;
            }
            let block = engine.request_beside(bytes, kept)?;
            Some(grant(&engine, block))
        })
    }

    /// Counts what the blocks that the allocator keeps were used for.
    pub fn settle(&self, kept: &Kept) {
        self.guarded(|| {
            self.engine()?.settle(kept);
            Some(())
        });
    }

    /// The block's events have completed, and the allocator keeps it.
    pub fn keep(&self, block: Block) {
        self.guarded(|| {
            let misuse = self.engine()?.keep(block).err()?;
            self.retire(&misuse.to_string());
            Some(())
        });
    }

    /// What a request that took its time is answered, unless the process ends meanwhile: threads
    /// that come back from a wait while exit handlers run meet an interpreter and a driver that are
    /// gone. They stay here, and end with the process; but not for ever, should somebody wait for
    /// them at the very end.
    fn unless_closed(&self, grant: Option<Grant>) -> Option<Grant> {
        if self.warm_up.is_closed() {
            std::thread::sleep(LAST_PIN);
        }
        grant
    }

    /// The user freed the block, and events on it are outstanding.
    pub fn defer(&self, block: Block) {
        self.guarded(|| {
            let misuse = self.engine()?.defer(block).err()?;
            self.retire(&misuse.to_string());
            Some(())
        });
    }

    /// The block is free: its user is done and so is every event on it.
    pub fn release(&self, block: Block) {
        self.guarded(|| {
            let misuse = self.engine()?.release(block).err()?;
            self.retire(&misuse.to_string());
            Some(())
        });
    }

    /// Unpins every wholly idle segment and cached region, and remembers how much that was: the
    /// first request that finds no room starts the warm-up anew. One that is under way ends after
    /// the segment that it is pinning.
    pub fn empty_cache(&self) {
        self.guarded(|| {
            self.warm_up.pause();
            self.no_segments.store(false, Ordering::Relaxed);
            self.give_back_and_owe();
            Some(())
        });
    }

    /// Starts pinning what is owed, in a thread of its own, whatever the mode; with `wait`, returns
    /// when that is over. Whether the engine is on and there is a device.
    pub fn warm_up(&'static self, wait: bool) -> bool {
        self.guarded(|| {
            drop(self.engine()?);
            if !self.backing.available() {
                return None;
            }
            let _waiting = wait.then(background::wait);
            self.start_warm_up(wait);
            while wait && self.warm_up.under_way().is_some() {
                self.warm_up.wait_until_over();
                // If that was growth, the warm-up is still to come.
                self.start_warm_up(wait);
            }
            Some(())
        })
        .is_some()
    }

    /// The process is about to end: nothing more is pinned, and pins that are going on are waited
    /// for.
    pub fn close(&self) {
        if !self.forked.load(Ordering::Relaxed) {
            let _waiting = background::wait();
            self.warm_up.close(LAST_PIN);
        }
    }

    /// This is a forked child: the pins are the parent's, and its locks may be held by threads that
    /// do not exist here. From now on nothing is served, released or locked. Unless the parent never
    /// used its engine: then the child's is as good as new. Whether it is off.
    pub fn forked(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        self.forked.store(used, Ordering::Relaxed);
        if used {
            self.backing.forked();
        }
        used
    }

    /// PyTorch could not pin memory of its own: gives back all that is idle, and ends the warm-up.
    /// Whether that gave anything back.
    pub fn give_way(&self) -> bool {
        self.guarded(|| {
            drop(self.engine()?);
            self.backing.reap();
            self.warm_up
                .give_up("PyTorch could not pin memory of its own");
            let (_, all) = self.give_back(usize::MAX);
            log::info(|| format!("gave {} back for PyTorch's own pin", log::Bytes(all as u64)));
            (all > 0).then_some(())
        })
        .is_some()
    }

    /// Whether this process's engine serves requests.
    pub fn is_on(&self) -> bool {
        !self.config.disable.value && !self.is_off()
    }

    /// The engine's counters.
    pub fn stats(&self) -> Option<Stats> {
        self.guarded(|| Some(self.engine()?.stats()))
    }

    /// Starts the counters' peaks anew.
    pub fn reset_peaks(&self) {
        self.guarded(|| {
            self.engine()?.reset_peaks();
            Some(())
        });
    }

    /// Starts the counters' running totals anew.
    pub fn reset_accumulated(&self) {
        self.guarded(|| {
            self.engine()?.reset_accumulated();
            Some(())
        });
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Asks the engine: a block, or what to do for one; nothing where the request is upstream's.
    fn ask(&self, bytes: usize) -> Option<Answer> {
        let mut engine = self.engine_to_ask()?;
        match engine.request(bytes) {
            Decision::Block(block) => Some(Answer::Block(grant(&engine, block))),
            Decision::Pin { bytes } => Some(Answer::Pin(bytes)),
            Decision::Renew { bytes } => Some(Answer::Renew(Renewal::begin(&mut engine, bytes))),
            Decision::PassThrough => None,
        }
    }

    /// As [`Self::engine`], where a test can have it break down.
    #[inline]
    fn engine_to_ask(&self) -> Option<Guard<'_, Engine>> {
        let engine = self.engine()?;
        #[cfg(debug_assertions)]
        assert!(
            !self.broken.load(Ordering::Relaxed),
            "a test had the engine break down"
        );
        Some(engine)
    }

    /// The engine under its lock, or nothing once it is off: a lock poisoned by a panic counts,
    /// since what the engine knew is then in doubt.
    #[inline]
    fn engine(&self) -> Option<Guard<'_, Engine>> {
        if self.is_off() {
            return None;
        }
        // Read first: a store would take the cache line from other threads each time.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        self.engine.unless_poisoned()
    }

    #[inline]
    fn is_off(&self) -> bool {
        self.retired.load(Ordering::Relaxed) || self.forked.load(Ordering::Relaxed)
    }

    /// Runs what the allocator asked for; a panic becomes a retired engine and `None`.
    #[inline]
    fn guarded<T>(&self, act: impl FnOnce() -> Option<T>) -> Option<T> {
        // Unwind safety: what a panic leaves half done sits behind the engine's lock, which is
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
            log::warn(|| {
                format!("the engine is retired: {why}. PyTorch's own allocator serves from now on")
            });
        }
    }
}

#[inline]
fn grant(engine: &Engine, block: Block) -> Grant {
    Grant {
        address: engine.address(block),
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
