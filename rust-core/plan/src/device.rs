//! What a run asked of device memory, and the plans made of that.
//!
//! Memory that a stream freed is its own again at once, whatever its work has come to: so each stream is planned by
//! itself, as one lane. Which plan of several a stream gets, or none, is found out by trial ([`trial`]): with all
//! requests, small ones too.

mod acts;
mod frees;
mod late;
mod lives;
mod longer;
mod orders;
mod runs;
#[cfg(test)]
mod tests;
mod trial;

pub use pinbuddy_device::planned::asked_for;
pub use pinbuddy_device::{Act, Kind, LENT_FROM, SHARED, allowance};

use crate::file::Plan;
use crate::file::device::{DevicePlan, Stream, Without};
use crate::replay::check_plan;
use crate::script::{Options, Watch};
use acts::{CLEAR, ITERATION, LEFT, Live, OVER, OneDevice, Packed, StreamRecord, most_and_whether_let_go};
use late::Late;
use runs::Others;
use trial::Trial;
pub use trial::{Chosen, Reserved, Tried};

/// A plan has places for requests from so many bytes on. Shorter ones, which PyTorch serves from segments of 2 MiB, are planned
/// only where that reserves less, and not where a model is let go of.
pub const THRESHOLDS: [u64; 2] = [LENT_FROM, 1];

/// A record of more acts takes seconds to replay: a search for a file's plan that is asked to stop ends there even if it has tried
/// none. A process, which has no second chance, has one tried.
const LONG: u32 = 1 << 17;

/// Of more blocks that live at once a process packs those from [`THRESHOLDS`]' first on alone: the first packing, which nothing ends early,
/// takes the square of their number. Measured: 1.6 s of 16 thousand, 5 s of 30 thousand, 15 s of 60 thousand.
const MOST_PACKED: usize = 1 << 14;

/// What was asked of all devices. See the module's documentation.
#[derive(Clone, Debug)]
pub struct DeviceRecord {
    devices: Vec<(u32, OneDevice)>,
    events: u32,
    limit: u32,
    planned: usize,
    behind: Option<Kind>,
    /// The most blocks that lived at once on a device.
    most_live: usize,
    /// A request failed, and what the program has given up since.
    failure: Failure,
    searches: bool,
}

/// What is known of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    Open,
    Recovered,
}

impl DeviceRecord {
    /// An empty record that takes `limit` events: 16 bytes each, 32 more for each block that lives, and 8 for each that
    /// other streams used.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self {
            devices: Vec::new(),
            events: 0,
            limit,
            planned: 0,
            behind: None,
            most_live: 0,
            failure: Failure::None,
            searches: false,
        }
    }

    /// The run uses this one of PyTorch's allocators: a plan is to be better than that, and not than both.
    pub fn behind(&mut self, behind: Kind) {
        self.behind = Some(behind);
    }

    fn device(&mut self, device: u32) -> &mut OneDevice {
        let at = self.devices.iter().position(|it| it.0 == device);
        let at = at.unwrap_or_else(|| {
            self.devices.push((device, OneDevice::default()));
            self.devices.len() - 1
        });
        &mut self.devices[at].1
    }

    fn push(&mut self, device: u32, act: Packed) {
        self.device(device).acts.push(act);
        self.events += 1;
    }

    /// Whether one more of anything can be taken of a device, and an end. Where the system has no memory for that, the record is full.
    fn has_room(&mut self, device: u32) -> bool {
        if self.is_full() {
            return false;
        }
        let own = self.device(device);
        let has_room = own.acts.try_reserve(2).is_ok()
            && own.live.try_reserve(1).is_ok()
            && own.vacant.try_reserve(1).is_ok()
            && own.late.try_reserve(1).is_ok();
        if !has_room {
            self.close();
        }
        has_room
    }

    /// It takes no more.
    pub fn close(&mut self) {
        self.limit = self.events;
    }

    /// Memory was handed out to a stream of a device; `id` names it until it is over. False, and nothing is taken, once the
    /// record is full.
    pub fn request(&mut self, (device, stream): (u32, u32), id: u64, bytes: u64) -> bool {
        if !self.has_room(device) {
            return false;
        }
        // A name that is given anew: the end of what had it was not seen.
        self.over(device, id);
        let own = self.device(device);
        let next = own.live.len() as u32;
        let block = own.vacant.pop().unwrap_or(next);
        let live = Live { block, stream, is_planned: bytes >= THRESHOLDS[0], is_shared: false, freed: None };
        own.live.insert(id, live);
        let lives = own.live.len();
        self.most_live = self.most_live.max(lives);
        let bytes = bytes.max(1);
        self.push(device, Packed { bytes, block, stream });
        if bytes >= THRESHOLDS[0] {
            self.planned += 1;
            self.searches |= self.failure == Failure::Recovered;
            self.failure = Failure::None;
        }
        true
    }

    /// There was no memory for a request.
    pub fn failed(&mut self) {
        self.failure = Failure::Open;
    }

    /// The same, when the record was full: nothing is known of what the program does then.
    pub fn failed_late(&mut self) {
        self.searches = true;
    }

    /// What lives was freed, or the cache was emptied: whoever has caught a failure makes room so, and a library that goes on with
    /// less, such as one that looks for workspace, does not.
    fn makes_room(&mut self) {
        if self.failure == Failure::Open {
            self.failure = Failure::Recovered;
        }
    }

    /// Whether the program made room after a request had failed, and went on, as a search for the largest batch does. What it
    /// finds depends on what fits, which any plan changes: none is made. One that ends with its failure has a plan, which may save the next run.
    #[must_use]
    pub fn searches(&self) -> bool {
        self.searches
    }

    /// PyTorch's allocator took a segment of so many bytes, or mapped as many.
    pub fn took(&mut self, device: u32, bytes: u64) {
        if !self.is_full() {
            self.device(device).segments.took(bytes);
        }
    }

    /// It gave as many back: when the cache was emptied, which is said afterwards, or since there was no room.
    pub fn gave(&mut self, device: u32, bytes: u64) {
        if !self.is_full() {
            self.device(device).segments.gave(bytes);
        }
    }

    /// A stream of a device uses memory.
    pub fn used(&mut self, (device, stream): (u32, u32), id: u64) {
        if let Some(it) = self.device(device).live.get_mut(&id) {
            it.is_shared |= it.stream != stream;
        }
    }

    /// Memory of a device was freed. Whether another stream uses it: then it is over once that is done.
    pub fn freed(&mut self, device: u32, id: u64) -> bool {
        let own = self.device(device);
        let next = own.acts.len() as u32;
        let shared = own.live.get_mut(&id).filter(|it| it.is_shared);
        shared.map(|it| it.freed.get_or_insert(next)).is_some()
    }

    /// Memory of a device may be used again by its stream. What is not known is ignored.
    pub fn over(&mut self, device: u32, id: u64) {
        if !self.has_room(device) {
            return;
        }
        let own = self.device(device);
        if let Some(it) = own.live.remove(&id) {
            own.vacant.push(it.block);
            let over = own.acts.len() as u32;
            let late = it.freed.map(|freed| Late { freed, over });
            own.late.extend(late);
            self.push(device, Packed::other(it.block, OVER));
            if it.is_planned {
                self.makes_room();
            }
        }
    }

    /// An iteration is over, on all devices.
    pub fn iteration(&mut self) {
        self.push_on_all(ITERATION);
    }

    /// The cache was emptied, on all devices.
    pub fn emptied(&mut self) {
        self.makes_room();
        let devices = self.devices.iter_mut();
        devices.for_each(|it| it.1.segments.emptied());
        self.push_on_all(CLEAR);
    }

    fn push_on_all(&mut self, what: u32) {
        for at in 0..self.devices.len() {
            self.push_unless_full(self.devices[at].0, what);
        }
    }

    /// The cache of a device was emptied.
    pub fn cleared(&mut self, device: u32) {
        self.push_unless_full(device, CLEAR);
    }

    fn push_unless_full(&mut self, device: u32, what: u32) {
        if self.has_room(device) {
            self.push(device, Packed::other(0, what));
        }
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.events >= self.limit
    }

    /// How many acts it has, of all devices.
    #[must_use]
    pub fn acts_so_far(&self) -> usize {
        self.events as usize
    }

    /// How many requests it has for which there is a place in any plan.
    #[must_use]
    pub fn len(&self) -> usize {
        self.planned
    }

    /// Whether it has no such request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was asked of a device, in order.
    pub fn acts(&self, device: u32) -> impl Iterator<Item = Act> {
        let own = self.devices.iter().filter(move |it| it.0 == device);
        own.flat_map(|it| it.1.acts())
    }

    /// How many requests get their place when the record is replayed on its plans.
    #[must_use]
    pub fn hits(&self, plans: &DevicePlan) -> u64 {
        let hits = self.devices.iter().flat_map(|(device, own)| {
            own.streams(plans.threshold()).into_iter().filter_map(|stream| {
                let own = Stream::from((*device, stream.number));
                let (_, plan) = plans.plans.iter().find(|(it, _)| *it == own)?;
                Some(check_plan(&stream.record, plan).hits)
            })
        });
        hits.sum()
    }

    /// Whether a model was let go of, on a device that counts beside the others.
    fn was_let_go(&self) -> bool {
        let devices = self.devices.iter();
        let all: Vec<(u64, bool)> = devices.map(|it| most_and_whether_let_go(it.1.acts())).collect();
        let largest = all.iter().map(|it| it.0).max().unwrap_or(0);
        all.iter().any(|it| it.1 && it.0 >= largest / LEFT)
    }

    /// Whether a process, which has seconds, leaves short requests to PyTorch's allocator.
    fn is_for_long_ones(&self) -> bool {
        self.behind.is_some() && self.most_live > MOST_PACKED
    }

    /// Plans for the streams that reserve less with one. Asks `stop` as [`plan()`](crate::plan()) does.
    #[must_use]
    pub fn plan(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> DevicePlan {
        let seen = &|_| {};
        self.plan_watched(options, Watch { stop, seen }).0
    }

    /// The same, and says what was found so far; and of each device, how its plans were chosen: of a search's none were tried.
    #[must_use]
    pub fn plan_watched(&self, options: &Options, watch: Watch<'_>) -> (DevicePlan, Vec<(u32, Chosen)>) {
        if self.searches {
            return (DevicePlan::default(), Vec::new());
        }
        let [long, all] = THRESHOLDS;
        let tries = [(long, 0), (all, long), (all, 0)].map(|(threshold, apart_below)| {
            let mut options = Options { device: true, apart_below, behind: self.behind, ..options.clone() };
            options.made_for.threshold = threshold;
            options
        });
        // A region goes back once all of it is idle: beside a model that is gone, a batch that stays would hold what was the model's.
        let was_let_go = self.was_let_go();
        let is_long = self.events > LONG && self.behind.is_none();
        let is_over = &|| is_long && (watch.stop)();
        let devices = self.devices.iter();
        let others = devices.map(|it| Others::of(&it.1, self.behind, is_over));
        let others: Vec<Others<'_>> = others.collect();
        let mut best: Vec<Trial<'_>> = Vec::new();
        let count = if self.is_for_long_ones() { 1 } else { tries.len() };
        for options in &tries[..count] {
            let all = best.is_empty();
            let devices = self.devices.iter().zip(&others);
            let tried: Vec<Trial<'_>> =
                devices.map(|((_, own), others)| Trial::new(own, others, options, watch, all)).collect();
            let short_of = |all: &[Trial<'_>]| all.iter().map(Trial::above_least).sum::<u64>();
            if all || short_of(&tried) < short_of(&best) {
                best = tried;
            }
            let goes_back = was_let_go && best.iter().any(Trial::has_some);
            if goes_back || best.iter().all(Trial::is_enough) || (watch.stop)() {
                break;
            }
        }
        let mut plans: Vec<(Stream, Plan)> = Vec::new();
        let mut chosen = Vec::new();
        let mut without = Without::default();
        for ((device, _), mut trial) in self.devices.iter().zip(best) {
            trial.refine();
            let (made, how) = trial.end();
            if !made.is_empty() {
                without.in_use += how.least;
                without.reserved += how.without.of(self.behind.or(Some(Kind::Torch)));
            }
            let named = |(number, plan)| (Stream::from((*device, number)), plan);
            plans.extend(made.into_iter().map(named));
            chosen.push((*device, how));
        }
        // Records are compared by their lengths, whichever requests a plan has places for.
        for (at, (_, plan)) in plans.iter_mut().enumerate() {
            plan.facts.requests = if at == 0 { self.planned as u64 } else { 0 };
        }
        let is_whole = !plans.is_empty() && !self.is_full();
        (DevicePlan { plans, without: is_whole.then_some(without) }, chosen)
    }
}
