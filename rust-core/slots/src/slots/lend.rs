//! Places for requests that no slot serves: what is idle, and not wanted soon.

use std::ops::Range;

use crate::cells::Wanted;
use crate::lane::{Course, Unserved};
use crate::layout::GRANULE;

use super::{Borrowed, Lent, Loan, Needed, Place, Slots};

/// What is lent is not wanted in at least so many steps of any lane, if there is such a place; steps further ahead
/// than the others make no difference.
const FEWEST_STEPS: usize = 2;
const MOST_STEPS: usize = 1 << 10;

/// A request takes no place from one that is more than so many times as long. Found by trial: twice as long costs data-parallel
/// trainings whose streams are late one point and a half, and eight times as long gains as much as it loses elsewhere.
const LONGER: usize = 4;

/// What is lent where slots are takes at most so much: its own bytes, and half as many again for the rest of its last cell. In long
/// regions cells are long, and a short request is better off elsewhere.
fn most(bytes: usize) -> usize {
    bytes.saturating_add(bytes / 2)
}

/// A free run of cells.
struct Found {
    region: u32,
    base: usize,
    /// How many of them are wanted soon.
    wanted: u32,
    run: Range<u32>,
}

impl Slots {
    /// So many bytes were live, or are now.
    pub(super) fn is_live(&mut self, was_live: bool, is_live: bool, bytes: usize) {
        if was_live != is_live && !self.serves.is_empty() {
            self.live = if is_live { self.live + bytes } else { self.live - bytes };
        }
    }

    /// What is idle, for a request that no slot serves: what lanes want last, since who borrows it may have it for
    /// long. O(cells + steps) for each time that it looks four times as far ahead.
    pub fn borrow(&mut self, bytes: usize) -> Option<Borrowed> {
        if self.has_only_room() {
            return self.lend_any(bytes);
        }
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
        Some(self.grant(bytes, found))
    }

    /// What is idle, whoever wants it, for a request that finds no other memory. O(cells / 64).
    pub fn lend_any(&mut self, bytes: usize) -> Option<Borrowed> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        let all = self.bases.len() as u32;
        self.cells.looked();
        let found = self.best_fit(bytes, usize::MAX, 0..all, None)?;
        Some(self.grant(bytes, found))
    }

    /// For the last request of this thread, if it got no slot and lanes learn: the slot of the request that it may stand for, the
    /// shortest place that no lane wants for as long as such a request lives, or the one of which the least is wanted. While the plan
    /// fits poorly, the shortest place, whoever wants it: what is kept for the plan's requests is seldom asked for. Else the shortest
    /// region that is not there and long enough: later it would lie beside what others have instead. O(cells / 64) and
    /// the steps for which it lives; O(cells) where the least is wanted.
    pub fn lend(&mut self, thread: u32, bytes: usize) -> Option<Lent> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        let lane = (*self.lane_of.get(thread as usize)?)?;
        self.lend_idle(thread, lane, bytes).or_else(|| {
            let enough = self.missing().filter(|it| it.1 >= bytes);
            let (region, _) = enough.min_by_key(|it| it.1)?;
            self.may_take(region, lane, bytes).then_some(Lent::Needs(None, region))
        })
    }

    /// The same of the regions that are there, and of slots. `bytes` are whole granules.
    fn lend_idle(&mut self, thread: u32, lane: u32, bytes: usize) -> Option<Lent> {
        let own = self.regions_with_slots() as u32;
        let all = self.bases.len() as u32;
        if let Some(found) = self.best_fit(bytes, usize::MAX, own..all, None) {
            return Some(Lent::Place(self.grant(bytes, found)));
        }
        let course = &self.courses[lane as usize];
        let step = match course.last_unserved() {
            Unserved::InsteadOf(step) if !self.fit.is_poor() || self.lacks(course, step) => step,
            _ => {
                self.cells.looked();
                let found = self.best_fit(bytes, most(bytes), 0..own, None)?;
                return Some(Lent::Place(self.grant(bytes, found)));
            }
        };
        let steps = course.life(step).unwrap_or_else(|| course.len());
        let (room, own_slot) = (course.bytes(step), course.slot_at(step));
        if room.is_some_and(|it| (bytes..=2 * bytes).contains(&it))
            && let Some(refused) = self.refused.filter(|it| it.thread == thread)
        {
            let (slot, missed) = (course.slot(step), refused.missed);
            let needed = Needed { lane, step, missed };
            let region = self.places[slot as usize].slot.region as usize;
            if self.bases[region].is_none() {
                if !self.may_take(region, lane, bytes) {
                    return None;
                }
                self.awaited.insert(slot, needed);
                return Some(Lent::Needs(Some(slot), region));
            }
            if let Some(taken) = self.serve(needed) {
                self.refused = None;
                return Some(Lent::Slot(taken));
            }
        }
        // The first of these is the step that it may stand for.
        let wanted = self.wanted(steps + 1);
        let found = self
            .best_fit(bytes, most(bytes), 0..own, Some(&wanted))
            .or_else(|| self.cheapest(bytes, 0..own, own_slot, steps))?;
        Some(Lent::Place(self.grant(bytes, found)))
    }

    /// Whether the region of this step's slot is not there.
    fn lacks(&self, course: &Course, step: usize) -> bool {
        let slot = course.slot_at(step).map(|it| &self.places[it as usize].slot);
        slot.is_some_and(|it| self.bases[it.region as usize].is_none())
    }

    /// The place of which the least is wanted in the next steps, and nothing by a slot that is [`LONGER`]: so nothing much longer
    /// than the request has to go elsewhere for it. The slot that it stands for is idle meanwhile.
    fn cheapest(&self, bytes: usize, within: Range<u32>, stands_for: Option<u32>, steps: usize) -> Option<Found> {
        // Where nothing that is idle is long enough, nothing has to be weighed.
        self.best_fit(bytes, usize::MAX, within.clone(), None)?;
        let others = || {
            let next = self.courses.iter().flat_map(|it| it.next_slots(steps + 1));
            let others = next.filter(|&slot| Some(slot) != stands_for);
            others.map(|slot| &self.places[slot as usize])
        };
        let longer = others().filter(|it| it.slot.bytes / LONGER > bytes);
        let cells = |it: &Place| it.cells.clone();
        let kept = self.cells.wanted(longer.map(cells));
        let wanted = self.cells.wanted(others().map(cells));
        let found = within.filter_map(|region| {
            let base = self.bases[region as usize]?;
            let most = most(bytes);
            let (cost, run) = self.cells.cheapest(region, bytes, most, &wanted, &kept)?;
            Some((cost, region, base, run))
        });
        let (_, region, base, run) = found.min_by_key(|it| it.0)?;
        let wanted = 0;
        Some(Found { region, base, wanted, run })
    }

    /// The shortest run that is long enough, in some of the regions.
    fn best_fit(&self, bytes: usize, most: usize, within: Range<u32>, wanted: Option<&Wanted>) -> Option<Found> {
        let found = within.filter_map(|region| {
            let base = self.bases[region as usize]?;
            let (length, run) = self.cells.best_fit(region, bytes, most, wanted)?;
            Some((length, region, base, run))
        });
        let (_, region, base, run) = found.min_by_key(|it| it.0)?;
        let wanted = 0;
        Some(Found { region, base, wanted, run })
    }

    /// What the next steps of all lanes want.
    fn wanted(&self, steps: usize) -> Wanted {
        let next = self.courses.iter().flat_map(|it| it.next_slots(steps));
        let runs = next.map(|slot| self.places[slot as usize].cells.clone());
        self.cells.wanted(runs)
    }

    fn grant(&mut self, bytes: usize, found: Found) -> Borrowed {
        let Found { region, base, run, .. } = found;
        let taken = self.cells.take(region, run.clone());
        debug_assert!(taken, "a free run");
        let what =
            Borrowed { address: base + self.cells.start(run.start), bytes, region, first: run.start, end: run.end };
        let pending = false;
        self.loans.insert(what.address, Loan { what, pending });
        self.is_live(false, true, bytes);
        self.counts.borrowed += 1;
        what
    }

    /// The place of so many bytes of which the fewest cells are wanted in the next steps.
    fn find(&self, bytes: usize, steps: usize) -> Option<Found> {
        let cells = self.wanted(steps);
        let regions = (0_u32..).zip(&self.bases);
        let found = regions.filter_map(|(region, base)| {
            let base = (*base)?;
            let (wanted, run) = self.cells.find(region, bytes, &cells)?;
            Some(Found { region, base, wanted, run })
        });
        found.min_by_key(|it| it.wanted)
    }
}
