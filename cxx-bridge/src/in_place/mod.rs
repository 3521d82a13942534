//! Memory that a program has already, pinned where it is.
//!
//! `runs` decides which pages are registered, `areas` says what they are, `fill` brings them in. Knows no storage and no stream:
//! who asked for a pin is told its number, and says when it ends. Invariants: a pin is there as a whole or not at all; nothing
//! is unregistered while work that uses it is outstanding; no call of the driver or the kernel under a lock (I5): two calls that
//! reach the same pages take turns instead; a child never registers, unregisters or locks.

mod areas;
mod fill;
#[cfg(feature = "torch")]
pub(crate) mod process;
mod runs;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pinbuddy_core::{Region, Stats};
use pinbuddy_machine::Files;
use serde_json::{Value, json};

use crate::launcher;
use crate::lock::{self, Guard, Lock};
use crate::log::{self, Bytes};
use crate::sync::Condvar;
use areas::Areas;
use fill::{Unfilled, fill};
use runs::{How, Pages, Runs};

const PAGE: usize = 4096;
/// A thread that waits for its turn looks again after this time, in case it missed one.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long the end of the process waits for pins under way.
const LAST: Duration = Duration::from_secs(10);

/// CUDA, the budget and the streams. Never called under a lock. Errors are for people.
pub trait World: Send + Sync {
    /// Takes so many bytes from the budget.
    fn take(&self, bytes: usize) -> Result<(), String>;
    /// Puts them back.
    fn put(&self, bytes: usize);
    /// How many threads bring pages in.
    fn threads(&self) -> usize;
    /// Registers whole pages with CUDA; with `read_only` devices may not write there, where the driver knows such memory.
    fn register(&self, pages: Region, read_only: bool) -> Result<(), String>;
    /// Undoes it.
    fn unregister(&self, pages: Region) -> Result<(), String>;
    /// Whether one copy may cross this border of two registrations.
    fn crosses(&self, border: usize) -> Result<(), String>;
    /// Waits until the streams are done with these pins.
    fn wait(&self, pins: &[u64]);
}

/// See the module's documentation.
#[derive(Debug)]
pub struct InPlace<W> {
    world: W,
    /// The most that one registration covers; 0: no limit.
    chunk: usize,
    state: Lock<State>,
    changed: Condvar,
    closed: AtomicBool,
    child: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    runs: Runs,
    /// Pages that a thread is changing.
    busy: Vec<Pages>,
    stats: Stats,
}

/// A thread's turn with some pages; dropping it ends it.
#[derive(Debug)]
struct Turn<'a, W> {
    of: &'a InPlace<W>,
    pages: Pages,
}

impl<W> Drop for Turn<'_, W> {
    fn drop(&mut self) {
        self.of.state.lock().busy.retain(|it| *it != self.pages);
        self.of.changed.notify_all();
    }
}

impl<W: World> InPlace<W> {
    /// Nothing pinned; `chunk` bytes are registered at once, all if it is 0.
    pub fn new(world: W, chunk: usize) -> Self {
        Self {
            world,
            chunk,
            state: Lock::default(),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            child: AtomicBool::new(false),
        }
    }

    /// Pins the pages of `memory`, all of them or none, and returns the pin's number. With `read_only` the caller promises that
    /// nobody writes there. The error is for people.
    pub fn pin(&self, memory: Region, read_only: bool) -> Result<u64, String> {
        lock::assert_none_held("pinning in place");
        if self.is_in_child() {
            return Err(
                "found a child of a fork, expected a process of its own: CUDA does not work here"
                    .to_owned(),
            );
        }
        let pages = memory.base / PAGE * PAGE..(memory.base + memory.bytes).next_multiple_of(PAGE);
        let areas = Areas::read(&Files::below(Path::new("/")), &pages)?;
        let processes = launcher::processes().map_or(1, |(count, _)| count);
        let how = How {
            read_only: read_only || !areas.writable,
            processes: if areas.shared { processes } else { 1 },
        };
        let turn = self.turn(&pages).ok_or("the process ends")?;
        let gaps = {
            let state = self.state.lock();
            let reading = |(_, run): &(Pages, How)| run.read_only && !how.read_only;
            if let Some((run, _)) = state.runs.touching(&pages).find(reading) {
                return Err(format!(
                    "{:#x} to {:#x} of it are pinned read-only already: unpin_ that first, or pass read_only=True here, too",
                    run.start, run.end
                ));
            }
            self.pieces(state.runs.gaps(&pages), how)
        };
        self.register_all(&gaps, areas)?;
        if let Err(why) = self.check_borders(&pages, &gaps) {
            self.unregister_all(&gaps);
            return Err(why);
        }
        let mut state = self.state.lock();
        let pin = state.runs.add(pages, &gaps);
        state.count(&gaps, 1);
        state.stats.active_blocks.add(1);
        drop((state, turn));
        log::debug(|| {
            format!(
                "pinned {} in place at {:#x}",
                Bytes(memory.bytes as u64),
                memory.base
            )
        });
        Ok(pin)
    }

    /// Ends a pin, once the streams that use it are done: unregisters what no other pin has. A second call does nothing.
    pub fn unpin(&self, pin: u64) {
        lock::assert_none_held("unpinning in place");
        if self.is_in_child() {
            return;
        }
        let Some(pages) = self.state.lock().runs.pages_of(pin) else {
            return;
        };
        self.world.wait(&[pin]);
        let Some(_turn) = self.turn(&pages) else {
            return;
        };
        let trim = {
            let mut state = self.state.lock();
            let Some(trim) = state.runs.end(pin) else {
                return;
            };
            state.stats.active_blocks.remove(1);
            state.count(&trim.register, 1);
            state.count(&trim.unregister, -1);
            trim
        };
        self.world.wait(&trim.others);
        self.unregister_all(&trim.unregister);
        for part in &trim.register {
            if let Err(why) = self.register(part) {
                log::warn(|| {
                    let Range { start, end } = part.0;
                    format!(
                        "{start:#x} to {end:#x} are not pinned in place any more, beside memory that was unpinned: {why}"
                    )
                });
                let mut state = self.state.lock();
                state.runs.lose(&part.0);
                state.count(std::slice::from_ref(part), -1);
            }
        }
    }

    /// The process is about to end: no pin begins, those under way stop, and what is pinned is unregistered.
    pub fn close(&self) {
        if self.is_in_child() || self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        let until = Instant::now() + LAST;
        let mut state = Some(self.state.lock());
        while let Some(it) = state.take_if(|it| !it.busy.is_empty() && Instant::now() < until) {
            state = it.wait_until(&self.changed, Instant::now() + LOOK_AGAIN);
        }
        let Some(mut state) = state else { return };
        let (runs, pins) = state.runs.take_all();
        drop(state);
        self.world.wait(&pins);
        for (run, _) in runs {
            // Where the driver is gone already, so are its registrations.
            let _ = self.world.unregister(region(&run));
        }
    }

    /// Called in a child after a fork: the pins are the parent's. May not wait.
    pub fn enter_child(&self) {
        self.child.store(true, Ordering::Relaxed);
    }

    /// Whether this is a child of the process that pinned.
    pub fn is_in_child(&self) -> bool {
        self.child.load(Ordering::Relaxed)
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
        let report = |state: &mut State| json!({ "pins": state.runs.count(), "bytes": state.stats.pinned_bytes.current });
        self.with_state(report).unwrap_or(Value::Null)
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        (!self.is_in_child()).then(|| act(&mut self.state.lock()))
    }

    /// Waits until no other thread changes these pages or what is registered with them; `None` once the process ends.
    fn turn(&self, pages: &Pages) -> Option<Turn<'_, W>> {
        let mut state = self.state.lock();
        loop {
            if self.closed.load(Ordering::Relaxed) {
                return None;
            }
            let reach = state.runs.reach(pages);
            if state
                .busy
                .iter()
                .all(|it| it.end <= reach.start || reach.end <= it.start)
            {
                state.busy.push(reach.clone());
                return Some(Turn {
                    of: self,
                    pages: reach,
                });
            }
            state = Guard::wait_until(state, &self.changed, Instant::now() + LOOK_AGAIN)?;
        }
    }

    fn pieces(&self, gaps: Vec<Pages>, how: How) -> Vec<(Pages, How)> {
        let cut = |gap: Pages| {
            let length = if self.chunk == 0 {
                gap.len()
            } else {
                self.chunk
            };
            let piece = move |from: usize| (from..gap.end.min(from + length), how);
            gap.clone().step_by(length).map(piece).collect::<Vec<_>>()
        };
        gaps.into_iter().flat_map(cut).collect()
    }

    /// All of them or none, counted in the budget.
    fn register_all(&self, runs: &[(Pages, How)], areas: Areas) -> Result<(), String> {
        let goes_on = || !self.closed.load(Ordering::Relaxed);
        let mut done = 0;
        let registered = runs.iter().try_for_each(|run| {
            let (pages, how) = run;
            let to_write = !areas.shared && !how.read_only;
            self.world.take(how.counted(pages.len()))?;
            let registered = match fill(
                pages,
                (areas.anonymous, to_write),
                self.world.threads(),
                &goes_on,
            ) {
                Ok(()) => self.world.register(region(pages), how.read_only),
                Err(Unfilled::Stopped) => Err("the process ends".to_owned()),
                Err(Unfilled::Failed(why)) => Err(why),
            };
            match registered {
                Ok(()) => done += 1,
                Err(_) => self.world.put(how.counted(pages.len())),
            }
            registered
        });
        registered.inspect_err(|_| self.unregister_all(&runs[..done]))
    }

    fn register(&self, (pages, how): &(Pages, How)) -> Result<(), String> {
        self.world.take(how.counted(pages.len()))?;
        let registered = self.world.register(region(pages), how.read_only);
        registered.inspect_err(|_| self.world.put(how.counted(pages.len())))
    }

    /// Whether copies may cross where new runs meet others.
    fn check_borders(&self, pages: &Pages, new: &[(Pages, How)]) -> Result<(), String> {
        let inside = |it: &usize| pages.start < *it && *it < pages.end;
        let mut borders: Vec<usize> = new
            .iter()
            .flat_map(|(it, _)| [it.start, it.end])
            .filter(inside)
            .collect();
        borders.dedup();
        borders.into_iter().try_for_each(|it| {
            self.world.crosses(it).map_err(|why| {
                format!(
                    "at {it:#x} it meets memory that is pinned in place already, and the driver does not copy across: {why}. Pin both \
                     as one tensor, or unpin_ the other first"
                )
            })
        })
    }

    fn unregister_all(&self, runs: &[(Pages, How)]) {
        for (pages, how) in runs {
            match self.world.unregister(region(pages)) {
                Ok(()) => self.world.put(how.counted(pages.len())),
                Err(why) => log::warn(|| {
                    let bytes = Bytes(pages.len() as u64);
                    format!(
                        "could not unregister {bytes} at {:#x}, which were pinned in place: {why}",
                        pages.start
                    )
                }),
            }
        }
    }
}

impl State {
    fn count(&mut self, runs: &[(Pages, How)], sign: i8) {
        for (pages, _) in runs {
            let (bytes, segments) = (&mut self.stats.pinned_bytes, &mut self.stats.segments);
            if sign > 0 {
                bytes.add(pages.len() as u64);
                segments.add(1);
            } else {
                bytes.remove(pages.len() as u64);
                segments.remove(1);
            }
        }
    }
}

fn region(pages: &Pages) -> Region {
    Region {
        base: pages.start,
        bytes: pages.len(),
    }
}

#[cfg(test)]
mod tests;
