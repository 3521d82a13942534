//! One segment: a region, its free runs and the records of its blocks.
//!
//! Keeps free runs, records and counts in step, and refuses claims that the records contradict. Knows
//! neither its own id nor other segments, and never looks at the address of its region.
//!
//! Free runs are in a buddy tree or, where the shortest is wanted, in a list.
//!
//! Invariants: a granule is in a free run exactly where no record holds it (I1); blocks do not
//! overlap or leave the segment (I2); the counts are those of the records (I8).

use crate::buddy::BuddyTree;
use crate::error::Misuse;
use crate::kind::SegmentKind;
use crate::records::{Records, State};
use crate::runs::Runs;
use crate::units::{Block, Granules, Home, Region, SegmentId};
use crate::view::{BlockView, SegmentView};

/// How many blocks of one state, and how many granules they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) blocks: u32,
    pub(crate) granules: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, granules: Granules) {
        self.blocks += 1;
        self.granules += granules.get();
    }

    fn remove(&mut self, granules: Granules) {
        self.blocks -= 1;
        self.granules -= granules.get();
    }
}

/// The free runs, in one of two ways.
#[derive(Debug)]
pub(crate) enum Space {
    /// The leftmost run serves.
    Leftmost(BuddyTree),
    /// The shortest run serves.
    Shortest(Runs),
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Segment {
    region: Region,
    granules: Granules,
    pub(crate) home: Home,
    pub(crate) space: Space,
    pub(crate) records: Records,
    pub(crate) live: Tally,
    pub(crate) pending: Tally,
}

impl Segment {
    /// A wholly free segment in `region`, of which the first `granules` are used.
    pub(crate) fn new(region: Region, granules: Granules) -> Self {
        Self {
            region,
            granules,
            home: Home::default(),
            space: Space::Leftmost(BuddyTree::new(granules.get())),
            records: Records::new(granules),
            live: Tally::default(),
            pending: Tally::default(),
        }
    }

    /// Writes to each page of tree and records, and changes nothing.
    pub(crate) fn touch(&mut self) {
        if let Space::Leftmost(tree) = &mut self.space {
            tree.touch();
        }
        self.records.touch();
    }

    pub(crate) fn region(&self) -> Region {
        self.region
    }

    /// Its length.
    pub(crate) fn granules(&self) -> Granules {
        self.granules
    }

    /// Granules in no block.
    #[inline]
    pub(crate) fn free_granules(&self) -> u32 {
        self.granules.get() - self.live.granules - self.pending.granules
    }

    /// The longest free run, in granules.
    #[inline]
    pub(crate) fn longest(&self) -> u32 {
        match &self.space {
            Space::Leftmost(tree) => tree.longest(),
            Space::Shortest(runs) => runs.longest(),
        }
    }

    /// Whether no block, live or pending, is left in it.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.live.blocks == 0 && self.pending.blocks == 0
    }

    /// From now on blocks are cut from the shortest run that holds them. It is idle.
    pub(crate) fn fit_best(&mut self) {
        debug_assert!(self.is_idle(), "blocks lie in it");
        if let Space::Leftmost(_) = self.space {
            self.space = Space::Shortest(Runs::new(self.granules));
        }
    }

    /// Makes the leftmost free `length >= 1` granules a live block, or the first ones of the shortest run;
    /// returns its start.
    #[inline]
    pub(crate) fn take(&mut self, length: Granules) -> Option<Granules> {
        let start = match &mut self.space {
            Space::Leftmost(tree) => {
                let start = tree.find(length.get())?;
                tree.take(start..start + length.get());
                start
            }
            Space::Shortest(runs) => runs.take(length.get())?,
        };
        let start = Granules::new(start);
        self.records.set(start, length, State::Live);
        self.live.add(length);
        Some(start)
    }

    /// Live to pending.
    #[inline]
    pub(crate) fn defer(&mut self, block: Block) -> Result<(), Misuse> {
        let length = self.turn(block, State::Pending)?;
        self.live.remove(length);
        self.pending.add(length);
        Ok(())
    }

    /// Pending to live.
    #[inline]
    pub(crate) fn cache(&mut self, block: Block) -> Result<(), Misuse> {
        let length = self.turn(block, State::Live)?;
        self.pending.remove(length);
        self.live.add(length);
        Ok(())
    }

    /// Records another state of a block; returns its length.
    #[inline]
    fn turn(&mut self, block: Block, to: State) -> Result<Granules, Misuse> {
        let (start, length, state) = self.check(block)?;
        let Block { segment, offset, bytes } = block;
        if state == to {
            return Err(match to {
                State::Live => Misuse::NotPending { segment, offset, bytes },
                State::Pending => Misuse::AlreadyPending { segment, offset, bytes },
            });
        }
        self.records.set(start, length, to);
        Ok(length)
    }

    /// Live or pending to free; returns the state before.
    #[inline]
    pub(crate) fn release(&mut self, block: Block) -> Result<State, Misuse> {
        let (start, length, state) = self.check(block)?;
        self.records.clear(start);
        match &mut self.space {
            Space::Leftmost(tree) => tree.free(start.get()..start.get() + length.get()),
            Space::Shortest(runs) => runs.free(start.get(), length.get()),
        }
        match state {
            State::Live => self.live.remove(length),
            State::Pending => self.pending.remove(length),
        }
        Ok(state)
    }

    /// The record of `block`, if its claims are true.
    #[inline]
    fn check(&self, block: Block) -> Result<(Granules, Granules, State), Misuse> {
        let Block { segment, offset, bytes } = block;
        let recorded = Granules::exactly(offset)
            .and_then(|start| self.records.get(start).map(|(length, state)| (start, length, state)));
        match recorded {
            None => Err(Misuse::NotABlock { segment, offset }),
            Some((_, length, _)) if length.bytes() != bytes => {
                let actual = length.bytes();
                Err(Misuse::WrongSize { segment, offset, claimed: bytes, actual })
            }
            Some(found) => Ok(found),
        }
    }

    /// For tests of the audit: moves the region.
    #[cfg(test)]
    pub(crate) fn corrupt_base(&mut self, base: usize) {
        self.region.base = base;
    }

    /// Its blocks from first to last. Free runs are skipped: O(blocks * log granules), and only the
    /// blocks' records are read.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockView> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = Granules::new(match &self.space {
                Space::Leftmost(tree) => tree.first_taken(at)?,
                Space::Shortest(runs) => runs.first_taken(at),
            });
            // Beyond the segment's end all is taken, and there are no records.
            let (length, state) = self.records.get(start)?;
            at = start.get() + length.get();
            Some(BlockView { offset: start.bytes(), bytes: length.bytes(), pending: state == State::Pending })
        })
    }

    /// Its description for callers, under the id `id` and as a segment of `kind`.
    pub(crate) fn view(&self, id: SegmentId, kind: SegmentKind) -> SegmentView {
        let in_bytes = |granules| Granules::new(granules).bytes();
        SegmentView {
            id,
            kind,
            home: self.home,
            base: self.region.base,
            bytes: self.region.bytes,
            free_bytes: in_bytes(self.free_granules()),
            tail_bytes: self.region.bytes - self.granules.bytes(),
            longest_free_run_bytes: in_bytes(self.longest()),
            live_bytes: in_bytes(self.live.granules),
            pending_bytes: in_bytes(self.pending.granules),
            live_blocks: self.live.blocks as usize,
            pending_blocks: self.pending.blocks as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::GRANULE;

    fn block(start: usize, length: usize) -> Block {
        let segment = SegmentId::new(0, 0);
        Block { segment, offset: start * GRANULE, bytes: length * GRANULE }
    }

    #[test]
    fn false_claims_are_refused_and_change_nothing() {
        let granules = Granules::new(10);
        let region = Region { base: 0x1234, bytes: granules.bytes() };
        let mut segment = Segment::new(region, granules);
        segment.take(Granules::new(4)).unwrap();
        let before = segment.view(SegmentId::new(0, 0), SegmentKind::Small);
        let id = before.id;
        let not_at = |offset| Misuse::NotABlock { segment: id, offset };
        let at = |offset| Block { offset, ..block(0, 4) };
        let wrong_size = Misuse::WrongSize { segment: id, offset: 0, claimed: 3 * GRANULE, actual: 4 * GRANULE };
        let claims = [
            (block(1, 4), not_at(GRANULE)),
            (block(10, 4), not_at(10 * GRANULE)),
            (at(1), not_at(1)),
            (at(usize::MAX), not_at(usize::MAX)),
            (block(0, 3), wrong_size),
        ];
        for (claim, misuse) in claims {
            assert_eq!(segment.release(claim), Err(misuse));
            assert_eq!(segment.defer(claim), Err(misuse));
        }
        assert_eq!(segment.view(id, SegmentKind::Small), before);
        segment.release(block(0, 4)).unwrap();
        let gone = not_at(0);
        assert_eq!(segment.release(block(0, 4)), Err(gone));
        assert_eq!(segment.defer(block(0, 4)), Err(gone));
    }
}
