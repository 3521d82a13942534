//! Blocks: parts of segments, each with its neighbours, and what is free in each pool. Bookkeeping alone.
//!
//! Invariants (`audit`): neighbours touch; a free block is in its pool's set of free blocks and a part with nothing
//! behind its addresses in that of unmapped ones, each once; two neighbours that could be one are one.

use std::collections::BTreeSet;
use std::ops::Bound;

/// A block's place in the arena.
pub(super) type Id = u32;

/// Requests of up to 1 MiB are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Small,
    Large,
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// Addresses of an expandable segment with no memory behind them.
    Unmapped,
    /// A program has it.
    Live,
    /// Freed, and other streams are not done with it.
    Pending,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) stream: u32,
    pub(super) pool: Pool,
    pub(super) state: State,
    /// The start of the expandable segment that it is in.
    pub(super) range: Option<u64>,
    pub(super) before: Option<Id>,
    pub(super) after: Option<Id>,
}

impl Block {
    /// Whether it is the whole segment.
    pub(super) fn is_whole(&self) -> bool {
        self.before.is_none() && self.after.is_none()
    }

    fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// A pool's free blocks by stream, size and address, and its unmapped ones by stream and address.
#[derive(Clone, Debug, Default)]
struct Lists {
    free: BTreeSet<(u32, u64, u64, Id)>,
    unmapped: BTreeSet<(u32, u64, Id)>,
}

/// All blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Option<Block>>,
    vacant: Vec<Id>,
    small: Lists,
    large: Lists,
}

impl Blocks {
    pub(super) fn get(&self, id: Id) -> &Block {
        self.all[id as usize].as_ref().expect("a block that exists")
    }

    /// Change a block that is in no list.
    pub(super) fn get_mut(&mut self, id: Id) -> &mut Block {
        self.all[id as usize].as_mut().expect("a block that exists")
    }

    fn lists(&mut self, pool: Pool) -> &mut Lists {
        match pool {
            Pool::Small => &mut self.small,
            Pool::Large => &mut self.large,
        }
    }

    /// A new block, in no list yet.
    pub(super) fn add(&mut self, block: Block) -> Id {
        let id = self.vacant.pop().unwrap_or(self.all.len() as Id);
        if id as usize == self.all.len() {
            self.all.push(None);
        }
        self.all[id as usize] = Some(block);
        for (neighbour, is_before) in [(block.before, true), (block.after, false)] {
            if let Some(neighbour) = neighbour {
                let neighbour = self.get_mut(neighbour);
                let link = if is_before { &mut neighbour.after } else { &mut neighbour.before };
                *link = Some(id);
            }
        }
        id
    }

    /// Forget a whole segment's block, which is in no list.
    pub(super) fn forget(&mut self, id: Id) {
        self.all[id as usize] = None;
        self.vacant.push(id);
    }

    /// Put a block that is free or unmapped into its list.
    pub(super) fn list(&mut self, id: Id) {
        let block = *self.get(id);
        let lists = self.lists(block.pool);
        match block.state {
            State::Free => lists.free.insert((block.stream, block.bytes, block.address, id)),
            State::Unmapped => lists.unmapped.insert((block.stream, block.address, id)),
            State::Live | State::Pending => false,
        };
    }

    /// Take it out.
    pub(super) fn unlist(&mut self, id: Id) {
        let block = *self.get(id);
        let lists = self.lists(block.pool);
        match block.state {
            State::Free => lists.free.remove(&(block.stream, block.bytes, block.address, id)),
            State::Unmapped => lists.unmapped.remove(&(block.stream, block.address, id)),
            State::Live | State::Pending => false,
        };
    }

    /// Cut a block, which is in no list: it keeps its first bytes, and the rest is a new one of the same kind behind it.
    pub(super) fn cut(&mut self, id: Id, bytes: u64) -> Id {
        let block = *self.get(id);
        self.get_mut(id).bytes = bytes;
        self.add(Block { address: block.address + bytes, bytes: block.bytes - bytes, before: Some(id), ..block })
    }

    /// Make one of a block, which is in no list, and its neighbours of the same kind.
    pub(super) fn merge(&mut self, id: Id) {
        let block = *self.get(id);
        let like = |it: &Block| it.state == block.state;
        if let Some(before) = block.before.filter(|it| like(self.get(*it))) {
            self.unlist(before);
            let gone = *self.get(before);
            let merged = self.get_mut(id);
            merged.address = gone.address;
            merged.bytes += gone.bytes;
            merged.before = gone.before;
            if let Some(further) = gone.before {
                self.get_mut(further).after = Some(id);
            }
            self.forget(before);
        }
        if let Some(after) = block.after.filter(|it| like(self.get(*it))) {
            self.unlist(after);
            let gone = *self.get(after);
            let merged = self.get_mut(id);
            merged.bytes += gone.bytes;
            merged.after = gone.after;
            if let Some(further) = gone.after {
                self.get_mut(further).before = Some(id);
            }
            self.forget(after);
        }
    }

    /// Free blocks of a stream of at least so many bytes, the best fit first.
    pub(super) fn fits(&self, pool: Pool, stream: u32, bytes: u64) -> impl Iterator<Item = Id> {
        let from = Bound::Included((stream, bytes, 0, 0));
        let within = self.of(pool).free.range((from, Bound::Unbounded));
        within.take_while(move |it| it.0 == stream).map(|it| it.3)
    }

    /// Unmapped parts of a stream's expandable segments, by address.
    pub(super) fn unmapped(&self, pool: Pool, stream: u32) -> impl Iterator<Item = Id> {
        let from = Bound::Included((stream, 0, 0));
        let within = self.of(pool).unmapped.range((from, Bound::Unbounded));
        within.take_while(move |it| it.0 == stream).map(|it| it.2)
    }

    /// All free blocks of a pool.
    pub(super) fn free(&self, pool: Pool) -> Vec<Id> {
        self.of(pool).free.iter().map(|it| it.3).collect()
    }

    fn of(&self, pool: Pool) -> &Lists {
        match pool {
            Pool::Small => &self.small,
            Pool::Large => &self.large,
        }
    }

    /// Every block.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Block)> {
        let all = (0..).zip(&self.all);
        all.filter_map(|(id, block)| Some((id, block.as_ref()?)))
    }

    /// Checks the invariants.
    pub(super) fn audit(&self) -> Result<(), String> {
        let mut listed = 0;
        for (id, block) in self.iter() {
            let lists = self.of(block.pool);
            let (in_free, in_unmapped) = (
                lists.free.contains(&(block.stream, block.bytes, block.address, id)),
                lists.unmapped.contains(&(block.stream, block.address, id)),
            );
            let expected = (block.state == State::Free, block.state == State::Unmapped);
            if (in_free, in_unmapped) != expected {
                return Err(format!("{block:?} is in the wrong lists"));
            }
            listed += usize::from(in_free || in_unmapped);
            if let Some(after) = block.after {
                let next = self.get(after);
                let alike = next.state == block.state;
                let idle = matches!(block.state, State::Free | State::Unmapped);
                if next.before != Some(id) || next.address != block.end() {
                    return Err(format!("{next:?} is not behind {block:?}"));
                }
                if alike && idle {
                    return Err(format!("{block:?} and {next:?} are not merged"));
                }
            }
        }
        let entries: usize = [&self.small, &self.large].map(|it| it.free.len() + it.unmapped.len()).iter().sum();
        if entries != listed {
            return Err(format!("{entries} entries in lists, {listed} blocks in them"));
        }
        Ok(())
    }
}
