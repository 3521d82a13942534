//! The handle on a backing that hands out numbers, and fails where a test asks it to.

mod clear;
mod refusals;
mod renew;
mod serving;
mod warming;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pinbuddy_core::{Block, Kept, Region};

use super::{Grant, Handle};
use crate::backing::{Backing, Device, Source};
use crate::budget::Budget;
use crate::config::tests::read;

const MIB: usize = 1 << 20;

type Tested = &'static Handle<Numbers>;

/// Pins nothing, but knows what is pinned.
#[derive(Debug)]
struct Numbers {
    next: AtomicUsize,
    pinned: Mutex<Vec<Region>>,
    /// Every size that was asked for, in order, and by which thread.
    asked: Mutex<Vec<(usize, thread::ThreadId)>>,
    /// How many more pins succeed.
    left: AtomicUsize,
    /// Larger ones are refused.
    largest: AtomicUsize,
    panics: AtomicBool,
    /// How long a pin of a segment takes, in milliseconds; others in proportion.
    slowness: AtomicUsize,
    /// Whether pins wait for each other, and the lock on which they do.
    one_at_a_time: AtomicBool,
    driver: Mutex<()>,
    budget: usize,
    /// The largest pin for which the machine has room.
    free: AtomicUsize,
    /// What the system has set aside, in bytes.
    set_aside: AtomicUsize,
    /// What `reap` finds completed.
    completed: Mutex<Vec<(Tested, Block)>>,
}

impl Numbers {
    fn new(budget: usize) -> Self {
        Self {
            next: AtomicUsize::new(0x1000_0000),
            pinned: Mutex::default(),
            asked: Mutex::default(),
            left: AtomicUsize::new(usize::MAX),
            largest: AtomicUsize::new(usize::MAX),
            panics: AtomicBool::new(false),
            slowness: AtomicUsize::new(0),
            one_at_a_time: AtomicBool::new(false),
            driver: Mutex::default(),
            budget,
            free: AtomicUsize::new(usize::MAX),
            set_aside: AtomicUsize::new(0),
            completed: Mutex::default(),
        }
    }
}

impl Backing for Numbers {
    fn available(&self) -> bool {
        true
    }

    fn device(&self) -> Device {
        Device(0)
    }

    fn source(&self, bytes: usize) -> Source {
        if self.set_aside.load(Ordering::Relaxed) >= bytes {
            Source::SetAside
        } else {
            Source::Ordinary
        }
    }

    fn set_aside(&self, bytes: usize) -> usize {
        self.set_aside.load(Ordering::Relaxed) / bytes * bytes
    }

    fn pin(&self, bytes: usize, _device: Device, source: Source) -> Result<usize, String> {
        if source == Source::SetAside {
            let base = SET_ASIDE + self.set_aside.fetch_sub(bytes, Ordering::Relaxed);
            self.pinned.lock().unwrap().push(Region { base, bytes });
            return Ok(base);
        }
        self.asked
            .lock()
            .unwrap()
            .push((bytes, thread::current().id()));
        assert!(
            !self.panics.load(Ordering::Relaxed),
            "a backing that panics"
        );
        let one_at_a_time = self.one_at_a_time.load(Ordering::Relaxed);
        let _driver = one_at_a_time.then(|| self.driver.lock().unwrap());
        let slowness = self.slowness.load(Ordering::Relaxed) * bytes / SEGMENT;
        thread::sleep(Duration::from_millis(slowness as u64));
        if bytes > self.largest.load(Ordering::Relaxed) {
            return Err("too large".to_owned());
        }
        let spend = |left: usize| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .map_err(|_| "no more".to_owned())?;
        let base = self.next.fetch_add(bytes + 3 * 4096, Ordering::Relaxed);
        self.pinned.lock().unwrap().push(Region { base, bytes });
        Ok(base)
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        let mut pinned = self.pinned.lock().unwrap();
        let at = pinned
            .iter()
            .position(|it| *it == region)
            .ok_or("never pinned")?;
        pinned.swap_remove(at);
        if region.base >= SET_ASIDE {
            self.set_aside.fetch_add(region.bytes, Ordering::Relaxed);
            return Ok(Source::SetAside);
        }
        Ok(Source::Ordinary)
    }

    fn reap(&self) {
        let completed = std::mem::take(&mut *self.completed.lock().unwrap());
        for (handle, block) in completed {
            handle.release(block);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.free.load(Ordering::Relaxed)
    }

    fn budget(&self, max_mb: Option<usize>) -> Budget {
        let bytes = max_mb.map_or(self.budget, |mb| mb * MIB);
        let why = "as the test has it".to_owned();
        Budget { bytes, why }
    }
}

/// Where what was set aside lies: no test pins so much that other regions come to lie there.
const SET_ASIDE: usize = 1 << 56;
const SEGMENT: usize = 64 * MIB;
const NONE: [usize; 0] = [];

/// A handle with segments of 64 MiB, as `variables` ask besides. Leaked, as the process's one is.
fn with(variables: &[(&str, &str)]) -> Tested {
    let defaults = [("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_BLOCK_COUNT", "4")];
    let (config, warnings) = read(&[variables, &defaults].concat());
    assert!(warnings.is_empty(), "{warnings:?}");
    Box::leak(Box::new(Handle::new(config, Numbers::new(1 << 50))))
}

fn sync(count: usize) -> Tested {
    with(&[
        ("BUDDY_WARMUP", "sync"),
        ("BUDDY_BLOCK_COUNT", &count.to_string()),
    ])
}

fn off() -> Tested {
    with(&[("BUDDY_WARMUP", "off")])
}

/// What is pinned, in MiB, in no order.
fn pinned(handle: Tested) -> Vec<usize> {
    let pinned = handle.backing.pinned.lock().unwrap();
    pinned.iter().map(|it| it.bytes / MIB).collect()
}

/// What was asked for so far, in MiB.
fn asked(handle: Tested) -> Vec<usize> {
    let asked = handle.backing.asked.lock().unwrap();
    asked.iter().map(|(bytes, _)| bytes / MIB).collect()
}

fn is_retired(handle: Tested) -> bool {
    handle.report()["state"] == "retired"
}
