//! Replays a record on a plan, to check that the plan serves it.
//!
//! Requests find their slots by a rule ([`crate::cursor`]) that is simpler than a run's; a slot is granted if its bytes are free
//! in a plain map of what is taken. Shares no other code with what finds the places, so that a mistake there shows here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::cursor::Cursor;
use crate::file::{Lane, Plan, Slot};
use crate::record::{NEVER, Record};

/// The most comparisons for requests that are served with what is idle: a second or two.
const MOST_COMPARISONS: u64 = 300_000_000;

/// What came of replaying a record on a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Requests that got their slot.
    pub hits: u64,
    /// Requests that found a slot whose bytes were not free. They count as missed, too.
    pub busy: u64,
    /// Requests without a slot, counted from 0, in order.
    pub missed: Vec<u32>,
    /// Of those, the ones for which there was no room.
    pub(crate) unserved: u64,
}

/// Serves requests that have no slot.
pub(crate) trait Beside {
    /// Whether there is room for a request.
    fn request(&mut self, number: u32) -> bool;
    /// A request that there was room for is over.
    fn over(&mut self, number: u32);
}

/// Replays `record` on `plan`, which holds its invariants: which requests find their slots.
#[must_use]
pub fn check_plan(record: &Record, plan: &Plan) -> Replayed {
    replay(record, plan, None)
}

/// The same: the slot that each request gets.
#[must_use]
pub fn places(record: &Record, plan: &Plan) -> Vec<Option<Slot>> {
    let mut places = vec![None; record.len()];
    let granted = &mut |number: u32, slot| places[number as usize] = Some(slot);
    replay_with(record, plan, None, granted);
    places
}

/// The same; requests that have no slot are served by `beside`, or else with what slots leave idle.
pub(crate) fn replay(record: &Record, plan: &Plan, beside: Option<&mut dyn Beside>) -> Replayed {
    replay_with(record, plan, beside, &mut |_, _| {})
}

fn replay_with(
    record: &Record,
    plan: &Plan,
    beside: Option<&mut dyn Beside>,
    granted: &mut dyn FnMut(u32, Slot),
) -> Replayed {
    let mut cursors: Vec<Cursor> = plan.lanes.iter().map(|it| cursor(plan, it)).collect();
    let mut replay = Replay { taken: Taken::new(plan), ends: BinaryHeap::new(), beside, replayed: Replayed::default() };
    let mut marks = record.marks.iter().copied().peekable();
    for (number, request) in (0..).zip(&record.requests) {
        while marks.next_if(|&mark| mark < request.begin).is_some() {
            cursors.iter_mut().for_each(Cursor::mark);
        }
        replay.end_before(request.begin);
        let lane = request.lane as usize;
        let bytes = request.bytes();
        let entry = cursors.get_mut(lane).and_then(|it| it.next(bytes));
        let slot = entry.map(|entry| slot_of(plan, lane, entry));
        let place = replay.place(number, bytes, slot, granted);
        if request.over != NEVER {
            replay.ends.push(Reverse((request.over, number, place)));
        }
    }
    replay.replayed
}

/// The slot that an entry of a lane names.
fn slot_of(plan: &Plan, lane: usize, entry: usize) -> Slot {
    let Lane { prologue, period, .. } = &plan.lanes[lane];
    let slot = prologue.get(entry).unwrap_or_else(|| &period[entry - prologue.len()]);
    plan.slots[*slot as usize]
}

/// A replay under way.
struct Replay<'r> {
    taken: Taken,
    /// When a request is over, its number and its place.
    ends: BinaryHeap<Reverse<(u32, u32, Option<Place>)>>,
    beside: Option<&'r mut dyn Beside>,
    replayed: Replayed,
}

impl Replay<'_> {
    /// Gives back what requests have that are over before `moment`.
    fn end_before(&mut self, moment: u32) {
        while let Some(&Reverse((over, number, place))) = self.ends.peek()
            && over < moment
        {
            self.ends.pop();
            match (place, &mut self.beside) {
                (Some(place), _) => drop(self.taken.map.remove(&place)),
                (None, Some(beside)) => beside.over(number),
                (None, None) => {}
            }
        }
    }

    /// Where a request goes: to its slot, which is `granted`, if no other has its bytes, or else to what slots leave idle. Nowhere
    /// if it is served beside the plan, or not at all.
    fn place(
        &mut self,
        number: u32,
        bytes: u64,
        slot: Option<Slot>,
        granted: &mut dyn FnMut(u32, Slot),
    ) -> Option<Place> {
        let free = slot.filter(|slot| self.taken.is_free(*slot));
        if let Some(slot) = free {
            self.replayed.hits += 1;
            granted(number, slot);
            return Some(self.taken.take(slot));
        }
        self.replayed.missed.push(number);
        self.replayed.busy += u64::from(slot.is_some());
        let beside = self.beside.as_mut()?;
        if beside.request(number) {
            return None;
        }
        let idle = self.taken.idle(bytes);
        self.replayed.unserved += u64::from(idle.is_none());
        idle.map(|slot| self.taken.take(slot))
    }
}

fn cursor(plan: &Plan, lane: &Lane) -> Cursor {
    let size = |&slot: &u32| plan.slots[slot as usize].bytes;
    let sizes = lane.prologue.iter().chain(&lane.period).map(size);
    Cursor::new(sizes.collect(), lane.prologue.len(), lane.turns)
}

/// A region, and bytes from its begin.
type Place = (u32, u64);

/// Bytes that are taken: where they begin and where they end.
struct Taken {
    map: BTreeMap<Place, u64>,
    /// The lengths of regions that slots name; 0 of others.
    lengths: Vec<u64>,
    comparisons: u64,
}

impl Taken {
    fn new(plan: &Plan) -> Self {
        let mut lengths = vec![0; plan.regions.len()];
        for slot in &plan.slots {
            lengths[slot.region as usize] = plan.regions[slot.region as usize];
        }
        Self { map: BTreeMap::new(), lengths, comparisons: 0 }
    }

    /// Whether nobody has any of a slot's bytes.
    fn is_free(&self, slot: Slot) -> bool {
        let end = (slot.region, slot.offset + slot.bytes);
        let before = self.map.range(..end).next_back();
        before.is_none_or(|(&(region, _), &until)| region != slot.region || until <= slot.offset)
    }

    fn take(&mut self, slot: Slot) -> Place {
        let place = (slot.region, slot.offset);
        self.map.insert(place, slot.offset + slot.bytes);
        place
    }

    /// The shortest place of so many bytes in the first region that has one.
    fn idle(&mut self, bytes: u64) -> Option<Slot> {
        self.comparisons += self.map.len() as u64;
        if self.comparisons > MOST_COMPARISONS {
            return None;
        }
        (0_u32..).zip(&self.lengths).find_map(|(region, &length)| {
            let ends = self.map.range((region, 0)..(region + 1, 0));
            let mut free_from = 0;
            let gaps = ends.map(|(&(_, from), &to)| (from, to)).chain([(length, length)]);
            let gaps = gaps.map(|(from, to)| (from - std::mem::replace(&mut free_from, to), from));
            let (gap, end) = gaps.filter(|&(gap, _)| gap >= bytes).min()?;
            Some(Slot { bytes, region, offset: end - gap })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinbuddy_events::Op;

    /// Requests for 8192 bytes and then for 4096, whose slot lies in that of the first.
    fn replayed(frees_between: bool) -> (Replayed, Vec<Option<Slot>>) {
        let plan = Plan {
            regions: vec![8192],
            slots: vec![(8192, 0, 0).into(), (4096, 0, 4096).into()],
            lanes: vec![Lane { period: vec![0, 1], ..Lane::default() }],
            ..Plan::default()
        };
        let mut record = Record::new(u32::MAX);
        record.push(Op::request(1, 8192));
        if frees_between {
            record.push(Op::free(1));
        }
        record.push(Op::request(2, 4096));
        (check_plan(&record, &plan), places(&record, &plan))
    }

    #[test]
    fn a_slot_is_granted_only_if_no_request_has_any_of_its_bytes() {
        let (one, other) = ((8192, 0, 0).into(), (4096, 0, 4096).into());
        let (tried, places) = replayed(false);
        assert_eq!((tried.hits, tried.busy), (1, 1));
        assert_eq!(tried.missed, [1]);
        assert_eq!(places, [Some(one), None]);
        let (tried, places) = replayed(true);
        assert_eq!((tried.hits, tried.busy), (2, 0));
        assert_eq!(places, [Some(one), Some(other)]);
    }
}
