//! The planned memory of one stream: its regions, its blocks, and what a request has to wait for.
//!
//! C++ asks (`cpp/device/stream_memory.h`), and calls CUDA and PyTorch's allocator, which nothing here knows. A block that only its
//! own stream used is free at once when it is freed, since the stream's work is in order. One that other streams used waits for
//! events on them, in the queues of `PendingQueues`. A region is taken with the first request that has a place there, or none elsewhere,
//! and again after it was given back: with the next such request where the program emptied its cache, an iteration later where memory
//! was short. Invariant: no call panics, since a panic that reaches C++ ends the process: what may panic is in `super::places`.

use std::collections::VecDeque;

use pinbuddy_core::Gauge;
use pinbuddy_slots::{Counts, Slots};
use rustc_hash::FxHashMap;

use super::places::{Answer, Placed, Places};
use super::tally::{Counted, Tally, device_tally};
pub use crate::ffi::{Ask, FreedBlock, GiveBack, IdleRegion, Length, Place, Step, StreamPart};
use crate::lock::Lock;
use crate::pending::PendingQueues;
use crate::record::device::DeviceTrace;

mod events;
mod regions;

use regions::Region;

/// PyTorch counts blocks as whole numbers of so many bytes.
const COUNTED: usize = 512;

/// What a request needs that has no slot: any place, once a region is there.
const ANY: i64 = -2;

/// An iteration has at least so many requests.
const FEWEST: usize = 64;

/// See the module's documentation.
#[derive(Debug)]
pub struct StreamPlan {
    state: Lock<State>,
    pending: PendingQueues,
    tally: &'static Tally,
    trace: Option<&'static DeviceTrace>,
    /// CUDA's name of the stream, for the trace.
    stream: usize,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    places: Places,
    regions: Vec<Region>,
    /// Handed out, by address.
    live: FxHashMap<usize, Block>,
    /// Freed, while other streams still use them.
    freed: FxHashMap<usize, Block>,
    /// Those whose events are not recorded yet.
    deferred: VecDeque<usize>,
    counted: Counted,
    /// Memory was short: so many requests are left to PyTorch's allocator before the regions are taken again.
    waits: usize,
    /// A request got memory here that was nowhere else: so do so many that follow.
    borrows: usize,
    /// How often regions were given back since memory was short.
    given_back: u64,
    /// Another thread dropped the plan while regions were taken.
    drops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Cold,
    Reserving,
    Ready,
    Dropped,
}

#[derive(Debug)]
struct Block {
    placed: Placed,
    length: Length,
    /// Other streams.
    uses: Vec<u64>,
    /// Events that are outstanding.
    events: usize,
}

impl StreamPlan {
    /// Of a stream of this device; without slots nothing is planned for it.
    pub fn new(slots: Option<Slots>, device: i8) -> Self {
        let places = Places::new(slots);
        let lengths = places.lengths().iter().enumerate();
        let regions: Vec<_> = lengths.map(|(number, &bytes)| Region::of(bytes, places.has_slots(number))).collect();
        let mut state = State {
            phase: Phase::Dropped,
            places,
            regions,
            live: FxHashMap::default(),
            freed: FxHashMap::default(),
            deferred: VecDeque::new(),
            counted: Counted::default(),
            waits: 0,
            borrows: 0,
            given_back: 0,
            drops: false,
        };
        if !state.regions.is_empty() {
            state.phase = state.rests();
        }
        Self {
            state: Lock::new(state),
            pending: PendingQueues::default(),
            tally: device_tally(device),
            trace: None,
            stream: 0,
        }
    }

    /// The plan of one thread that asks for 4 MiB of the first region, then of the second: for tests.
    #[cfg(test)]
    pub(crate) fn of_two(regions: [usize; 2], device: i8) -> Self {
        use pinbuddy_slots::{Lane, Layout, Slot};
        let slot = |region| Slot { region, offset: 0, bytes: 4 << 20 };
        let lane = Lane { period: vec![0, 1], ..Lane::default() };
        let layout = Layout { regions: regions.into(), slots: vec![slot(0), slot(1)], lanes: vec![lane] };
        Self::new(Slots::learning(&layout).ok(), device)
    }

    /// Blocks are traced from now on, as those of this stream.
    pub(crate) fn traced(mut self, trace: &'static DeviceTrace, stream: usize) -> Self {
        (self.trace, self.stream) = (Some(trace), stream);
        self
    }

    /// A planned place, or what the plan leaves idle. `after`: what was done for the request before.
    #[inline]
    pub fn request(&self, ask: &mut Ask, after: Step) -> Result<Place, Step> {
        let mut state = self.state.lock();
        // First, since a region of a plan that is not in force goes with its last block.
        if after < Step::Settle && !state.freed.is_empty() {
            return Err(Step::Settle);
        }
        let is_cold = state.phase == Phase::Cold;
        if after < Step::Reserve && is_cold && !counts_down(&mut state.waits) {
            return Err(Step::Reserve);
        }
        let is_ready = state.phase == Phase::Ready;
        if !is_ready && state.borrows == 0 {
            return Err(Step::Unserved);
        }
        self.unless_peaks(ask, after)?;
        let mut placed = None;
        if let Ok(slot) = u32::try_from(ask.needs) {
            placed = state.places.serve_needed(slot);
        } else if ask.needs == ANY {
            placed = state.places.borrow(ask.rounded);
        } else if is_ready {
            match state.places.request(ask.rounded) {
                Answer::Has(it) => placed = Some(it),
                Answer::Needs(slot, region) => {
                    ask.needs = slot.map_or(ANY, i64::from);
                    state.wants(region);
                    return Err(Step::Reserve);
                }
                Answer::Nothing => {}
            }
        }
        let borrows = counts_down(&mut state.borrows);
        if placed.is_none() && borrows {
            placed = state.places.borrow(ask.rounded);
        }
        match placed {
            Some(placed) => Ok(self.hand_out(&mut state, placed, ask)),
            None if state.places.take_retirement() => Err(Step::Retire),
            None => Err(Step::Unserved),
        }
    }

    /// The same of what is idle in the regions that there are, whoever wants it next: for a request that finds no other memory. The
    /// next requests, as many as an iteration has, get such memory, too, before PyTorch's allocator is asked, which would give back
    /// its cache for each of them.
    pub fn borrow(&self, ask: &Ask, after: Step) -> Result<Place, Step> {
        self.unless_peaks(ask, after)?;
        let mut state = self.state.lock();
        let placed = state.places.borrow(ask.rounded).ok_or(Step::Unserved)?;
        state.borrows = state.requests_of_an_iteration();
        Ok(self.hand_out(&mut state, placed, ask))
    }

    fn unless_peaks(&self, ask: &Ask, after: Step) -> Result<(), Step> {
        let is_due = after < Step::Peaks && self.tally.is_due(ask.rounded.saturating_add(COUNTED));
        if is_due { Err(Step::Peaks) } else { Ok(()) }
    }

    #[inline]
    fn hand_out(&self, state: &mut State, placed: Placed, ask: &Ask) -> Place {
        let bytes = ask.rounded.next_multiple_of(COUNTED);
        let length = Length { bytes, requested: ask.bytes, is_oversize: bytes >= ask.oversize_from };
        state.counted.came(length);
        self.tally.add([bytes as i64, bytes as i64, ask.bytes as i64]);
        let address = placed.address;
        if let Some(trace) = self.trace {
            trace.request(address, ask.rounded, self.stream, false);
        }
        let block = Block { placed, length, uses: Vec::new(), events: 0 };
        state.live.insert(address, block);
        Place { address, bytes }
    }

    /// The block at this address is freed; none if there is no such block.
    #[inline]
    pub fn free(&self, address: usize) -> Option<FreedBlock> {
        let mut state = self.state.lock();
        let block = state.live.remove(&address)?;
        let Length { bytes, .. } = block.length;
        state.counted.freed(block.length);
        self.tally.add([-(bytes as i64), 0, 0]);
        if let Some(trace) = self.trace {
            trace.free(address);
        }
        let waits = !block.uses.is_empty();
        if waits {
            state.places.defer(block.placed);
            state.deferred.push_back(address);
            state.freed.insert(address, block);
        } else {
            self.finish(&mut state, &block);
        }
        let is_last = !waits && state.phase == Phase::Dropped;
        Some(FreedBlock { bytes, waits, is_last })
    }

    /// Nobody uses the block any more.
    fn finish(&self, state: &mut State, block: &Block) {
        let Length { bytes, requested, .. } = block.length;
        state.counted.over(block.length);
        self.tally.add([0, -(bytes as i64), -(requested as i64)]);
        if let Some(trace) = self.trace {
            trace.done(block.placed.address);
        }
        state.places.release(block.placed);
    }

    /// How much was asked for the live block at this address; 0 if there is none.
    pub(crate) fn requested(&self, address: usize) -> usize {
        let state = self.state.lock();
        state.live.get(&address).map_or(0, |it| it.length.requested)
    }

    /// The same of one that no other stream uses.
    pub(crate) fn completes(&self, address: usize) -> usize {
        let state = self.state.lock();
        let own = state.live.get(&address).filter(|it| it.uses.is_empty());
        own.map_or(0, |it| it.length.requested)
    }

    /// An iteration is over.
    pub fn iteration(&self) {
        self.state.lock().places.iteration();
    }

    pub(crate) fn counted(&self) -> Counted {
        self.state.lock().counted
    }

    pub(crate) fn reset_peaks(&self) {
        let mut state = self.state.lock();
        state.counted.0.iter_mut().for_each(Gauge::reset_peak);
    }

    pub(crate) fn reset_accumulated(&self) {
        let mut state = self.state.lock();
        let gauges = state.counted.0.iter_mut();
        gauges.for_each(Gauge::reset_accumulated);
    }

    /// What the plan has counted, and how often regions were given back.
    pub(crate) fn counts(&self) -> (Counts, u64) {
        let state = self.state.lock();
        (state.places.counts(), state.given_back)
    }

    /// The blocks, by address.
    pub(crate) fn shown(&self) -> Vec<StreamPart> {
        let state = self.state.lock();
        let show = |live: bool| {
            move |(&address, block): (&usize, &Block)| StreamPart {
                address,
                bytes: block.length.bytes,
                requested: block.length.requested,
                live,
            }
        };
        let live = state.live.iter().map(show(true));
        let mut shown: Vec<_> = live.chain(state.freed.iter().map(show(false))).collect();
        shown.sort_unstable_by_key(|it| it.address);
        shown
    }
}

impl State {
    fn requests_of_an_iteration(&self) -> usize {
        self.places.turn().max(FEWEST)
    }
}

/// Whether a request is among those that are left.
fn counts_down(left: &mut usize) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
