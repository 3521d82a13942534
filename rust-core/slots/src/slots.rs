//! Slots, lanes and cells together: a request in, its place out.
//!
//! Invariants: a place that was handed out overlaps no other until it is released; what the counts say is live is live.
//! A region whose memory is not there (not pinned yet, or unpinned) has nothing in it.

mod clears;
#[cfg(test)]
mod corrupt;
mod lend;
mod needed;
mod threads;
mod view;

use std::collections::HashMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::cells::Cells;
use crate::fit::Fit;
use crate::lane::{Course, Planned};
use crate::layout::{GRANULE, Layout, Mistake, Slot};
use crate::once::Once;
use needed::Needed;
use threads::Holders;
pub use threads::MOST_THREADS;

/// A slot that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which one.
    pub slot: u32,
    /// Where it begins.
    pub address: usize,
}

/// A place between blocks, for a request that is not planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Borrowed {
    /// Where it begins.
    pub address: usize,
    /// The request in whole granules.
    pub bytes: usize,
    region: u32,
    first: u32,
    end: u32,
}

/// A place for a request that is not planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// The slot of the request that it stands for.
    Slot(Taken),
    /// A place between blocks.
    Place(Borrowed),
    /// This slot of the request that it stands for ([`Slots::serve_needed`]), or any place ([`Slots::lend_any`]), once this region is there.
    Needs(Option<u32>, usize),
}

/// A block of a region, as reports show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From the region's begin, in bytes.
    pub offset: usize,
    /// Its length.
    pub bytes: usize,
    /// Whether it was freed, and streams still use it.
    pub pending: bool,
}

/// What was counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that slots served.
    pub hits: u64,
    /// Requests whose slot was not free, or not pinned, and no other of their size that was just passed.
    pub misses: u64,
    /// Requests of lanes that were not planned.
    pub unplanned: u64,
    /// How often a lane lost its place: too many of its requests differed.
    pub drift: u64,
    /// How often a lane found its place again.
    pub resyncs: u64,
    /// How often a lane was given up, since hardly any of its requests was planned any more.
    pub given_up: u64,
    /// Unplanned requests that were served with what was idle.
    pub borrowed: u64,
}

/// What is known of a slot.
#[derive(Clone, Debug)]
struct Place {
    slot: Slot,
    cells: Range<u32>,
    state: State,
}

/// Where lanes learn: the lane's step that a slot serves, and the number of the lane's request.
#[derive(Clone, Copy, Debug, Default)]
struct Serves {
    lane: u32,
    step: u32,
    since: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Live,
    Pending,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Where each region lies; `None` if it does not.
    bases: Vec<Option<usize>>,
    /// Which regions lay somewhere once.
    was_there: Vec<bool>,
    lengths: Vec<usize>,
    places: Vec<Place>,
    /// Of each slot, where lanes learn; else none.
    serves: Vec<Serves>,
    /// Slots by region and offset.
    by_begin: Vec<((u32, usize), u32)>,
    cells: Cells,
    courses: Vec<Course>,
    /// By lane: the steps before which the loop empties the cache.
    clears: Vec<Vec<u32>>,
    /// By thread: its lane.
    lane_of: Vec<Option<u32>>,
    holders: Vec<Holders>,
    /// By their addresses.
    loans: FxHashMap<usize, Loan>,
    /// Where lanes learn: bytes that the program has not freed, of slots and loans. When other streams are done with what it has
    /// freed is chance, and says nothing of where the program is.
    live: usize,
    /// The slot that the last request would have, were its region there.
    needed: Option<(u32, Needed)>,
    /// The same of requests before that whose regions are being had, by slot.
    awaited: HashMap<u32, Needed>,
    /// Of the last request, if it got no slot.
    refused: Option<Refused>,
    once: Option<Once>,
    /// Where lanes learn: the program did otherwise before it needed a region for the first time.
    is_edited: bool,
    /// Of all lanes.
    fit: Fit,
    counts: Counts,
}

/// A request that got no slot.
#[derive(Clone, Copy, Debug)]
struct Refused {
    thread: u32,
    /// Whether it counts as a miss; else as unplanned.
    missed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Loan {
    what: Borrowed,
    pending: bool,
}

impl Slots {
    /// With no region pinned.
    ///
    /// # Errors
    ///
    /// If the layout cannot be used.
    pub fn new(layout: &Layout) -> Result<Self, Mistake> {
        Self::with(layout, false)
    }

    /// The same, and lanes learn: which steps rest, how much is live, how long blocks live. Then a lane whose sizes say little
    /// finds its place, and [`Self::lend`] knows what a place is wanted for. It needs that one thread asks for nearly
    /// all there is, as a stream of a device does.
    ///
    /// # Errors
    ///
    /// If the layout cannot be used.
    pub fn learning(layout: &Layout) -> Result<Self, Mistake> {
        Self::with(layout, true)
    }

    fn with(layout: &Layout, learning: bool) -> Result<Self, Mistake> {
        layout.check()?;
        let cells = Cells::new(layout, learning);
        let place = |&slot: &Slot| Place {
            slot,
            cells: cells.run(slot.region, slot.offset..slot.offset + slot.bytes),
            state: State::Free,
        };
        let bytes = layout.regions.iter().sum();
        let places: Vec<Place> = layout.slots.iter().map(place).collect();
        let course = |lane| {
            let mut course = Course::new(lane, &layout.slots);
            if learning {
                course.learn(bytes, |slot| places[slot as usize].cells.clone(), cells.len());
            }
            course
        };
        let begins = (0_u32..).zip(&layout.slots);
        let mut by_begin: Vec<_> = begins.map(|(index, it)| ((it.region, it.offset), index)).collect();
        by_begin.sort_unstable();
        Ok(Self {
            by_begin,
            bases: vec![None; layout.regions.len()],
            was_there: vec![false; layout.regions.len()],
            lengths: layout.regions.clone(),
            courses: layout.lanes.iter().map(course).collect(),
            clears: layout.lanes.iter().map(|it| it.clears.clone()).collect(),
            serves: match learning {
                true => vec![Serves::default(); places.len()],
                false => Vec::new(),
            },
            places,
            holders: vec![Holders::default(); layout.lanes.len()],
            lane_of: Vec::new(),
            loans: FxHashMap::default(),
            live: 0,
            needed: None,
            awaited: HashMap::new(),
            refused: None,
            once: layout.comes_once().then(Once::default),
            is_edited: false,
            fit: Fit::default(),
            counts: Counts::default(),
            cells,
        })
    }

    /// The place that is planned for a request of `bytes` bytes by a thread, whose number is small. `None` if nothing is
    /// planned for it, or not free.
    #[inline]
    pub fn request(&mut self, thread: u32, bytes: usize) -> Option<Taken> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        self.refused = None;
        if self.has_only_room() {
            self.counts.unplanned += 1;
            return None;
        }
        let taken = self.request_of(thread, bytes);
        // Where only its region is missing, it has a place.
        let has_place = taken.is_some() || self.needed.is_some();
        self.fit.saw(has_place);
        if let Some(once) = &mut self.once {
            once.saw(has_place);
        }
        taken
    }

    #[inline]
    fn request_of(&mut self, thread: u32, bytes: usize) -> Option<Taken> {
        let mut lane = match self.lane_of.get(thread as usize) {
            Some(&Some(lane)) => lane,
            _ => self.assign(thread, bytes)?,
        };
        if self.courses[lane as usize].drift().is_others() {
            return self.unplanned(thread);
        }
        let step = match self.courses[lane as usize].ask(bytes, self.live) {
            Planned::Step(step) => step,
            Planned::FoundStep(step) => {
                self.counts.resyncs += 1;
                step
            }
            Planned::Nothing => {
                let Some(changed) = self.change_lane(thread, lane) else {
                    return self.unplanned(thread);
                };
                self.counts.resyncs += 1;
                lane = changed.0;
                changed.1
            }
        };
        if let Some(taken) = self.take(lane, step) {
            return Some(taken);
        }
        let slot = self.courses[lane as usize].slot(step);
        let region = self.places[slot as usize].slot.region;
        let missed = true;
        let needs = Needed { lane, step, missed };
        let is_missing = self.bases[region as usize].is_none();
        self.needed = is_missing.then_some((slot, needs));
        // Those that it has passed are wanted last of all. Where lanes learn, its own region is had instead: else the next request of
        // this size would find its own place taken.
        let course = &mut self.courses[lane as usize];
        course.missed(step);
        let has_region = !is_missing || self.serves.is_empty();
        let mut passed = has_region.then(|| course.passed(bytes)).into_iter().flatten();
        let taken = passed.find_map(|distance| {
            let step = self.courses[lane as usize].at_distance(distance)?;
            self.take(lane, step)
        });
        if taken.is_none() {
            self.refused = Some(Refused { thread, missed: true });
            self.counts.misses += 1;
        }
        taken
    }

    /// Nothing is planned for the request of this thread.
    fn unplanned(&mut self, thread: u32) -> Option<Taken> {
        self.needed = None;
        self.refused = Some(Refused { thread, missed: false });
        self.counts.unplanned += 1;
        None
    }

    /// Takes a step's slot, if it is free.
    #[inline]
    fn take(&mut self, lane: u32, step: usize) -> Option<Taken> {
        let course = &self.courses[lane as usize];
        let slot = course.slot(step);
        let place = &mut self.places[slot as usize];
        let region = place.slot.region;
        let base = self.bases[region as usize]?;
        if !self.cells.take(region, place.cells.clone()) {
            return None;
        }
        place.state = State::Live;
        if let Some(serves) = self.serves.get_mut(slot as usize) {
            *serves = Serves { lane, step: step as u32, since: course.now() };
            self.live += place.slot.bytes;
        }
        self.counts.hits += 1;
        Some(Taken { slot, address: base + place.slot.offset })
    }

    /// Whether streams still use the slot's block, which was freed.
    pub fn set_pending(&mut self, slot: u32, pending: bool) {
        let place = &mut self.places[slot as usize];
        let state = if pending { State::Pending } else { State::Live };
        let was_live = std::mem::replace(&mut place.state, state) == State::Live;
        let bytes = place.slot.bytes;
        self.is_live(was_live, !pending, bytes);
    }

    /// Nobody uses the slot any more. Returns whether it was in use.
    #[inline]
    pub fn release(&mut self, slot: u32) -> bool {
        let Some(place) = self.places.get_mut(slot as usize) else {
            return false;
        };
        let was = std::mem::replace(&mut place.state, State::Free);
        if was == State::Free {
            return false;
        }
        self.cells.free(place.slot.region, place.cells.clone());
        let bytes = place.slot.bytes;
        self.is_live(was == State::Live, false, bytes);
        if let Some(&Serves { lane, step, since }) = self.serves.get(slot as usize) {
            self.courses[lane as usize].over(step as usize, since);
        }
        true
    }

    /// Whether streams still use what lies in the borrowed place at this address, which was freed.
    pub fn set_pending_at(&mut self, address: usize, pending: bool) {
        if let Some(loan) = self.loans.get_mut(&address) {
            let was_pending = std::mem::replace(&mut loan.pending, pending);
            let bytes = loan.what.bytes;
            self.is_live(!was_pending, !pending, bytes);
        }
    }

    /// Nobody uses the borrowed place at this address any more. Returns whether there was one.
    pub fn give_back(&mut self, address: usize) -> bool {
        let Some(loan) = self.loans.remove(&address) else {
            return false;
        };
        let Borrowed { region, first, end, bytes, .. } = loan.what;
        self.is_live(!loan.pending, false, bytes);
        self.cells.free(region, first..end);
        true
    }

    /// An iteration of this thread's is over.
    pub fn iteration(&mut self, thread: u32) {
        if let Some(&Some(lane)) = self.lane_of.get(thread as usize) {
            let strayed = self.courses[lane as usize].iteration();
            self.counts.resyncs += u64::from(strayed);
        }
    }

    /// The region lies at this address from now on.
    pub fn pinned(&mut self, region: usize, base: usize) {
        self.bases[region] = Some(base);
        self.was_there[region] = true;
    }
}
