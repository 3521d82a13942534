//! Memory that a program has already, pinned where it is.
//!
//! `areas` says whose pages it lies in, `fill` brings them in. A pin is one registration, and no two pins have a page in common:
//! so none changes what another has registered, and no copy crosses a border. Knows storages and streams by numbers only.
//! Invariants: a pin is there as a whole or not at all; nothing is unregistered while work that uses it is outstanding; no call
//! of the driver or the kernel under a lock (I5): threads that want the same pages wait for the one that has them in hand; a
//! child never registers, unregisters or locks.

mod areas;
mod fill;
mod pins;
#[cfg(feature = "torch")]
pub(crate) mod process;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::{Region, Stats};
use serde_json::{Value, json};

use crate::lock::{self, Guard, Lock};
use crate::log::{self, Bytes};
use crate::sync::{Condvar, thread};
use areas::{Pages, Place};
use pins::{Pin, Pins, Reserved, Taken};

/// A thread that waits for another looks again after this time, in case it missed the end.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often streams are asked whether they are done.
const ASK_AGAIN: Duration = Duration::from_micros(200);
/// How long the end of the process waits for pins and streams.
const LAST: Duration = Duration::from_secs(10);
/// How long a storage that goes waits for streams, and each one after the first that waited in vain. Later its memory stays as it
/// is: a hung stream ends no program.
const PATIENCE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(1)];

/// What a pin is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Nobody writes there.
    pub read_only: bool,
    /// Other processes may have the memory, PyTorch says.
    pub shared: bool,
    /// How many processes pin the same memory: each counts its part.
    pub processes: usize,
}

/// CUDA, the budget, storages and their streams. Never called under a lock. Errors are for people.
pub trait World: Send + Sync {
    /// Something is about to be pinned: a child that is made from now on has no engine.
    fn begins(&self) -> Result<(), String>;
    /// The memory of a storage.
    fn memory(&self, storage: usize, shared: bool) -> Result<Region, String>;
    /// The last pin of a storage's memory, which may have ended; 0 if it had none.
    fn pin_of(&self, storage: usize) -> Result<u64, String>;
    /// From now on [`InPlace::dies`] is called before the storage's memory goes.
    fn watch(&self, storage: usize, pin: u64, memory: Region, pages: Region) -> Result<(), String>;
    /// Takes so many bytes from the budget; so many of the pin's are not there yet.
    fn take(&self, counted: usize, missing: usize) -> Result<(), String>;
    /// Puts back what was taken.
    fn put(&self, counted: usize);
    /// How many threads bring pages in.
    fn threads(&self) -> usize;
    /// Registers whole pages with CUDA; with `read_only` devices may not write there, where the driver knows such memory.
    fn register(&self, pages: Region, read_only: bool) -> Result<(), String>;
    /// Undoes it.
    fn unregister(&self, pages: Region) -> Result<(), String>;
    /// Whether the streams are done with pages.
    fn is_done(&self, pages: Region) -> Result<bool, String>;
    /// Nobody asks for these pages' streams any more.
    fn forget(&self, pages: Region);
}

/// See the module's documentation.
#[derive(Debug)]
pub struct InPlace<W> {
    world: W,
    state: Lock<Pins>,
    changed: Condvar,
    closed: AtomicBool,
    child: AtomicBool,
    /// A storage that went has waited in vain.
    impatient: AtomicBool,
}

impl<W: World> InPlace<W> {
    /// Nothing pinned.
    pub fn new(world: W) -> Self {
        Self {
            world,
            state: Lock::default(),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            child: AtomicBool::new(false),
            impatient: AtomicBool::new(false),
        }
    }

    /// Pins the memory of a storage, once more if it is pinned. Returns the pin's number. The error is for people.
    pub fn pin(&self, storage: usize, asked: Asked) -> Result<u64, String> {
        lock::assert_none_held("pinning in place");
        if self.is_in_child() {
            return Err(CHILD.to_owned());
        }
        self.world.begins()?;
        let memory = self.world.memory(storage, asked.shared)?;
        let place = areas::of(memory)?;
        let read_only = asked.read_only || !place.writable;
        let copies = !place.shared && !read_only;
        let asked = Asked { read_only, ..asked };
        let pin = match self.reserve(storage, &place, asked)? {
            Reserved::Again(pin) => return Ok(pin),
            Reserved::New(pin) => pin,
        };
        let outcome = self.make(storage, &pin, memory, (&place, copies));
        self.state.lock().made(&pin, outcome.is_ok());
        self.changed.notify_all();
        outcome?;
        let (size, at) = (Bytes(memory.bytes as u64), memory.base);
        log::debug(|| format!("pinned {size} in place at {at:#x}"));
        Ok(pin.number)
    }

    /// Takes one `pin` of a storage back, and unpins with the last, once the streams that use it are done.
    pub fn unpin_storage(&self, storage: usize) -> Result<(), String> {
        if self.is_in_child() {
            return Err(CHILD.to_owned());
        }
        let pin = self.world.pin_of(storage)?;
        if self.unpin(pin)? {
            return Ok(());
        }
        Err(
            "found no pin of its storage, expected one by pin_: each pin_ is taken back once"
                .to_owned(),
        )
    }

    /// The same by the pin's number; false if it has ended.
    pub fn unpin(&self, pin: u64) -> Result<bool, String> {
        lock::assert_none_held("unpinning in place");
        if self.is_in_child() {
            return Ok(false);
        }
        match self.take_in_hand(pin, None, true)? {
            Taken::Gone => Ok(false),
            Taken::Kept => Ok(true),
            Taken::Last(pin) => self.end(&pin, None).map(|()| true),
        }
    }

    /// The memory of a pinned storage is about to be given back. False: it must not be, since it is still pinned or in use.
    pub fn dies(&self, pin: u64) -> bool {
        if self.is_in_child() {
            return true;
        }
        let closed = self.closed.load(Ordering::Relaxed);
        let patience = if closed {
            Duration::ZERO
        } else {
            PATIENCE[usize::from(self.impatient.load(Ordering::Relaxed))]
        };
        let until = Instant::now() + patience;
        let ended = self.end_whole(pin, until);
        if let Err(why) = &ended
            && !closed
        {
            self.impatient
                .fetch_or(is_over(Some(until)), Ordering::Relaxed);
            log::warn(|| {
                format!(
                    "memory that was pinned in place stays pinned, and is not given back until the process ends: {why}"
                )
            });
        }
        ended.is_ok()
    }

    /// The process is about to end: no pin begins, those under way stop, and what is pinned is unregistered, unless streams
    /// that use it are not done in time.
    pub fn close(&self) {
        if self.is_in_child() || self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let until = Instant::now() + LAST;
        let pins = self.state.lock().numbers();
        for pin in pins {
            // What cannot be unregistered now is the driver's to unregister.
            let _ = self.end_whole(pin, until);
        }
    }

    /// Called in a child after a fork: the pins are the parent's. May not wait.
    pub fn enter_child(&self) {
        self.child.store(true, Ordering::Relaxed);
    }

    /// What is pinned in place, in the engine's terms.
    pub fn stats(&self) -> Stats {
        self.with_state(|state| {
            let mut stats = state.stats;
            stats.active_bytes = stats.pinned_bytes;
            stats
        })
        .unwrap_or_default()
    }

    /// The current values become the peaks.
    pub fn reset_peaks(&self) {
        self.with_state(|it| it.stats.reset_peaks());
    }

    /// Sums start again.
    pub fn reset_accumulated(&self) {
        self.with_state(|it| it.stats.reset_accumulated());
    }

    /// How many pins there are, and the bytes of their pages; `null` in a child.
    pub fn report(&self) -> Value {
        let report = |state: &mut Pins| {
            let stats = state.stats;
            json!({ "pins": stats.segments.current, "bytes": stats.pinned_bytes.current })
        };
        self.with_state(report).unwrap_or(Value::Null)
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut Pins) -> T) -> Option<T> {
        (!self.is_in_child()).then(|| act(&mut self.state.lock()))
    }

    fn is_in_child(&self) -> bool {
        self.child.load(Ordering::Relaxed)
    }

    /// Notes that this thread makes a pin of these pages, unless the storage has one, which counts once more.
    fn reserve(&self, storage: usize, place: &Place, asked: Asked) -> Result<Reserved, String> {
        loop {
            // Asked without a lock: what it says of a pin that ends meanwhile is seen below.
            let known = self.world.pin_of(storage)?;
            let mut state = self.state.lock();
            if self.closed.load(Ordering::Relaxed) {
                return Err("the process ends".to_owned());
            }
            let Some(found) = state.sharing(&place.pages) else {
                return Ok(Reserved::New(state.reserve(place, asked)));
            };
            if found.in_hand {
                drop(Guard::wait_until(
                    state,
                    &self.changed,
                    Instant::now() + LOOK_AGAIN,
                ));
                continue;
            }
            let Pages { start, end } = found.pages.clone();
            if found.number != known {
                let number = found.number;
                drop(state);
                if self.world.pin_of(storage)? == number {
                    continue;
                }
                return Err(format!(
                    "found that another storage's pin has pages of it, {start:#x} to {end:#x}, expected pages that nobody has pinned: \
                     unpin_ that one first"
                ));
            }
            if found.read_only && !asked.read_only {
                return Err("found it pinned read-only, expected a pin to write to: unpin_ it first, or pass read_only=True".to_owned());
            }
            found.times += 1;
            return Ok(Reserved::Again(found.number));
        }
    }

    /// All of it or nothing.
    fn make(
        &self,
        storage: usize,
        pin: &Pin,
        memory: Region,
        (place, copies): (&Place, bool),
    ) -> Result<(), String> {
        let pages = region(&pin.pages);
        let goes_on = || !self.closed.load(Ordering::Relaxed);
        self.world.take(pin.counted, fill::missing(place, copies))?;
        let made = fill::fill(place, copies, self.world.threads(), &goes_on)
            // Before it counts as pinned: from then on copies may run.
            .and_then(|()| self.world.watch(storage, pin.number, memory, pages))
            .and_then(|()| self.world.register(pages, pin.read_only));
        made.inspect_err(|_| {
            self.world.forget(pages);
            self.world.put(pin.counted);
        })
    }

    /// Ends a pin that is in hand, once the streams are done. An error, for people, says that it is as before, also once `until`
    /// is over.
    fn end(&self, pin: &Pin, until: Option<Instant>) -> Result<(), String> {
        let pages = region(&pin.pages);
        let ended = self
            .wait_for_streams(pages, until)
            .and_then(|()| self.world.unregister(pages));
        if ended.is_ok() {
            self.world.forget(pages);
            self.world.put(pin.counted);
        }
        self.state.lock().ended(pin, ended.is_ok());
        self.changed.notify_all();
        ended
    }

    fn end_whole(&self, pin: u64, until: Instant) -> Result<(), String> {
        match self.take_in_hand(pin, Some(until), false)? {
            Taken::Last(pin) => self.end(&pin, Some(until)),
            Taken::Kept | Taken::Gone => Ok(()),
        }
    }

    /// The pin, for this thread to end; with `once` only if it was asked for once, and otherwise it counts once less.
    fn take_in_hand(&self, pin: u64, until: Option<Instant>, once: bool) -> Result<Taken, String> {
        let mut state = self.state.lock();
        loop {
            if let Some(taken) = state.take_in_hand(pin, once) {
                return Ok(taken);
            }
            if is_over(until) {
                return Err("another thread still pins or unpins it".to_owned());
            }
            let again = Guard::wait_until(state, &self.changed, Instant::now() + LOOK_AGAIN);
            state = again.unwrap_or_else(|| self.state.lock());
        }
    }

    fn wait_for_streams(&self, pages: Region, until: Option<Instant>) -> Result<(), String> {
        while !self.world.is_done(pages)? {
            if is_over(until) {
                return Err("a stream that uses it is not done".to_owned());
            }
            thread::sleep(ASK_AGAIN);
        }
        Ok(())
    }
}

const CHILD: &str = "found a child of a fork, expected the process that pins: CUDA does not work here, and pins are the parent's";

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|it| Instant::now() >= it)
}

fn region(pages: &Pages) -> Region {
    Region {
        base: pages.start,
        bytes: pages.len(),
    }
}

#[cfg(test)]
mod tests;
