//! Runs a program in simulated time, with the provisioner or with stock's mechanism alone.
//!
//! Each thread acts as soon as it can, and waits only for the driver and the provisioner. Stock is the
//! same process, in which every request passes through.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pinbuddy_core::Settings;

use crate::policy::pinbuddy;
use crate::streams::Streams;
use crate::world::{Machine, Nanos, World};

use super::Act;

/// A program and its machine.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// By thread.
    pub acts: &'a [Vec<Act>],
    /// The machine that it runs on.
    pub machine: Machine,
    /// Whether the state is audited now and then: slow.
    pub audits: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The most that was in use at once, in bytes as requested: by the program, or by streams that were
    /// not done or could not be queried.
    pub largest_set: u64,
    /// The most that was pinned at once.
    pub peak: u64,
    /// Bytes pinned ten seconds after the program's end.
    pub pinned_at_end: u64,
    /// All bytes ever pinned.
    pub bytes_pinned: u64,
    /// How many pins had been made when each request was served, in the order of serving. That order
    /// differs from stock's, since threads advance at other speeds.
    pub pins: Vec<u64>,
    /// How long each request waited, in the order of names, and how long stock's pins would have taken
    /// in its place: its own, and those of requests that waited at the same time. Without requests
    /// during which a working-set region was pinned, by themselves or by another thread.
    pub waits: Vec<(Nanos, Nanos)>,
    /// How many requests unpinned memory on their own thread.
    pub unpinning: u64,
    /// When the program ended.
    pub time: Nanos,
}

/// Settings with which every request passes through.
fn off() -> Settings {
    Settings { threshold_bytes: usize::MAX, count: Some(0), ..pinbuddy::Settings::default().exact().core() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Does its next act at that time.
    Ready(Nanos),
    /// Waits for its request: name, bytes, and the time that stock's pins would take.
    Waits(u32, u64, Nanos),
    /// Waits at a barrier.
    Meets,
    Done,
}

/// A running program.
struct Program<'a> {
    of: Run<'a>,
    world: World,
    streams: Streams,
    in_use: InUse,
    /// By request.
    sizes: Vec<u64>,
    /// By thread: how many acts are done.
    next: Vec<usize>,
    states: Vec<State>,
    outcome: Outcome,
}

/// Runs the program; `None` for stock.
///
/// # Errors
///
/// What an audit found.
pub fn run(of: Run<'_>, settings: Option<&Settings>) -> Result<Outcome, String> {
    let settings = settings.cloned().unwrap_or_else(off);
    let acts = of.acts.iter().flatten();
    let requests = acts.filter(|act| matches!(act, Act::Alloc(..))).count();
    let program = Program {
        of,
        world: World::new(settings, of.machine, of.acts.len()).caching(),
        streams: Streams::default(),
        in_use: InUse::default(),
        sizes: vec![0; requests],
        next: vec![0; of.acts.len()],
        states: vec![State::Ready(0); of.acts.len()],
        outcome: Outcome { waits: vec![(0, 0); requests], ..Outcome::default() },
    };
    program.run()
}

impl Program<'_> {
    fn run(mut self) -> Result<Outcome, String> {
        let mut acts = 0_usize;
        loop {
            let ready = |(thread, state): (usize, &State)| match state {
                State::Ready(at) => Some((*at, thread)),
                _ => None,
            };
            let first = self.states.iter().enumerate().filter_map(ready).min();
            let event = self.world.next_event();
            if first.is_none_or(|(at, _)| event <= at) {
                if event == Nanos::MAX || self.states.iter().all(|it| *it == State::Done) {
                    break;
                }
                if let Some(thread) = self.world.advance(event) {
                    self.served(thread);
                }
                continue;
            }
            let Some((at, thread)) = first else { break };
            self.world.advance(at);
            acts += 1;
            if self.of.audits && acts.is_multiple_of(64) {
                self.world.audit()?;
            }
            self.act(thread, at);
        }
        if self.of.audits {
            self.world.audit()?;
        }
        self.outcome.largest_set = self.in_use.most;
        self.outcome.peak = self.world.pins().peak;
        self.outcome.bytes_pinned = self.world.bytes_pinned();
        self.outcome.time = self.world.now();
        let rest = self.world.now() + 10_000_000_000;
        while self.world.now() < rest {
            self.world.advance(rest);
        }
        self.outcome.pinned_at_end = self.world.pins().bytes;
        Ok(self.outcome)
    }

    /// A thread's request is served.
    fn served(&mut self, thread: usize) {
        let State::Waits(block, bytes, stocks) = self.states[thread] else {
            return;
        };
        let served = self.world.served(thread);
        self.outcome.unpinning += u64::from(served.unpinned);
        if !served.renewed && !served.beside {
            self.outcome.waits[block as usize] = (served.at - served.asked, stocks);
        }
        self.outcome.pins.push(self.world.pins().pins);
        self.sizes[block as usize] = bytes;
        self.in_use.take(self.world.now() / 1000, bytes);
        self.states[thread] = State::Ready(self.world.now());
    }

    /// A thread does its next act.
    fn act(&mut self, thread: usize, at: Nanos) {
        let Some(act) = self.of.acts[thread].get(self.next[thread]) else {
            self.states[thread] = State::Done;
            return self.meet(at);
        };
        self.next[thread] += 1;
        let micros = at / 1000;
        match *act {
            Act::Compute(time) => {
                self.states[thread] = State::Ready(at + Nanos::from(time) * 1000);
            }
            Act::Meet => {
                self.states[thread] = State::Meets;
                self.meet(at);
            }
            Act::Clear => self.world.clear(),
            Act::BeginCapture => {
                self.world.begin_capture();
                self.in_use.captures += 1;
            }
            Act::EndCapture => {
                self.world.end_capture();
                self.in_use.captures -= 1;
            }
            Act::Copy(block, stream) => {
                let bytes = self.sizes[block as usize];
                self.streams.copy(micros, block, bytes, stream);
            }
            Act::Occupy(stream, time) => self.streams.run(micros, stream, time.into()),
            Act::Free(block) => {
                let until = self.streams.free(block);
                self.world.free(block, until);
                let over = until.iter().map(|(_, over)| *over).max();
                self.in_use.free(self.sizes[block as usize], over);
            }
            Act::Alloc(block, bytes) => self.request(thread, block, bytes),
        }
    }

    fn request(&mut self, thread: usize, block: u32, bytes: u64) {
        let stocks = |bytes: u64| self.of.machine.stocks(bytes.next_power_of_two());
        let own = stocks(bytes);
        let mut all = own;
        for other in &mut self.states {
            if let State::Waits(_, bytes, waits) = other {
                *waits += own;
                all += stocks(*bytes);
            }
        }
        self.states[thread] = State::Waits(block, bytes, all);
        self.world.request(thread, block, bytes);
    }

    /// Ends a barrier, if all threads that are not done have reached it.
    fn meet(&mut self, at: Nanos) {
        let meets = |state: &State| matches!(state, State::Meets | State::Done);
        if self.states.iter().all(meets) {
            for state in &mut self.states {
                if *state == State::Meets {
                    *state = State::Ready(at);
                }
            }
        }
    }
}

/// The bytes that the program has in use, or streams that are not done or may not be queried.
#[derive(Debug, Default)]
struct InUse {
    bytes: u64,
    most: u64,
    /// Until when streams use blocks, in microseconds, and how many bytes.
    on_streams: BinaryHeap<Reverse<(u64, u64)>>,
    captures: u32,
}

impl InUse {
    fn take(&mut self, now: u64, bytes: u64) {
        while self.captures == 0
            && let Some(Reverse((over, freed))) = self.on_streams.peek()
            && *over <= now
        {
            self.bytes -= freed;
            self.on_streams.pop();
        }
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
    }

    fn free(&mut self, bytes: u64, until: Option<u64>) {
        match until {
            None => self.bytes -= bytes,
            Some(over) => self.on_streams.push(Reverse((over, bytes))),
        }
    }
}
