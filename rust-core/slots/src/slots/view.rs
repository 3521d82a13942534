//! A plan at run time as seen from outside: what is pinned, what lies in it, and how often it served. Changes nothing.

use std::ops::Range;

use super::{Counts, Loan, Part, Place, Slots, State};
use crate::lane::Course;
use crate::once::Once;

impl Slots {
    /// The bytes of each region.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// How many steps an iteration of a lane has; all of them where it has no period, and 0 if there is no such lane.
    pub fn turn(&self, lane: usize) -> usize {
        self.courses.get(lane).map_or(0, Course::turn)
    }

    /// Regions from this one on have no slot: all of them is lent.
    pub fn regions_with_slots(&self) -> usize {
        self.by_begin.last().map_or(0, |it| it.0.0 as usize + 1)
    }

    /// Regions that are not pinned, with their lengths.
    pub fn missing(&self) -> impl Iterator<Item = (usize, usize)> {
        let bases = self.bases.iter().zip(&self.lengths).enumerate();
        bases.filter_map(|(region, (base, &bytes))| base.is_none().then_some((region, bytes)))
    }

    /// Bytes of all regions that lay somewhere once.
    pub fn were_there(&self) -> usize {
        let were_there = self.lengths.iter().zip(&self.was_there).filter(|it| *it.1);
        were_there.map(|it| it.0).sum()
    }

    /// The regions that are pinned, and their blocks by offset. O(slots).
    pub fn regions(&self) -> Vec<(Range<usize>, Vec<Part>)> {
        let mut parts: Vec<Vec<Part>> = vec![Vec::new(); self.bases.len()];
        for Place { slot, state, .. } in &self.places {
            if *state != State::Free {
                parts[slot.region as usize].push(Part {
                    offset: slot.offset,
                    bytes: slot.bytes,
                    pending: *state == State::Pending,
                });
            }
        }
        for Loan { what, pending } in self.loans.values() {
            parts[what.region as usize].push(Part {
                offset: self.cells.start(what.first),
                bytes: what.bytes,
                pending: *pending,
            });
        }
        let with_base = self.bases.iter().zip(&self.lengths).zip(parts);
        with_base
            .filter_map(|((base, bytes), mut parts)| {
                parts.sort_unstable_by_key(|part| part.offset);
                let base = (*base)?;
                Some((base..base + bytes, parts))
            })
            .collect()
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for course in &self.courses {
            let (lost, given_up) = course.drift().counts();
            counts.drift += lost;
            counts.given_up += given_up;
        }
        counts
    }

    /// Whether the plan does not fit a lane any more.
    pub fn has_given_up(&self) -> bool {
        self.courses.iter().any(|it| it.drift().is_given_up())
    }

    /// Whether no slot serves any more, but [`Self::borrow`] does: the plan's run came once, and the program does another one.
    pub fn has_only_room(&self) -> bool {
        self.once.is_some_and(Once::is_over)
    }

    /// The slot in use that begins at this address. O(log slots), and the slots that begin there.
    pub fn at(&self, address: usize) -> Option<u32> {
        let holds = |region: &usize| {
            let base = self.bases[*region];
            base.is_some_and(|base| (base..base + self.lengths[*region]).contains(&address))
        };
        let region = (0..self.bases.len()).find(holds)?;
        let begin = (region as u32, address - self.bases[region]?);
        let from = self.by_begin.partition_point(|&(at, _)| at < begin);
        let here = self.by_begin[from..].iter().take_while(|&&(at, _)| at == begin);
        let mut slots = here.map(|&(_, slot)| slot);
        slots.find(|&slot| self.places[slot as usize].state != State::Free)
    }

    /// The bytes of a slot.
    #[inline]
    pub fn bytes_of(&self, slot: u32) -> usize {
        self.places[slot as usize].slot.bytes
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
