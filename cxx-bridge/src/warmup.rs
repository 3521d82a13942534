//! Who pins segments, and who waits for them.
//!
//! At most one thread at a time has the *turn*: to warm up (pin the segments that are *owed*: the
//! configured ones, later those that an empty_cache gave back) or to grow by one segment. Others
//! may sleep until the turn brings a segment or ends. Knows neither the engine nor how memory is
//! pinned, and nothing here is held while memory is pinned (I5): the state has a lock of its own.
//!
//! Invariants: a turn ends when its ticket is dropped, by a panic too, so nobody waits for ever;
//! once closed, no turn begins.

use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::lock::{Lock, assert_none_held};

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Pinning what is owed.
    WarmUp,
    /// One more segment, because nothing fits.
    Growth,
}

/// The turn that is under way.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// What it is for.
    pub task: Task,
    /// When the pin that is going on began.
    pub since: Option<Instant>,
}

/// How far the warm-up is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `cold`, `running`, `paused` (an empty_cache came, and the rest is owed) or `done`.
    pub phase: &'static str,
    /// How many segments it has pinned, re-warms included.
    pub pinned: usize,
    /// How many are owed.
    pub owed: usize,
    /// Why it gave up, if it did.
    pub stopped: Option<String>,
}

/// The state of one process's warm-up.
#[derive(Debug)]
pub struct WarmUp {
    state: Lock<State>,
    /// A turn brought a segment, or ended.
    changed: Condvar,
    /// How many segments turns have brought.
    brought: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    owed: usize,
    /// Bytes that requests pinned by themselves, short of a segment.
    credit: usize,
    pinned: usize,
    under_way: Option<UnderWay>,
    /// How many requests are being pinned by themselves: the warm-up lets them go first.
    aside: usize,
    /// How many requests wait for a segment: the warm-up lets nobody go first then.
    waiting: usize,
    /// The turn is to end after the pin that is going on.
    paused: bool,
    closed: bool,
    stopped: Option<String>,
}

/// The turn; dropping it ends it.
#[derive(Debug)]
pub struct Ticket<'a>(&'a WarmUp);

/// A request that is being pinned by itself; dropping it ends that.
#[derive(Debug)]
pub struct Aside<'a>(&'a WarmUp);

impl WarmUp {
    /// Nothing pinned, `owed` segments to pin ahead.
    pub fn new(owed: usize) -> Self {
        Self {
            state: Lock::new(State {
                owed,
                ..State::default()
            }),
            changed: Condvar::new(),
            brought: AtomicUsize::new(0),
        }
    }

    /// How many segments turns have brought so far: read before asking the engine, so that progress
    /// made in between is not slept through.
    pub fn brought(&self) -> usize {
        self.brought.load(Ordering::Acquire)
    }

    /// Takes the turn, if nobody has it and there is something to do.
    pub fn begin(&self, task: Task) -> Option<Ticket<'_>> {
        let mut state = self.state.lock();
        let idle = state.under_way.is_none() && !state.closed;
        if !idle || (task == Task::WarmUp && state.owed == 0) {
            return None;
        }
        state.under_way = Some(UnderWay { task, since: None });
        state.paused = false;
        if task == Task::WarmUp {
            state.stopped = None;
        }
        Some(Ticket(self))
    }

    /// A request is about to be pinned by itself. Until that is dropped a warm-up pins no further
    /// segment: drivers pin one region at a time, and not in the order of asking.
    pub fn step_aside(&self) -> Aside<'_> {
        self.state.lock().aside += 1;
        Aside(self)
    }

    /// The turn that is under way.
    pub fn under_way(&self) -> Option<UnderWay> {
        self.state.lock().under_way
    }

    /// Sleeps until turns have brought more than `seen` segments or none is under way.
    pub fn wait(&self, seen: usize) {
        assert_none_held("waiting for a segment");
        let mut state = self.state.lock();
        state.waiting += 1;
        self.changed.notify_all();
        while state.under_way.is_some() && self.brought() == seen {
            state = state.wait(&self.changed);
        }
        state.waiting -= 1;
    }

    /// Whether the process is about to end.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Sleeps until no turn is under way.
    pub fn wait_until_over(&self) {
        assert_none_held("waiting for the warm-up");
        let mut state = self.state.lock();
        while state.under_way.is_some() {
            state = state.wait(&self.changed);
        }
    }

    /// So many more segments are to be pinned by the next warm-up.
    pub fn owe(&self, segments: usize) {
        let mut state = self.state.lock();
        state.owed = state.owed.saturating_add(segments);
    }

    /// Has a warm-up that is under way end after the pin that is going on; the rest stays owed.
    pub fn pause(&self) {
        let mut state = self.state.lock();
        state.paused = state.under_way.is_some();
        self.changed.notify_all();
    }

    /// No turn begins from now on; waits, but not for ever, for the one under way to end, and for
    /// requests that are being pinned by themselves. For the end of the process, when a driver call
    /// on another thread would meet a driver that is gone.
    pub fn close(&self, patience: Duration) {
        let mut state = self.state.lock();
        state.closed = true;
        self.changed.notify_all();
        let until = Instant::now() + patience;
        while (state.under_way.is_some() || state.aside > 0) && Instant::now() < until {
            drop(state);
            // Polled: this happens once, and a timed wait is not worth a second kind of guard.
            std::thread::sleep(Duration::from_millis(1));
            state = self.state.lock();
        }
    }

    /// Requests pinned `bytes` by themselves that segments of `segment` bytes would have held: so
    /// much less is owed, in whole segments.
    pub fn credit(&self, bytes: usize, segment: usize) {
        let mut state = self.state.lock();
        if state.owed > 0 {
            state.credit += bytes;
            let segments = state.credit / segment;
            state.credit -= segments * segment;
            state.owed = state.owed.saturating_sub(segments);
            self.changed.notify_all();
        }
    }

    /// Nothing more can be pinned: nothing is owed any more, and a warm-up that is under way ends.
    pub fn give_up(&self, why: &str) {
        let mut state = self.state.lock();
        state.owed = 0;
        state.stopped = Some(why.to_owned());
        self.changed.notify_all();
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let state = self.state.lock();
        let phase = match (state.is_warming_up(), state.owed) {
            (true, _) => "running",
            (false, 0) => "done",
            (false, _) if state.pinned == 0 => "cold",
            (false, _) => "paused",
        };
        Progress {
            phase,
            pinned: state.pinned,
            owed: state.owed,
            stopped: state.stopped.clone(),
        }
    }
}

impl State {
    fn is_warming_up(&self) -> bool {
        self.under_way.is_some_and(|it| it.task == Task::WarmUp)
    }

    fn has_more_to_warm(&self) -> bool {
        self.is_warming_up() && self.owed > 0 && !self.paused && !self.closed
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.0.state.lock().aside -= 1;
        self.0.changed.notify_all();
    }
}

impl Ticket<'_> {
    /// Cuts what is owed to `most` segments and returns what it was.
    pub fn limit(&self, most: usize) -> usize {
        let mut state = self.0.state.lock();
        let owed = state.owed;
        state.owed = owed.min(most);
        owed
    }

    /// Whether one more segment is to be pinned now. A warm-up waits for requests that are being
    /// pinned by themselves, unless others wait for it.
    pub fn next(&self) -> bool {
        assert_none_held("waiting for other pins");
        let mut state = self.0.state.lock();
        while state.aside > 0 && state.waiting == 0 && state.has_more_to_warm() {
            state = state.wait(&self.0.changed);
        }
        let Some(under_way) = state.under_way else {
            return false;
        };
        let wanted = match under_way.task {
            Task::WarmUp => state.has_more_to_warm(),
            Task::Growth => !state.closed,
        };
        if wanted {
            let since = Some(Instant::now());
            state.under_way = Some(UnderWay { since, ..under_way });
        }
        wanted
    }

    /// One more segment can serve requests.
    pub fn brought(&self) {
        let mut state = self.0.state.lock();
        if let Some(under_way) = state.under_way.as_mut() {
            under_way.since = None;
            if under_way.task == Task::WarmUp {
                state.owed = state.owed.saturating_sub(1);
                state.pinned += 1;
            }
        }
        self.0.brought.fetch_add(1, Ordering::Release);
        self.0.changed.notify_all();
    }

    /// Whether the turn was to end early because of an empty_cache.
    pub fn is_paused(&self) -> bool {
        self.0.state.lock().paused
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.under_way = None;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
