//! One process's engine behind a lock, and the acts that its decisions ask for.
//!
//! Knows how to pin only through [`Backing`], and nothing of PyTorch. Invariants: the engine's lock
//! is never held while memory is pinned, unpinned or waited for (I5); a panic retires the engine to
//! pass-through and goes no further (I9), and blocks that live at that moment stay valid.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use pinbuddy_core::{Block, Config as EngineConfig, Decision, Engine, Region, SegmentId, Stats};
use serde_json::{Value, json};

use crate::config::Config;
use crate::log;
use crate::warmup::{Ticket, Turn, WarmUp};

/// How page-locked memory is had and given back.
pub trait Backing: Send + Sync {
    /// Pins `bytes` bytes of fresh memory and returns their address; the error is for people.
    fn pin(&self, bytes: usize) -> Result<usize, String>;
    /// Gives back what `pin` returned; the error is for people.
    fn unpin(&self, region: Region) -> Result<(), String>;
}

/// A block that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where the block starts.
    pub address: usize,
    /// The engine's name for it.
    pub block: Block,
}

/// One process's engine and its warm-up.
#[derive(Debug)]
pub struct Handle<B> {
    config: Config,
    backing: B,
    engine: Mutex<Engine>,
    warm_up: WarmUp,
    retired: AtomicBool,
}

/// How often a request that found no room may grow the engine and be beaten to the new room by
/// other threads before it goes upstream's way.
const ATTEMPTS: usize = 16;

impl<B: Backing> Handle<B> {
    /// An engine as `config` asks, with nothing pinned yet.
    pub fn new(config: Config, backing: B) -> Self {
        let engine = Engine::new(EngineConfig {
            segment_bytes: config.block_bytes(),
            threshold_bytes: config.threshold_bytes(),
        });
        Self {
            config,
            backing,
            engine: Mutex::new(engine),
            warm_up: WarmUp::default(),
            retired: AtomicBool::new(false),
        }
    }

    /// A block of at least `bytes` bytes, or `None` where upstream's own path serves the request:
    /// below the threshold, when nothing more can be pinned, and once the engine is retired.
    pub fn request(&self, bytes: usize) -> Option<Grant> {
        self.guarded(|| {
            for _ in 0..ATTEMPTS {
                let seen = self.warm_up.seen();
                let need = {
                    let mut engine = self.engine()?;
                    match engine.request(bytes) {
                        Decision::Block(block) => {
                            return Some(Grant {
                                address: engine.address(block),
                                block,
                            });
                        }
                        Decision::Pin { bytes } => bytes,
                        _ => return None,
                    }
                };
                if !self.grow(need, seen) {
                    return None;
                }
            }
            None
        })
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

    /// Unpins every wholly idle segment.
    pub fn empty_cache(&self) {
        self.guarded(|| {
            let idle = self.engine()?.take_idle();
            for region in idle {
                self.unpin(region);
            }
            Some(())
        });
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

    /// What people and tests read: the counters, the segments and the state of the warm-up.
    pub fn report(&self) -> Value {
        let engine = self.guarded(|| {
            let engine = self.engine()?;
            let segments: Vec<Value> = engine.segments().map(|it| report::segment(&it)).collect();
            Some((report::stats(&engine.stats()), segments))
        });
        let (stats, segments) = engine.unwrap_or((Value::Null, Vec::new()));
        json!({
            "retired": self.retired.load(Ordering::Relaxed),
            "warm_up": self.warm_up.describe(),
            "engine": stats,
            "segments": segments,
        })
    }

    /// The configuration in use.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The engine under its lock, or nothing once it is retired: a lock poisoned by a panic counts,
    /// since what the engine knew is then in doubt.
    fn engine(&self) -> Option<MutexGuard<'_, Engine>> {
        if self.retired.load(Ordering::Relaxed) {
            None
        } else {
            self.engine.lock().ok()
        }
    }

    /// Makes room for a request that needs `need` more bytes. Whether it is worth asking again.
    fn grow(&self, need: usize, seen: usize) -> bool {
        match self.warm_up.turn(seen) {
            Turn::Yours(ticket) => self.warm_up(&ticket) || self.pin_segment(need),
            Turn::Progress => true,
            Turn::Over => self.pin_segment(need),
        }
    }

    /// Pins every segment of the warm-up; stops at the first that fails and keeps the others.
    fn warm_up(&self, ticket: &Ticket<'_>) -> bool {
        let wanted = self.config.block_count.value;
        let pinned = (0..wanted)
            .take_while(|_| {
                let pinned = self.pin_segment(self.config.block_bytes());
                if pinned {
                    ticket.adopted();
                }
                pinned
            })
            .count();
        if pinned < wanted {
            log::warn(&format!(
                "the warm-up pinned {pinned} of {wanted} blocks of {} MiB",
                self.config.block_size_mb.value
            ));
        }
        pinned > 0
    }

    /// Pins `bytes` bytes, outside the engine's lock, and has the engine adopt them.
    fn pin_segment(&self, bytes: usize) -> bool {
        let base = match self.backing.pin(bytes) {
            Ok(base) => base,
            Err(why) => {
                log::warn(&format!("could not pin {bytes} bytes: {why}"));
                return false;
            }
        };
        let region = Region { base, bytes };
        let adopted = self.engine().map(|mut engine| engine.adopt(region));
        match adopted {
            Some(Ok(_)) => true,
            Some(Err(why)) => {
                self.unpin(region);
                self.retire(&why.to_string());
                false
            }
            None => {
                self.unpin(region);
                false
            }
        }
    }

    fn unpin(&self, region: Region) {
        if let Err(why) = self.backing.unpin(region) {
            log::warn(&format!(
                "could not unpin {} bytes at {:#x}: {why}",
                region.bytes, region.base
            ));
        }
    }

    /// Runs what the allocator asked for; a panic becomes a retired engine and `None`.
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
    fn retire(&self, why: &str) {
        if !self.retired.swap(true, Ordering::Relaxed) {
            log::warn(&format!(
                "the engine is retired: {why}. PyTorch's own allocator serves from now on"
            ));
        }
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

mod report;

#[cfg(test)]
mod tests;
