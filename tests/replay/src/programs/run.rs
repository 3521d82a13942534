//! Runs a program in simulated time, with our provisioner or with stock's mechanism alone.
//!
//! Each thread does what it does as soon as it can; what it waits for is the driver's time and the
//! provisioner's. Stock is the same process in which every request passes through.

use pinbuddy_core::{Settings, WarmUp};

use crate::world::{Machine, Nanos, World};

use super::Act;

/// A program with a machine to run on.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// By thread.
    pub acts: &'a [Vec<Act>],
    /// What it meets.
    pub machine: Machine,
    /// Whether the books are audited now and then: slow.
    pub audits: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The most that lived at once, in bytes as requested.
    pub largest_set: u64,
    /// The most that was pinned at once.
    pub peak: u64,
    /// All that was ever pinned, in bytes.
    pub bytes_pinned: u64,
    /// How many pins there were when a request had been served, in the order of the requests' names.
    pub pins: Vec<u64>,
    /// How long each request waited, in the order of names, and how long stock's own pins would have
    /// taken in its place: its own, and those of others that waited at the same time.
    /// Without those for which a region for all that follows was pinned.
    pub waits: Vec<(Nanos, Nanos)>,
    /// How many these were.
    pub renewals: u64,
    /// When the program was over.
    pub time: Nanos,
}

/// Settings with which every request passes through.
fn off() -> Settings {
    Settings {
        segment_bytes: 1 << 30,
        threshold_bytes: usize::MAX,
        growth: pinbuddy_core::Growth::Exact,
        warm_up: WarmUp::Off,
        count: Some(0),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Does its next act then.
    Ready(Nanos),
    /// Waits for its request of so many bytes; and for so long by stock's measure.
    Waits(u32, u64, Nanos),
    Done,
}

/// Runs the program; `None` for stock.
///
/// # Errors
///
/// What an audit has to say.
pub fn run(of: Run<'_>, settings: Option<&Settings>) -> Result<Outcome, String> {
    let settings = settings.cloned().unwrap_or_else(off);
    let mut world = World::new(settings, of.machine, of.acts.len());
    let requests = of
        .acts
        .iter()
        .flatten()
        .filter(|act| matches!(act, Act::Alloc(..)))
        .count();
    let mut outcome = Outcome {
        pins: vec![0; requests],
        waits: vec![(0, 0); requests],
        ..Outcome::default()
    };
    let mut sizes = vec![0_u64; requests];
    let mut live = 0;
    let mut next = vec![0_usize; of.acts.len()];
    let mut states = vec![State::Ready(0); of.acts.len()];
    let mut steps = 0_usize;
    loop {
        let ready = |state: &State| match state {
            State::Ready(at) => Some(*at),
            _ => None,
        };
        let first = states
            .iter()
            .enumerate()
            .filter_map(|(thread, state)| Some((ready(state)?, thread)))
            .min();
        let event = world.next_event();
        if first.is_none_or(|(at, _)| event <= at) {
            if event == Nanos::MAX || states.iter().all(|it| *it == State::Done) {
                break;
            }
            let Some(thread) = world.advance(event) else {
                continue;
            };
            let State::Waits(block, bytes, stocks) = states[thread] else {
                continue;
            };
            let served = world.served(thread);
            outcome.renewals += u64::from(served.renewed);
            if !served.renewed {
                outcome.waits[block as usize] = (served.at - served.asked, stocks);
            }
            outcome.pins[block as usize] = world.pins().pins;
            sizes[block as usize] = bytes;
            live += bytes;
            outcome.largest_set = outcome.largest_set.max(live);
            states[thread] = State::Ready(world.now());
            continue;
        }
        let Some((at, thread)) = first else { break };
        world.advance(at);
        let Some(act) = of.acts[thread].get(next[thread]) else {
            states[thread] = State::Done;
            continue;
        };
        next[thread] += 1;
        steps += 1;
        if of.audits && steps.is_multiple_of(64) {
            world.audit()?;
        }
        match *act {
            Act::Compute(micros) => states[thread] = State::Ready(at + Nanos::from(micros) * 1000),
            Act::Clear => world.clear(),
            Act::Free(block) => {
                live -= sizes[block as usize];
                world.free(block, &[]);
            }
            Act::Alloc(block, bytes) => {
                let own = of.machine.stocks(bytes.next_power_of_two());
                let mut all = own;
                for other in &mut states {
                    if let State::Waits(_, bytes, stocks) = other {
                        *stocks += own;
                        all += of.machine.stocks(bytes.next_power_of_two());
                    }
                }
                states[thread] = State::Waits(block, bytes, all);
                world.request(thread, block, bytes);
            }
        }
    }
    if of.audits {
        world.audit()?;
    }
    outcome.peak = world.pins().peak;
    outcome.bytes_pinned = world.bytes_pinned();
    outcome.time = world.now();
    Ok(outcome)
}
