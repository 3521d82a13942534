//! Memory that a program has already, pinned where it is.
//!
//! A pin is one registration, since no copy may cross two (D42): `places` says whether its pages are its own, `fill` brings them
//! in, slice by slice, so that a pin can be stopped. Before memory is unregistered every device is synchronised, whatever used
//! it. Knows storages by their addresses only, and asks a `World` of them and of the driver.
//!
//! Invariants: a pin is there as a whole or not at all; no memory is given back while it is registered; no call of the driver
//! or the kernel under the lock (I5): a pin is in one thread's hand meanwhile; a child of a fork never registers, unregisters or
//! locks.
#![cfg_attr(not(feature = "torch"), allow(dead_code))]

mod fill;
mod places;
#[cfg(test)]
mod tests;
mod world;

use std::collections::BTreeMap;
use std::process::id;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::Stats;

use crate::lock::{Guard, Lock};
use crate::log;
use crate::sync::Condvar;
use places::Place;
pub(crate) use world::World;

/// Bytes that one step brings in; fewer in this crate's tests.
const STEP: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// A thread that waits for another looks again after this time, in case it missed the end.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long the end of the process waits for driver calls under way.
const LAST: Duration = Duration::from_secs(10);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct InPlace<W> {
    world: W,
    state: Lock<State>,
    changed: Condvar,
    /// The process that has pinned; 0: none.
    process: AtomicU32,
    closed: AtomicBool,
    has_warned: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    pins: BTreeMap<u64, Pin>,
    newest: u64,
    stats: Stats,
}

#[derive(Debug)]
struct Pin {
    place: Place,
    counted: usize,
    /// Up to here its pages are there.
    filled: usize,
    registered: bool,
    /// How often it was asked for; 0 once it is registered: it ends as soon as nothing is captured.
    times: usize,
    /// A thread calls the driver or the kernel for it.
    in_hand: bool,
    /// Whom to give the memory back to when it ends; 0 while the storage lives.
    owner: usize,
}

impl<W: World> InPlace<W> {
    /// Begins to pin the memory of a storage, or counts its pin once more. Returns the pin's number, for [`Self::step`]. `asked`
    /// as for `pinbuddy_pin`. The error is for people, here and below.
    pub(crate) fn begin(&self, storage: usize, asked: usize) -> Result<u64, String> {
        self.enter()?;
        self.world.begin()?;
        self.process.store(id(), Ordering::Relaxed);
        let mut known = 0;
        let memory = self.world.memory_of(storage, asked & 1 != 0, &mut known)?;
        if let Some(pin) = self.at_rest(known).pins.get_mut(&known) {
            // One whose end was put off goes on.
            pin.times += usize::from(pin.registered);
            return pin.registered.then_some(known).ok_or(BUSY.to_owned());
        }
        self.end_what_waits();
        if asked & 2 != 0 {
            return Err(ALREADY.to_owned());
        }
        let place = places::of(memory.clone())?;
        // A file's pages count as available even while they are pinned, of which half may be.
        let bytes = place.pages.len() * if place.cached { 2 } else { 1 };
        let counted = bytes.div_ceil((asked / 4).max(1));
        let number = self.state.lock().insert(place, counted)?;
        let held = self.world.hold(storage, number, memory.start);
        held.and_then(|()| self.world.take(counted)).inspect_err(|_| {
            self.state.lock().pins.remove(&number);
        })?;
        // Only now may it end.
        if let Some(pin) = self.state.lock().pins.get_mut(&number) {
            pin.in_hand = false;
        }
        Ok(number)
    }

    /// Goes on with a pin. False once it is made; after an error there is none.
    pub(crate) fn step(&self, number: u64) -> Result<bool, String> {
        let (place, filled) = {
            let mut state = self.state.lock();
            let pin = state.pins.get_mut(&number).filter(|it| !it.in_hand);
            let pin = pin.ok_or("found that its memory was replaced meanwhile")?;
            if pin.registered {
                return Ok(false);
            }
            self.enter()?;
            pin.in_hand = true;
            (pin.place.clone(), pin.filled)
        };
        let end = place.pages.end;
        let until = end.min(filled + STEP);
        let outcome = if filled < end {
            fill::fill(&place, filled..until, self.world.threads())
        } else {
            let registered = self.world.register(&place.pages, !place.writable);
            registered.map_err(|said| place.refused(said))
        };
        let mut state = self.state.lock();
        if let Some(pin) = state.pins.get_mut(&number) {
            (pin.in_hand, pin.filled) = (false, until);
            (pin.registered, pin.times) = (filled == end, usize::from(filled == end));
        }
        if outcome.is_err() {
            let refused = state.pins.remove(&number);
            drop(state);
            refused.inspect(|it| self.world.put(it.counted));
        } else if filled == end {
            state.stats.segments.add(1);
            state.stats.pinned_bytes.add(place.pages.len() as u64);
        }
        self.changed.notify_all();
        outcome.map(|()| filled < end)
    }

    /// Takes one pin back, made or not: that with this number, or if it is 0 one of the storage's.
    pub(crate) fn unpin(&self, storage: usize, mut number: u64) -> Result<(), String> {
        self.enter()?;
        self.end_what_waits();
        let by_number = number != 0;
        if !by_number {
            self.world.memory_of(storage, false, &mut number)?;
        }
        let mut state = self.at_rest(number);
        match state.pins.get_mut(&number) {
            Some(pin) if pin.times > 1 => pin.times -= 1,
            Some(pin) if pin.times == 1 || !pin.registered => drop(self.end(state, number, 0)?),
            _ if by_number => {}
            _ => {
                return Err("found no pin of its storage, expected one by pin_, which is taken back once".to_owned());
            }
        }
        Ok(())
    }

    /// Whether the memory of a storage with this pin may be given back now. If not, `owner` is let go when the pin has ended.
    pub(crate) fn dies(&self, number: u64, owner: usize) -> bool {
        if self.is_child() {
            return true;
        }
        // A thread may hang that has it in hand.
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let state = self.at_rest(number);
        if !state.pins.contains_key(&number) {
            return true;
        }
        self.end(state, number, owner).unwrap_or_else(|why| {
            if !self.has_warned.swap(true, Ordering::Relaxed) {
                log::warn(|| format!("memory that was pinned in place stays pinned, and is not given back: {why}"));
            }
            false
        })
    }

    /// Ends what a capture has put off.
    pub(crate) fn end_what_waits(&self) {
        let mut last = 0;
        while self.enter().is_ok() {
            let state = self.state.lock();
            let mut newer = state.pins.range(last + 1..);
            let Some((number, _)) = newer.find(|(_, it)| it.registered && it.times == 0 && !it.in_hand) else {
                return;
            };
            last = *number;
            // What is wrong was said when it was to end.
            let _ = self.end(state, last, 0);
        }
    }

    /// The process is about to end: from now on nothing is registered, unregistered or given back, which the system does.
    pub(crate) fn close(&self) {
        if !self.has_begun() {
            return;
        }
        let until = Instant::now() + LAST;
        let mut state = self.state.lock();
        // Under the lock: whoever takes a pin in hand looks at it there.
        self.closed.store(true, Ordering::Relaxed);
        while Instant::now() < until && state.pins.values().any(|it| it.in_hand) {
            let woken = state.wait_until(&self.changed, Instant::now() + LOOK_AGAIN);
            state = woken.unwrap_or_else(|| self.state.lock());
        }
    }

    /// What is pinned in place, in the engine's terms, once `act` has changed it; nothing where nothing was pinned, as in a child.
    pub(crate) fn stats(&self, act: impl FnOnce(&mut Stats)) -> Stats {
        if !self.has_begun() {
            return Stats::default();
        }
        let mut state = self.state.lock();
        act(&mut state.stats);
        let mut stats = state.stats;
        (stats.active_blocks, stats.active_bytes) = (stats.segments, stats.pinned_bytes);
        stats
    }

    /// Whether this process has pinned: another one's child must not lock.
    fn has_begun(&self) -> bool {
        self.process.load(Ordering::Relaxed) == id()
    }

    fn is_child(&self) -> bool {
        let process = self.process.load(Ordering::Relaxed);
        process != 0 && process != id()
    }

    fn enter(&self) -> Result<(), String> {
        if self.is_child() {
            return Err("found a child of a fork, expected the process that pins: pins are the parent's".to_owned());
        }
        if self.closed.load(Ordering::Relaxed) {
            return Err("the process ends".to_owned());
        }
        Ok(())
    }

    /// The state once no thread has this pin in hand.
    fn at_rest(&self, number: u64) -> Guard<'_, State> {
        let mut state = self.state.lock();
        while state.pins.get(&number).is_some_and(|it| it.in_hand) {
            let woken = state.wait_until(&self.changed, Instant::now() + LOOK_AGAIN);
            state = woken.unwrap_or_else(|| self.state.lock());
        }
        state
    }

    /// Ends a pin, once all work is over: false where something is captured, which leaves it for later. An error says that it is
    /// as before. In both cases `owner` is let go later, unless it is 0.
    fn end(&self, mut state: Guard<'_, State>, number: u64, owner: usize) -> Result<bool, String> {
        let pin = state.pins.get_mut(&number).ok_or("found no pin")?;
        if self.closed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        pin.in_hand = true;
        let (registered, pages) = (pin.registered, pin.place.pages.clone());
        drop(state);
        let mut ended = if registered { self.world.finish_devices() } else { Ok(true) };
        if registered && ended == Ok(true) {
            ended = self.world.unregister(&pages).map(|()| true);
        }
        let mut state = self.state.lock();
        let mut gone = None;
        if ended == Ok(true) {
            gone = state.pins.remove(&number);
            if registered {
                state.stats.segments.remove(1);
                state.stats.pinned_bytes.remove(pages.len() as u64);
            }
        } else if let Some(pin) = state.pins.get_mut(&number) {
            pin.in_hand = false;
            pin.owner = pin.owner.max(owner);
            if ended.is_ok() || owner != 0 {
                pin.times = 0;
            }
        }
        drop(state);
        self.changed.notify_all();
        if let Some(pin) = gone {
            self.world.put(pin.counted);
            if pin.owner != 0 {
                self.world.let_go(pin.owner);
            }
        }
        ended
    }
}

impl State {
    fn insert(&mut self, place: Place, counted: usize) -> Result<u64, String> {
        let pages = &place.pages;
        let shares = |it: &&Pin| it.place.pages.start < pages.end && pages.start < it.place.pages.end;
        if let Some(pin) = self.pins.values().find(shares) {
            return Err(if pin.registered { ALREADY } else { BUSY }.to_owned());
        }
        self.newest += 1;
        let pin =
            Pin { filled: place.pages.start, place, counted, registered: false, times: 0, in_hand: true, owner: 0 };
        self.pins.insert(self.newest, pin);
        Ok(self.newest)
    }
}

const ALREADY: &str = "found that it is already pinned, by the allocator, by pin_ of another storage or by another library, expected \
                       pages that nobody has pinned";
const BUSY: &str = "found that another thread is pinning its pages now, expected one at a time";
