//! Slots, lanes and cells together: a request in, its place out.
//!
//! Invariants: a place that was handed out overlaps no other until it is released; what the counts say is live is live.
//! A region whose memory is not there (not pinned yet, or unpinned) has nothing in it.

mod view;

use std::ops::Range;

use crate::cells::Cells;
use crate::lane::{Course, Said};
use crate::layout::{GRANULE, Layout, Mistake, Slot};

/// The most threads that can have a lane; those that come later have none.
const MOST_THREADS: usize = 1 << 16;

/// What is lent is not wanted in at least so many steps of any lane, if there is such a place; steps further ahead
/// than the others make no difference.
const FEWEST_STEPS: usize = 2;
const MOST_STEPS: usize = 1 << 10;

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
    /// How often a lane found its place again.
    pub resyncs: u64,
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
    lengths: Vec<usize>,
    places: Vec<Place>,
    /// Slots by region and offset.
    by_begin: Vec<((u32, usize), u32)>,
    cells: Cells,
    courses: Vec<Course>,
    /// By thread: its lane.
    lane_of: Vec<Option<u32>>,
    has_thread: Vec<bool>,
    loans: Vec<Loan>,
    counts: Counts,
}

/// A free run of cells.
struct Found {
    region: u32,
    base: usize,
    /// How many of them are wanted soon.
    wanted: u32,
    run: Range<u32>,
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
        layout.check()?;
        let cells = Cells::new(layout);
        let place = |&slot: &Slot| Place {
            slot,
            cells: cells.run(slot.region, slot.offset..slot.offset + slot.bytes),
            state: State::Free,
        };
        let course = |lane| Course::new(lane, &layout.slots);
        let begins = (0_u32..).zip(&layout.slots);
        let mut by_begin: Vec<_> = begins
            .map(|(index, it)| ((it.region, it.offset), index))
            .collect();
        by_begin.sort_unstable();
        Ok(Self {
            by_begin,
            bases: vec![None; layout.regions.len()],
            lengths: layout.regions.clone(),
            places: layout.slots.iter().map(place).collect(),
            courses: layout.lanes.iter().map(course).collect(),
            has_thread: vec![false; layout.lanes.len()],
            lane_of: Vec::new(),
            loans: Vec::new(),
            counts: Counts::default(),
            cells,
        })
    }

    /// The place that is planned for a request of `bytes` bytes by a thread, whose number is small. `None` if nothing is
    /// planned for it, or not free.
    #[inline]
    pub fn request(&mut self, thread: u32, bytes: usize) -> Option<Taken> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        let lane = match self.lane_of.get(thread as usize) {
            Some(&Some(lane)) => lane,
            _ => self.assign(thread, bytes)?,
        };
        let slot = match self.courses[lane as usize].ask(bytes) {
            Said::Slot(slot) => slot,
            Said::Found(slot) => {
                self.counts.resyncs += 1;
                slot
            }
            Said::Nothing => {
                self.counts.unplanned += 1;
                return None;
            }
        };
        if let Some(taken) = self.take(slot) {
            return Some(taken);
        }
        // Those that it has passed are wanted last of all.
        let passed = self.courses[lane as usize].passed(bytes);
        let taken = passed.into_iter().find_map(|slot| self.take(slot));
        self.counts.misses += u64::from(taken.is_none());
        taken
    }

    /// Takes a slot, if it is free.
    #[inline]
    fn take(&mut self, slot: u32) -> Option<Taken> {
        let place = &mut self.places[slot as usize];
        let region = place.slot.region;
        let base = self.bases[region as usize]?;
        if !self.cells.take(region, place.cells.clone()) {
            return None;
        }
        place.state = State::Live;
        self.counts.hits += 1;
        Some(Taken {
            slot,
            address: base + place.slot.offset,
        })
    }

    /// What is idle, for a request that no slot serves: what lanes want last, since who borrows it may have it for
    /// long. O(cells + steps) for each time that it looks four times as far ahead.
    pub fn borrow(&mut self, bytes: usize) -> Option<Borrowed> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        let longest = self.courses.iter().map(Course::len).max().unwrap_or(0);
        let mut found = self.find(bytes, FEWEST_STEPS)?;
        let mut steps = FEWEST_STEPS * 4;
        while found.wanted == 0 && steps < 4 * longest.min(MOST_STEPS) {
            match self.find(bytes, steps) {
                Some(it) if it.wanted == 0 => found = it,
                _ => break,
            }
            steps *= 4;
        }
        let Found {
            region, base, run, ..
        } = found;
        let taken = self.cells.take(region, run.clone());
        debug_assert!(taken, "a free run");
        let what = Borrowed {
            address: base + self.cells.start(run.start),
            bytes,
            region,
            first: run.start,
            end: run.end,
        };
        let pending = false;
        self.loans.push(Loan { what, pending });
        self.counts.borrowed += 1;
        Some(what)
    }

    /// The place of so many bytes of which the fewest cells are wanted in the next steps.
    fn find(&self, bytes: usize, steps: usize) -> Option<Found> {
        let soon = self.courses.iter().flat_map(|it| it.soon(steps));
        let runs = soon.map(|slot| self.places[slot as usize].cells.clone());
        let cells = self.cells.wanted(runs);
        let regions = (0_u32..).zip(&self.bases);
        let found = regions.filter_map(|(region, base)| {
            let (wanted, run) = self.cells.find(region, bytes, &cells)?;
            let base = (*base)?;
            Some(Found {
                region,
                base,
                wanted,
                run,
            })
        });
        found.min_by_key(|it| it.wanted)
    }

    /// Whether streams still use the slot's block, which was freed.
    pub fn set_pending(&mut self, slot: u32, pending: bool) {
        let state = if pending { State::Pending } else { State::Live };
        self.places[slot as usize].state = state;
    }

    /// Nobody uses the slot any more. Returns whether it was in use.
    #[inline]
    pub fn release(&mut self, slot: u32) -> bool {
        let Some(place) = self.places.get_mut(slot as usize) else {
            return false;
        };
        if place.state == State::Free {
            return false;
        }
        place.state = State::Free;
        self.cells.free(place.slot.region, place.cells.clone());
        true
    }

    /// Whether streams still use what lies in the borrowed place at this address, which was freed.
    pub fn set_pending_at(&mut self, address: usize, pending: bool) {
        let mut loans = self.loans.iter_mut();
        if let Some(loan) = loans.find(|it| it.what.address == address) {
            loan.pending = pending;
        }
    }

    /// Nobody uses the borrowed place at this address any more. Returns whether there was one.
    pub fn give_back(&mut self, address: usize) -> bool {
        let at = self.loans.iter().position(|it| it.what.address == address);
        let Some(at) = at else { return false };
        let Borrowed {
            region, first, end, ..
        } = self.loans.swap_remove(at).what;
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
    }

    /// Regions in which nothing lies any more, with their addresses: they are the caller's, to be unpinned.
    pub fn take_idle(&mut self) -> Vec<(usize, Range<usize>)> {
        let idle = (0..self.bases.len()).filter(|&region| self.cells.is_idle(region as u32));
        let idle: Vec<usize> = idle.collect();
        let take = |region: usize| {
            let base = self.bases[region].take()?;
            Some((region, base..base + self.lengths[region]))
        };
        idle.into_iter().filter_map(take).collect()
    }

    /// Gives a thread a lane that nobody has: the first that may begin with this request, else the first.
    #[cold]
    fn assign(&mut self, thread: u32, bytes: usize) -> Option<u32> {
        let index = thread as usize;
        let free = || (0..self.courses.len()).filter(|&lane| !self.has_thread[lane]);
        let fitting = free().find(|&lane| self.courses[lane].may_begin_with(bytes));
        let lane = fitting.or_else(|| free().next());
        let Some(lane) = lane.filter(|_| index < MOST_THREADS) else {
            self.counts.unplanned += 1;
            return None;
        };
        if index >= self.lane_of.len() {
            self.lane_of.resize(index + 1, None);
        }
        self.has_thread[lane] = true;
        self.lane_of[index] = Some(lane as u32);
        Some(lane as u32)
    }
}
