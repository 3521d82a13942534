//! The recorder's thread, and how sinks come and go.
//!
//! Knows neither files nor C++. Invariants: sinks are called by the recorder's thread alone, with no lock held; a
//! sink hears of no block that was requested before it was added; what happened before a stop is recorded by it. In a
//! child of a process that had begun to record, nothing here is locked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::clock::Moment;
use super::merge::{BEHIND, Merger};
use super::sink::Sink;
use super::source::Source;
use super::takers::Takers;
use crate::lock::Lock;
use crate::log;
use crate::plan::planner::LAST_OF_ALL;
use crate::sync::{self, AtomicBool, Condvar, thread};

/// Rings are drained at least so often, since a crash loses what they hold, and not more often than this, since each time
/// wakes a processor. In between, as often as the fullest gets as many entries as this, an eighth of what it holds.
const SELDOM: Duration = Duration::from_millis(20);
const OFTEN: Duration = Duration::from_millis(1);
const ENTRIES: u32 = 1 << 12;

/// How long a caller waits for the thread to write what it has.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same at the end of the process, where a plan may have to be made, tried and written.
const LAST: Duration = LAST_OF_ALL.saturating_add(PATIENCE);

enum Task {
    Add(Vec<Box<dyn Sink>>),
    /// Ends traces.
    Stop,
    /// Ends all.
    Close,
}

#[derive(Default)]
struct State {
    /// The settings' sinks were made.
    begun: bool,
    /// There is a thread.
    running: bool,
    /// A trace is being recorded.
    tracing: bool,
    /// Somebody is about to start one.
    starting: bool,
    session: u16,
    tasks: Vec<Task>,
    /// Tasks that were given so far, and that are done.
    given: u64,
    done: u64,
}

/// See the module's documentation.
pub struct Recorder<S> {
    source: S,
    state: Lock<State>,
    changed: Condvar,
    /// A child of a process that had begun.
    child: AtomicBool,
}

impl<S: Source> Recorder<S> {
    /// Records nothing yet.
    pub fn new(source: S) -> Self {
        Self { source, state: Lock::default(), changed: Condvar::new(), child: AtomicBool::new(false) }
    }

    /// Called at the first request, which is recorded as recording 1 if the settings ask for one, and before anything
    /// else is recorded: adds the sinks that `make` makes, the first time.
    pub fn begin(&'static self, make: impl FnOnce() -> Vec<Box<dyn Sink>>) {
        if self.is_child() {
            return;
        }
        let running = {
            let mut state = self.state.lock();
            if std::mem::replace(&mut state.begun, true) {
                return;
            }
            if !state.running {
                state.session = 1;
            }
            state.running
        };
        let sinks = make();
        if !sinks.is_empty() {
            let task = self.add(sinks, !running);
            if let Some(task) = task.filter(|_| running) {
                // They hear of the first request.
                self.wait_for(task, PATIENCE);
            }
        } else {
            let state = self.state.lock();
            // A recording may have begun meanwhile.
            if !state.running {
                self.source.record(0);
            }
        }
    }

    /// Adds a sink, which hears of everything from now on.
    pub fn also(&'static self, sink: Box<dyn Sink>) {
        if self.is_child() {
            return;
        }
        if let Some(task) = self.add(vec![sink], false) {
            self.wait_for(task, PATIENCE);
        }
    }

    /// Adds sinks, and starts the thread if there is none; `armed`: entries are written already. Returns the number of
    /// the task, or `None` if there can be no thread.
    fn add(&'static self, sinks: Vec<Box<dyn Sink>>, armed: bool) -> Option<u64> {
        let (start, task) = {
            let mut state = self.state.lock();
            state.tracing |= sinks.iter().any(|it| it.is_trace());
            state.tasks.push(Task::Add(sinks));
            state.given += 1;
            let start = !std::mem::replace(&mut state.running, true);
            if start && !armed {
                state.session = state.session.checked_add(1).unwrap_or(1);
            }
            (start.then_some(state.session), state.given)
        };
        self.changed.notify_all();
        if let Some(session) = start {
            // Here, and not once there is a thread: what happens meanwhile has a time, too.
            let since = Instant::now();
            let merger = Merger::new(session, self.now(since));
            let run = move || {
                let run = || self.run(session, armed, since, merger);
                let ran = catch_unwind(AssertUnwindSafe(run));
                if ran.is_err() {
                    self.broke();
                }
            };
            if let Err(why) = sync::start("pinbuddy-record", run) {
                log::warn(|| format!("nothing is recorded: there is no thread for it: {why}"));
                self.broke();
                return None;
            }
        }
        Some(task)
    }

    /// Starts to record into `sink`, in addition to what the settings ask for.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn start(&'static self, make: impl FnOnce() -> Result<Box<dyn Sink>, String>) -> Result<(), String> {
        if self.is_child() {
            return Err("this is a child of a process that records".to_owned());
        }
        {
            let mut state = self.state.lock();
            if state.tracing || std::mem::replace(&mut state.starting, true) {
                return Err("a trace is being recorded already; stop it first".to_owned());
            }
        }
        let started = make().map(|sink| {
            let task = self.add(vec![sink], false);
            task.is_some_and(|task| self.wait_for(task, PATIENCE)) && self.state.lock().running
        });
        self.state.lock().starting = false;
        match started {
            Ok(true) => Ok(()),
            Ok(false) => Err("there is no thread for it".to_owned()),
            Err(why) => Err(why),
        }
    }

    /// Ends what [`Self::start`] or the settings began to record into a file; true if there was anything and
    /// it is written.
    pub fn stop(&self) -> bool {
        if self.is_child() || !self.state.lock().tracing {
            return false;
        }
        self.give(Task::Stop).is_some_and(|task| self.wait_for(task, PATIENCE))
    }

    /// The process ends: writes what there is, unless that takes long.
    pub fn close(&self) {
        if self.is_child() {
            return;
        }
        let task = self.give(Task::Close);
        if task.is_some_and(|it| !self.wait_for(it, LAST)) {
            log::warn(|| format!("what was recorded was not written: the process ended after {LAST:?}"));
        }
    }

    /// Called in a child. If its parent had begun to record, the recording is the parent's.
    pub fn enter_child(&self) {
        let begun = self.state.if_free().is_none_or(|it| it.begun || it.running);
        if begun {
            self.child.store(true, Ordering::Relaxed);
            self.source.record(0);
        }
    }

    fn is_child(&self) -> bool {
        self.child.load(Ordering::Relaxed)
    }

    /// Gives the thread a task, if there is one.
    fn give(&self, task: Task) -> Option<u64> {
        let mut state = self.state.lock();
        if !state.running {
            return None;
        }
        state.tasks.push(task);
        state.given += 1;
        let given = state.given;
        drop(state);
        self.changed.notify_all();
        Some(given)
    }

    /// Waits until a task is done; false if it takes too long.
    fn wait_for(&self, task: u64, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut awake = Some(self.state.lock());
        while let Some(state) = awake {
            if state.done >= task {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            awake = state.wait_until(&self.changed, until);
        }
        false
    }

    /// There is no thread, or it panicked.
    fn broke(&self) {
        self.source.record(0);
        let mut state = self.state.lock();
        state.running = false;
        state.tracing = false;
        state.tasks.clear();
        state.done = state.given;
        drop(state);
        self.changed.notify_all();
    }

    /// The thread's work, until there is no sink left.
    fn run(&self, session: u16, armed: bool, since: Instant, mut merger: Merger) {
        let mut takers = Takers::default();
        if !armed {
            // What an earlier recording left.
            self.forget();
            self.source.record(session);
        }
        let mut every = SELDOM;
        loop {
            let (tasks, count) = self.next_tasks(every);
            let mut tasks = tasks.into_iter().peekable();
            if takers.is_empty()
                && let Some(Task::Add(sinks)) = tasks.next_if(|it| matches!(it, Task::Add(_)))
            {
                // They hear of everything.
                takers.add(sinks, 0);
            }
            if tasks.peek().is_some() {
                // What came before them is passed on by the drain that follows.
                thread::sleep(Duration::from_nanos(2 * BEHIND));
            }
            let most = merger.drain(&self.source, self.now(since), &mut takers);
            every = next_after(every, most);
            if most > 0 {
                takers.pause();
            }
            takers.end(|it| !it.wants_more());
            for task in tasks {
                match task {
                    Task::Add(sinks) => {
                        takers.add(sinks, merger.next_id());
                    }
                    Task::Stop => takers.end(|it| it.is_trace()),
                    Task::Close => takers.end(|_| true),
                }
            }
            if self.done(count, &takers) {
                return;
            }
        }
    }

    /// The tasks given by the end of `every`, or as soon as there are any; and how many that makes in all.
    fn next_tasks(&self, every: Duration) -> (Vec<Task>, u64) {
        let mut state = self.state.lock();
        if state.tasks.is_empty() {
            let until = Instant::now() + every;
            match state.wait_until(&self.changed, until) {
                Some(awake) => state = awake,
                None => return (vec![Task::Close], 0),
            }
        }
        (std::mem::take(&mut state.tasks), state.given)
    }

    /// Reports tasks done; true if nothing is left to do, and the thread ends.
    fn done(&self, count: u64, takers: &Takers) -> bool {
        let mut state = self.state.lock();
        state.done = count;
        let over = takers.is_empty() && state.tasks.is_empty();
        if over {
            state.running = false;
            // Under the lock: the next recording begins after it.
            self.source.record(0);
        }
        // Not while one is about to be added.
        if state.tasks.is_empty() {
            state.tracing = takers.any(|it| it.is_trace());
        }
        drop(state);
        self.changed.notify_all();
        over
    }

    /// Drops what the rings hold.
    fn forget(&self) {
        self.source.lost();
        let mut entries = Vec::new();
        for ring in 0..self.source.rings() {
            self.source.drain(ring, &mut entries);
            entries.clear();
        }
    }

    /// Both clocks, as close to each other as can be.
    fn now(&self, since: Instant) -> Moment {
        let read = || {
            let before = since.elapsed();
            let ticks = self.source.ticks();
            let after = since.elapsed();
            let ns = ((before + after) / 2).as_nanos() as u64;
            (after - before, Moment { ticks, ns })
        };
        let all = [read(), read(), read()];
        let best = all.into_iter().min_by_key(|(taken, _)| *taken);
        best.map_or(Moment { ticks: 0, ns: 0 }, |(_, moment)| moment)
    }
}

/// When to drain again, if it found so many entries in a ring after so long.
fn next_after(every: Duration, most: usize) -> Duration {
    let most = u32::try_from(most).unwrap_or(u32::MAX).max(1);
    (every * ENTRIES / most).clamp(OFTEN, SELDOM)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
