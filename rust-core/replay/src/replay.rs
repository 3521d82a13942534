//! Feeds a trace to a policy and measures the outcome.
//!
//! Steps come in batches, so that a trace of any length takes the memory of one batch, and several
//! policies can take turns on it. Counts live bytes, which policies do not. Reads this thread's clock,
//! for the speed only; it does not run while other threads have the core.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::MIB;
use crate::policy::{Kind, Policy};
use crate::policy::{buddy_181094::Buddy181094, pinbuddy, pinbuddy::Pinbuddy, stock::Stock};
use crate::step::{Act, Step};
use crate::streams::Streams;

/// The outcome of a replay. Sizes are in bytes; ratios are absent if they would divide by zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests served.
    pub allocations: u64,
    /// Blocks freed.
    pub frees: u64,
    /// Requests that did not wait for the driver.
    pub hits: u64,
    /// Requests that waited for the driver.
    pub misses: u64,
    /// Regions pinned, one call of the driver each.
    pub pins: u64,
    /// Regions pinned after the first step.
    pub pins_after_first_step: u64,
    /// Regions unpinned.
    pub unpins: u64,
    /// The most that was pinned at one moment.
    pub peak_pinned_bytes: u64,
    /// The most that was live at one moment, as requested.
    pub largest_live_bytes: u64,
    /// `peak_pinned_bytes` over `largest_live_bytes`.
    pub pinned_over_requested: Option<f64>,
    /// Clears while something was live.
    pub clears: u64,
    /// Bytes pinned right after a clear, over bytes live then: the mean of these clears.
    pub after_clear_over_live: Option<f64>,
    /// The same for the last of these clears.
    pub after_last_clear_over_live: Option<f64>,
    /// Bytes pinned at the end.
    pub pinned_bytes_at_end: u64,
    /// Processor time that the policy took.
    pub seconds: f64,
    /// Requests and frees a second.
    pub requests_per_second: Option<f64>,
}

/// A replay in progress, on any policy.
pub trait Run {
    /// The next steps of the trace.
    fn batch(&mut self, steps: &[Step]);

    /// The next step, without its time: two clocks are read for a batch.
    fn step(&mut self, step: Step);

    /// The outcome of all steps so far.
    fn outcome(&self) -> Outcome;

    /// What is so after all steps so far.
    fn state(&self) -> State;

    /// The policy, for what it knows of addresses.
    fn policy(&mut self) -> &mut dyn Policy;
}

/// What is so at a moment of a replay. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Live, as requested.
    pub live: u64,
    /// Pinned now.
    pub pinned: u64,
    /// The most that was pinned at one moment so far.
    pub peak: u64,
    /// Calls to the driver so far, to pin and to unpin.
    pub calls: u64,
    /// Requests that waited for the driver so far.
    pub misses: u64,
}

/// A replay in progress.
#[derive(Debug, Default)]
pub struct Replay<P> {
    policy: P,
    streams: Streams,
    /// By block: the request in bytes.
    requests: Vec<u64>,
    live: u64,
    largest_live: u64,
    allocations: u64,
    frees: u64,
    misses: u64,
    /// Regions pinned when the first step was over.
    first_step_pins: Option<u64>,
    clears: Ratios,
    seconds: f64,
}

#[derive(Debug, Default)]
struct Ratios {
    count: u64,
    sum: f64,
    last: Option<f64>,
}

impl<P: Policy> Replay<P> {
    /// A replay at its beginning.
    pub fn new(policy: P) -> Self {
        Self {
            policy,
            streams: Streams::default(),
            requests: Vec::new(),
            live: 0,
            largest_live: 0,
            allocations: 0,
            frees: 0,
            misses: 0,
            first_step_pins: None,
            clears: Ratios::default(),
            seconds: 0.0,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Bytes live, as requested.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Replays one step.
    #[inline]
    pub fn step(&mut self, Step { at, act }: Step) {
        match act {
            Act::Alloc { block, bytes } => {
                let index = block as usize;
                if index >= self.requests.len() {
                    self.requests.resize(index + 1, 0);
                }
                self.requests[index] = bytes;
                self.live += bytes;
                self.largest_live = self.largest_live.max(self.live);
                self.allocations += 1;
                self.misses += u64::from(self.policy.allocate(at, block, bytes));
            }
            Act::Free { block } => {
                self.live -= self.requests[block as usize];
                self.frees += 1;
                self.policy.free(block, self.streams.free(block));
            }
            Act::Use { block, stream } => {
                let bytes = self.requests[block as usize];
                self.streams.copy(at, block, bytes, stream);
            }
            Act::Clear => self.clear(at),
            Act::Iter => {
                let pins = self.policy.pins().pins;
                self.first_step_pins.get_or_insert(pins);
            }
        }
    }

    #[cold]
    fn clear(&mut self, at: u64) {
        self.policy.clear(at);
        if let Some(ratio) = over(self.policy.pins().bytes, self.live) {
            self.clears.count += 1;
            self.clears.sum += ratio;
            self.clears.last = Some(ratio);
        }
    }
}

impl<P: Policy> Run for Replay<P> {
    fn batch(&mut self, steps: &[Step]) {
        let start = processor_seconds();
        for step in steps {
            self.step(*step);
        }
        self.seconds += processor_seconds() - start;
    }

    fn step(&mut self, step: Step) {
        Self::step(self, step);
    }

    #[inline]
    fn state(&self) -> State {
        let pins = self.policy.pins();
        State {
            live: self.live,
            pinned: pins.bytes,
            peak: pins.peak,
            calls: pins.pins + pins.unpins,
            misses: self.misses,
        }
    }

    fn policy(&mut self) -> &mut dyn Policy {
        &mut self.policy
    }

    fn outcome(&self) -> Outcome {
        let pins = self.policy.pins();
        let seconds = self.seconds;
        let requests = (self.allocations + self.frees) as f64;
        let count = self.clears.count;
        Outcome {
            allocations: self.allocations,
            frees: self.frees,
            hits: self.allocations - self.misses,
            misses: self.misses,
            pins: pins.pins,
            pins_after_first_step: self.first_step_pins.map_or(0, |first| pins.pins - first),
            unpins: pins.unpins,
            peak_pinned_bytes: pins.peak,
            largest_live_bytes: self.largest_live,
            pinned_over_requested: over(pins.peak, self.largest_live),
            clears: count,
            after_clear_over_live: (count > 0).then(|| self.clears.sum / count as f64),
            after_last_clear_over_live: self.clears.last,
            pinned_bytes_at_end: pins.bytes,
            seconds,
            requests_per_second: (seconds > 0.0).then(|| requests / seconds),
        }
    }
}

/// Seconds that this thread has had a core.
pub fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn over(one: u64, other: u64) -> Option<f64> {
    (other > 0).then(|| one as f64 / other as f64)
}

/// A replay on the policy `kind`; `settings` are pinbuddy's.
pub fn on(kind: Kind, settings: pinbuddy::Settings) -> Box<dyn Run> {
    match kind {
        Kind::Stock => Box::new(Replay::new(Stock::default())),
        Kind::StockTuned => Box::new(Replay::new(Stock::rounding_up_to(MIB))),
        Kind::Buddy181094 => Box::new(Replay::new(Buddy181094::default())),
        Kind::Pinbuddy => Box::new(Replay::new(Pinbuddy::new(settings))),
        Kind::PinbuddyExact => Box::new(Replay::new(Pinbuddy::new(settings.exact()))),
    }
}

#[cfg(test)]
mod tests;
