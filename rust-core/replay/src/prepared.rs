//! A trace made ready for many replays on our engine with one threshold.
//!
//! Whatever the engine's other settings are, streams are done at the same times, and stock serves the same requests below
//! the threshold in the same way. So both are replayed once. A replay then has the engine's requests, and of stock's no
//! more than the engine notices: that events are queried, that the driver is busy, and how much stock has pinned.
//!
//! Invariant: a replay comes to what [`crate::replay`] comes to with the same settings (tested).

use crate::step::{Act, Step};

use crate::policy::pinbuddy::{Pinbuddy, Settings};
use crate::policy::stock::Stock;
use crate::policy::{Pins, Policy};
use crate::replay::State;
use crate::streams::{Streams, Until};

/// A step that is left to do.
#[derive(Clone, Copy, Debug)]
enum Do {
    /// A request of the engine's.
    Request { at: u64, block: u32, bytes: u64 },
    /// Its block is freed; which of `untils` it waits for.
    Free { block: u32, from: u32, to: u32 },
    /// A request of stock's that finds a block. `alone`: since the last step nothing was freed to the engine.
    Hit { at: u64, alone: bool },
    /// One that pins: which of `pins` is so afterwards.
    Miss { at: u64, pins: u32 },
    /// `empty_cache`, by stock first.
    Clear { at: u64, pins: u32 },
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Prepared {
    threshold_bytes: u64,
    steps: Vec<Do>,
    untils: Vec<Until>,
    pins: Vec<Pins>,
    /// When the trace begins, if not with a request or a clear.
    first: Option<u64>,
}

impl Prepared {
    /// The trace for replays with this threshold.
    pub fn new(steps: &[Step], threshold_bytes: u64) -> Self {
        let is_nothing = |it: &&Step| !matches!(it.act, Act::Alloc { .. } | Act::Clear);
        let mut ready = Self {
            threshold_bytes,
            steps: Vec::with_capacity(steps.len()),
            untils: Vec::new(),
            pins: Vec::new(),
            first: steps.first().filter(is_nothing).map(|it| it.at),
        };
        let (mut streams, mut stock) = (Streams::default(), Stock::default());
        // By block: its bytes.
        let mut blocks: Vec<u64> = Vec::new();
        for &Step { at, act } in steps {
            match act {
                Act::Alloc { block, bytes } => {
                    *crate::policy::place(&mut blocks, block) = bytes;
                    let step = if bytes >= threshold_bytes {
                        Do::Request { at, block, bytes }
                    } else if stock.allocate(at, block, bytes) {
                        let pins = ready.note(stock.pins());
                        Do::Miss { at, pins }
                    } else {
                        let alone = matches!(ready.steps.last(), Some(Do::Hit { .. }));
                        Do::Hit { at, alone }
                    };
                    ready.steps.push(step);
                }
                Act::Free { block } => {
                    let until = streams.free(block);
                    if blocks[block as usize] >= threshold_bytes {
                        let from = ready.untils.len() as u32;
                        ready.untils.extend(until);
                        let to = ready.untils.len() as u32;
                        ready.steps.push(Do::Free { block, from, to });
                    } else {
                        stock.free(block, until);
                    }
                }
                Act::Use { block, stream } => {
                    streams.copy(at, block, blocks[block as usize], stream);
                }
                Act::Clear => {
                    stock.clear(at);
                    let pins = ready.note(stock.pins());
                    ready.steps.push(Do::Clear { at, pins });
                }
                Act::Iter => {}
            }
        }
        ready
    }

    fn note(&mut self, pins: Pins) -> u32 {
        self.pins.push(pins);
        self.pins.len() as u32 - 1
    }

    /// Replays all of it on the engine with these settings, whose threshold is the one that it was made ready for. `each` is
    /// told what is pinned, at least whenever that changes, and says whether to go on.
    pub fn replay(&self, settings: Settings, each: &mut impl FnMut(u64, u64) -> bool) -> State {
        debug_assert_eq!(settings.threshold_bytes, self.threshold_bytes, "as made");
        let mut engine = Pinbuddy::new(settings);
        let mut misses = 0;
        if let Some(at) = self.first {
            each(at, 0);
        }
        for step in &self.steps {
            let at = match *step {
                Do::Request { at, block, bytes } => {
                    misses += u64::from(engine.allocate(at, block, bytes));
                    at
                }
                Do::Free { block, from, to } => {
                    engine.free(block, &self.untils[from as usize..to as usize]);
                    continue;
                }
                Do::Hit { alone: true, .. } if engine.is_still() => continue,
                Do::Hit { at, .. } => {
                    engine.beside(at, None);
                    at
                }
                Do::Miss { at, pins } => {
                    misses += 1;
                    engine.beside(at, Some(self.pins[pins as usize]));
                    at
                }
                Do::Clear { at, pins } => {
                    engine.clear_beside(at, self.pins[pins as usize]);
                    at
                }
            };
            if !each(at, engine.pinned()) {
                break;
            }
        }
        let pins = engine.pins();
        State { live: 0, pinned: pins.bytes, peak: pins.peak, calls: pins.pins + pins.unpins, misses }
    }
}

#[cfg(test)]
mod tests;
