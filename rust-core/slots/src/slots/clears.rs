//! Which regions can be unpinned when the program empties its cache, and which of them its loop needs again.

use std::ops::Range;

use super::Slots;

/// A region, and the addresses that it has.
type Idle = (usize, Range<usize>);

impl Slots {
    /// Whether the program's loop empties the cache where it is now: then it goes on, and what is idle is needed again.
    pub fn foresees_a_clear(&self) -> bool {
        let lanes = self.courses.iter().zip(&self.clears).enumerate();
        let mut lanes = lanes.filter(|(lane, _)| !self.is_between_threads(*lane));
        lanes.any(|(_, (course, clears))| {
            let next = course.next().filter(|_| !clears.is_empty());
            next.is_some_and(|next| clears.contains(&(next as u32)))
        })
    }

    /// Regions in which nothing lies any more, with their addresses: they are the caller's, to be unpinned.
    pub fn take_idle(&mut self) -> Vec<Idle> {
        let idle = self.idle();
        self.take_regions(idle)
    }

    /// The same, but for those that lanes need again. O(steps).
    pub fn take_unwanted(&mut self) -> Vec<Idle> {
        let wanted = self.wanted_regions();
        let mut idle = self.idle();
        idle.retain(|&region| !wanted[region]);
        self.take_regions(idle)
    }

    /// The bytes that [`Self::take_idle`] would take.
    pub fn idle_bytes(&self) -> usize {
        self.idle().iter().map(|&region| self.lengths[region]).sum()
    }

    fn idle(&self) -> Vec<usize> {
        let pinned = (0..self.bases.len()).filter(|&region| self.bases[region].is_some());
        pinned.filter(|&region| self.cells.is_idle(region as u32)).collect()
    }

    /// The first region in which nothing lies any more, and its bytes.
    pub fn first_idle(&self) -> Option<(usize, usize)> {
        let region = self.idle().into_iter().next()?;
        Some((region, self.lengths[region]))
    }

    /// This region, if it is pinned. It must be idle.
    pub fn take_region(&mut self, region: usize) -> Option<Idle> {
        debug_assert!(self.cells.is_idle(region as u32), "a block lies there");
        let base = self.bases[region].take()?;
        Some((region, base..base + self.lengths[region]))
    }

    fn take_regions(&mut self, regions: Vec<usize>) -> Vec<Idle> {
        let take = |region| self.take_region(region);
        regions.into_iter().filter_map(take).collect()
    }

    /// Whether a step still to come uses a region.
    fn wanted_regions(&self) -> Vec<bool> {
        let mut wanted = vec![false; self.bases.len()];
        for course in &self.courses {
            for slot in course.next_slots(course.len()) {
                wanted[self.places[slot as usize].slot.region as usize] = true;
            }
        }
        wanted
    }
}
