//! The set of segments: adopts them, picks the one that serves a request, removes idle ones.
//!
//! Knows segments by their ids (`slots`), their kinds, homes and order; knows no policy (sizes,
//! thresholds) and keeps no statistics. A dedicated region is a segment too, in another index.
//!
//! Invariants: a segment that is not dedicated is of the kind `Idle` exactly if it has no block. The
//! fill order of its home has one correct entry for each segment that is not dedicated, and the dedicated
//! index has one for each idle dedicated region.

use std::mem;

use crate::dedicated::IdleDedicated;
use crate::engine::Of;
use crate::error::{AdoptError, Misuse};
use crate::fill_order::FillOrder;
use crate::handover::{IdleSegment, NewSegment};
use crate::kind::{Class, SegmentKind};
use crate::records::State;
use crate::segment::Segment;
use crate::units::{Block, Granules, Home, SegmentId};

mod slots;

use slots::{Resident, Slots};

/// What is free at a home.
#[derive(Debug, Default)]
pub(crate) struct Indexes {
    pub(crate) order: FillOrder,
    pub(crate) dedicated: IdleDedicated,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    slots: Slots,
    /// Where blocks are taken from.
    home: Home,
    /// Of the home whose turn it is: with one home, nothing else is looked at.
    pub(crate) here: Indexes,
    /// Of the others, by home; empty for the one whose turn it is.
    elsewhere: Vec<Indexes>,
    adoptions: u64,
    releases: u64,
}

impl Arena {
    /// The home whose turn it is.
    #[inline]
    pub(crate) fn home(&self) -> Home {
        self.home
    }

    /// Blocks are taken from this home from now on.
    #[cold]
    pub(crate) fn turn_to(&mut self, home: Home) {
        if home == self.home {
            return;
        }
        let there = mem::take(self.elsewhere(home));
        let here = mem::replace(&mut self.here, there);
        let left = mem::replace(&mut self.home, home);
        *self.elsewhere(left) = here;
    }

    /// The indexes of a home.
    #[inline]
    fn of(&mut self, home: Home) -> &mut Indexes {
        if home == self.home { &mut self.here } else { self.elsewhere(home) }
    }

    #[cold]
    fn elsewhere(&mut self, home: Home) -> &mut Indexes {
        let place = usize::from(home.0);
        if self.elsewhere.len() <= place {
            self.elsewhere.resize_with(place + 1, Indexes::default);
        }
        &mut self.elsewhere[place]
    }

    /// The indexes of all homes.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (Home, &Indexes)> {
        let others = (0..=u8::MAX).map(Home).zip(&self.elsewhere);
        let others = others.filter(|(home, _)| *home != self.home);
        others.chain([(self.home, &self.here)])
    }

    /// A live block of `length >= 1` granules, at the lowest offset in the fullest segment of the class
    /// that has room, else in an idle segment.
    #[inline]
    pub(crate) fn take(&mut self, length: Granules, class: Class) -> Option<Block> {
        let place = self.here.order.find(length.get(), class)?;
        self.take_at(place, length, class)
    }

    /// The same, never in an idle segment.
    #[inline]
    pub(crate) fn take_in_use(&mut self, length: Granules, class: Class) -> Option<Block> {
        let place = self.here.order.find_in_use(length.get(), class).ok()?;
        self.take_at(place, length, class)
    }

    /// As [`Self::take`], else in the fullest segment of the other class.
    pub(crate) fn take_anywhere(&mut self, length: Granules, class: Class) -> Option<Block> {
        let own = self.here.order.find(length.get(), class);
        let other = || self.here.order.find_in_use(length.get(), class.other()).ok();
        let place = own.or_else(other)?;
        self.take_at(place, length, class)
    }

    /// The kind and the length of the segment from which [`Self::take`] would serve.
    pub(crate) fn serving(&self, length: Granules, class: Class) -> Option<(SegmentKind, usize)> {
        let place = self.here.order.find(length.get(), class)?;
        let resident = self.slots.at(self.here.order.slot_at(place))?;
        Some((resident.kind, resident.segment.region().bytes))
    }

    // Inlined always, so that the block stays in registers.
    #[inline(always)]
    fn take_at(&mut self, place: usize, length: Granules, class: Class) -> Option<Block> {
        let index = self.here.order.slot_at(place);
        let (segment, resident) = self.slots.at_mut(index)?;
        let start = resident.segment.take(length)?;
        if resident.kind == SegmentKind::Idle {
            resident.kind = class.kind();
        }
        let entry = resident.entry(index);
        self.here.order.update(place, entry);
        Some(Block { segment, offset: start.bytes(), bytes: length.bytes() })
    }

    /// A live block of `length >= 1` granules at the start of the smallest idle dedicated region
    /// that holds it, if that has at most `most` granules.
    pub(crate) fn take_dedicated(&mut self, length: Granules, most: Granules) -> Option<Block> {
        let fit = self.here.dedicated.find(length, most)?;
        let (segment, resident) = self.slots.at_mut(fit.slot as usize)?;
        let start = resident.segment.take(length)?;
        let was_idle = self.here.dedicated.remove(&fit);
        debug_assert!(was_idle, "a dedicated region without an entry");
        Some(Block { segment, offset: start.bytes(), bytes: length.bytes() })
    }

    /// Live to pending. Free granules stay the same, and so does the fill order.
    #[inline]
    pub(crate) fn defer(&mut self, block: Block) -> Result<(), Misuse> {
        self.slots.get_mut(block.segment)?.segment.defer(block)
    }

    /// Pending to live: a cached block counts as live.
    #[inline]
    pub(crate) fn cache(&mut self, block: Block) -> Result<(), Misuse> {
        self.slots.get_mut(block.segment)?.segment.cache(block)
    }

    /// Live or pending to free; returns the state before, and where it lies.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) -> Result<(State, Home), Misuse> {
        let index = block.segment.slot();
        self.releases += 1;
        let now = self.releases;
        let resident = self.slots.get_mut(block.segment)?;
        let before = resident.entry(index);
        let was = (resident.segment.release(block)?, resident.segment.home);
        if resident.is_dedicated() {
            // A dedicated region has one block.
            resident.idle_since = now;
            let fit = resident.fit(index);
            self.of(was.1).dedicated.insert(fit);
            return Ok(was);
        }
        if resident.segment.is_idle() {
            resident.kind = SegmentKind::Idle;
            resident.idle_since = now;
        }
        let after = resident.entry(index);
        let order = &mut self.of(was.1).order;
        let place = order.place_of(&before);
        debug_assert!(place.is_some(), "a segment without an entry in the fill order");
        if let Some(place) = place {
            order.update(place, after);
        }
        Ok(was)
    }

    /// Adopts a region of any length, as a segment or dedicated. O(log S) in the number of segments.
    pub(crate) fn adopt(&mut self, NewSegment(segment): NewSegment, dedicated: bool) -> Result<SegmentId, AdoptError> {
        let (id, resident) = self.slots.insert(Resident {
            segment,
            age: self.adoptions,
            idle_since: self.releases,
            kind: if dedicated { SegmentKind::Dedicated } else { SegmentKind::Idle },
        })?;
        self.adoptions += 1;
        let home = resident.segment.home;
        if dedicated {
            let fit = resident.fit(id.slot());
            self.of(home).dedicated.insert(fit);
        } else {
            let entry = resident.entry(id.slot());
            self.of(home).order.insert(entry);
        }
        Ok(id)
    }

    /// Removes wholly idle segments, dedicated ones first and the oldest first of each kind, until they
    /// add up to at least `at_least` bytes or none is left. O(S log S).
    pub(crate) fn take_idle(&mut self, at_least: usize) -> Vec<IdleSegment> {
        self.take_idle_but(None, at_least)
    }

    /// The same, except `spared`.
    pub(crate) fn take_idle_but(&mut self, spared: Option<SegmentId>, at_least: usize) -> Vec<IdleSegment> {
        let mut idle = self.idle_but(spared, |it| (!it.is_dedicated(), it.age));
        idle.sort_unstable();
        self.take_slots(idle.into_iter().map(|(_, slot)| slot), at_least)
    }

    /// The same, the least recently used first, and dedicated ones last or never.
    pub(crate) fn take_least_used(&mut self, spared: Option<SegmentId>, at_least: usize, of: Of) -> Vec<IdleSegment> {
        let mut idle = self.idle_but(spared, |it| (it.is_dedicated(), it.idle_since, it.age));
        idle.retain(|((dedicated, ..), _)| of == Of::All || !dedicated);
        idle.sort_unstable();
        self.take_slots(idle.into_iter().map(|(_, slot)| slot), at_least)
    }

    /// Where the order of releases is; whatever becomes idle or is adopted from now on comes later.
    pub(crate) fn mark(&mut self) -> u64 {
        let now = self.releases;
        self.releases += 1;
        now
    }

    /// Removes those that have been idle since before a mark, the least recently used first. O(S log S).
    pub(crate) fn take_idle_since_before(&mut self, mark: u64) -> Vec<IdleSegment> {
        let mut idle = self.idle_but(None, |it| (it.idle_since, it.age));
        idle.retain(|((since, _), _)| *since <= mark);
        idle.sort_unstable();
        self.take_slots(idle.into_iter().map(|(_, slot)| slot), usize::MAX)
    }

    /// Removes the segment `id`, if it is idle.
    pub(crate) fn take_if_idle(&mut self, id: SegmentId) -> Vec<IdleSegment> {
        let idle = self.get(id).is_some_and(Segment::is_idle);
        self.take_slots(idle.then_some(id.slot()).into_iter(), usize::MAX)
    }

    /// The idle segments' slots with their keys.
    fn idle_but<K>(&self, spared: Option<SegmentId>, key: impl Fn(&Resident) -> K) -> Vec<(K, usize)> {
        self.iter()
            .filter(|(id, resident)| resident.segment.is_idle() && Some(*id) != spared)
            .map(|(id, resident)| (key(resident), id.slot()))
            .collect()
    }

    /// Removes these, until they add up to at least `at_least` bytes.
    fn take_slots(&mut self, slots: impl Iterator<Item = usize>, at_least: usize) -> Vec<IdleSegment> {
        let mut taken = Vec::new();
        let mut bytes: usize = 0;
        for index in slots {
            if bytes >= at_least {
                break;
            }
            let Some(resident) = self.slots.remove(index) else {
                continue;
            };
            let dedicated = resident.is_dedicated();
            if dedicated {
                let was_idle = self.of(resident.segment.home).dedicated.remove(&resident.fit(index));
                debug_assert!(was_idle, "an idle dedicated region without an entry");
            }
            let segment = resident.segment;
            bytes = bytes.saturating_add(segment.region().bytes);
            taken.push(IdleSegment { segment, dedicated });
        }
        if !taken.is_empty() {
            let slots = &self.slots;
            for indexes in self.elsewhere.iter_mut().chain([&mut self.here]) {
                indexes.order.retain(|index| slots.at(index).is_some());
            }
        }
        taken
    }

    /// What `id` names.
    #[inline]
    pub(crate) fn get(&self, id: SegmentId) -> Option<&Segment> {
        Some(&self.slots.get(id)?.segment)
    }

    /// The segments with their ids, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SegmentId, &Resident)> {
        self.slots.iter()
    }

    /// For tests of the audit.
    #[cfg(test)]
    pub(crate) fn corrupt(&mut self, id: SegmentId) -> &mut Resident {
        self.slots.get_mut(id).unwrap()
    }
}

#[cfg(test)]
mod tests;
