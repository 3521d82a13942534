//! Exact search: is there a placement within a capacity?
//!
//! Only one kind of solution is looked for, that with the least sum of offsets: in it every block
//! lies on the ground or on another's end, and none has a hole below it in which it would fit. Blocks
//! are placed by rising offset, and by rank where offsets are equal, so that each solution is met
//! once. Wherever no block that is left lives from one part of time into another, the parts are
//! searched by themselves. (The idea of canonical solutions is MiniMalloc's.)
//!
//! Invariant: `heights` has, of every block that is not placed, the highest end of those that are
//! placed and live at the same time.

use crate::problem::{Problem, first_bare};

/// It asks whether to stop once in so many steps: one takes microseconds, and callers count questions for want of a clock.
const ASKING: u64 = 16;

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A placement.
    Found(Vec<u64>),
    /// There is none within the capacity.
    Impossible,
    /// Not known after so many steps.
    Unknown,
}

/// The last block placed: what follows has a higher offset, or the same and a higher rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Last {
    offset: u64,
    rank: Option<u32>,
}

struct GaveUp;

/// Searches for at most so many `steps`; `ranks` decides what is tried first at the same height.
pub(crate) fn search(problem: &Problem, capacity: u64, ranks: &[u32], steps: u64, stop: &dyn Fn() -> bool) -> Outcome {
    if problem.bound > capacity {
        return Outcome::Impossible;
    }
    let count = problem.sizes.len();
    let mut search = Search {
        problem,
        ranks,
        capacity,
        left: problem.loads.clone(),
        heights: vec![0; count],
        offsets: vec![0; count],
        placed: vec![false; count],
        trail: Vec::new(),
        next_bare: vec![0; problem.loads.len() + 1],
        steps,
        stop,
    };
    let ground = Last { offset: 0, rank: None };
    match search.parts(&problem.blocks, ground) {
        Ok(true) => Outcome::Found(search.offsets),
        Ok(false) => Outcome::Impossible,
        Err(GaveUp) => Outcome::Unknown,
    }
}

struct Search<'s> {
    problem: &'s Problem,
    ranks: &'s [u32],
    capacity: u64,
    /// Of each moment, the bytes that live then and are not placed.
    left: Vec<u64>,
    heights: Vec<u64>,
    offsets: Vec<u64>,
    placed: Vec<bool>,
    /// Heights as they were, to be restored.
    trail: Vec<(u32, u64)>,
    /// Of each moment, a later one, or itself while no block was seen to live then (`highest_next`).
    next_bare: Vec<usize>,
    steps: u64,
    stop: &'s dyn Fn() -> bool,
}

impl<'s> Search<'s> {
    /// Places `blocks`, which are sorted by their begin, part of time by part. What it placed is
    /// taken back if it cannot place all.
    fn parts(&mut self, blocks: &[u32], last: Last) -> Result<bool, GaveUp> {
        let cyclic = blocks.iter().any(|&block| self.problem.stretches[block as usize].len() > 1);
        if cyclic {
            return self.part(blocks, last);
        }
        let mut parts: Vec<&[u32]> = Vec::new();
        let (mut from, mut until) = (0, 0);
        for (at, &block) in blocks.iter().enumerate() {
            let (begin, end) = self.problem.stretches[block as usize][0];
            if begin >= until && at > from {
                parts.push(&blocks[from..at]);
                from = at;
            }
            until = until.max(end);
        }
        if from < blocks.len() {
            parts.push(&blocks[from..]);
        }
        // What is likely to fail comes first.
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        for (index, part) in parts.iter().enumerate() {
            if !self.part(part, last)? {
                for part in &parts[..index] {
                    self.take_back(part);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Places blocks of one part of time, by trying each that may be the next.
    fn part(&mut self, blocks: &[u32], last: Last) -> Result<bool, GaveUp> {
        if blocks.is_empty() {
            return Ok(true);
        }
        if self.steps == 0 || (self.steps.is_multiple_of(ASKING) && (self.stop)()) {
            return Err(GaveUp);
        }
        self.steps -= 1;
        let mut by_height: Vec<(u64, u32, u32)> = blocks
            .iter()
            .map(|&block| (self.heights[block as usize].max(last.offset), self.ranks[block as usize], block))
            .collect();
        by_height.sort_unstable();
        let Some(highest) = self.highest_next(&by_height) else {
            return Ok(false);
        };
        let ends = by_height.iter().map(|&(height, _, block)| height + self.problem.sizes[block as usize]);
        let hole = ends.min().unwrap_or(0);
        // One that lies lower than the last block would have come before it.
        let next = by_height.into_iter().filter(|&(height, rank, block)| {
            self.heights[block as usize] == height && Last { offset: height, rank: Some(rank) } > last
        });
        let next: Vec<_> = next.take_while(|&(height, ..)| height < hole && height <= highest).collect();
        let mut others = Vec::with_capacity(blocks.len());
        for (offset, rank, block) in next {
            others.clear();
            others.extend(blocks.iter().copied().filter(|&other| other != block));
            let mark = self.trail.len();
            self.place(block, offset);
            if self.parts(&others, Last { offset, rank: Some(rank) })? {
                return Ok(true);
            }
            self.unplace(block, mark);
        }
        Ok(false)
    }

    /// At which offset the next block may lie at most, so that all that is left fits; none where it
    /// does not fit in any way. Blocks come with the lowest offset that each may have, lowest first.
    fn highest_next(&mut self, by_height: &[(u64, u32, u32)]) -> Option<u64> {
        let hull = by_height.iter().flat_map(|&(.., block)| &self.problem.stretches[block as usize]);
        let (from, to) = hull.fold((usize::MAX, 0), |(from, to), own| (from.min(own.0), to.max(own.1)));
        for moment in from..=to {
            self.next_bare[moment] = moment;
        }
        let mut highest = u64::MAX;
        // The first block to cover a moment is the lowest of those that live then.
        for &(height, _, block) in by_height {
            for stretch in 0..self.problem.stretches[block as usize].len() {
                let (from, to) = self.problem.stretches[block as usize][stretch];
                let mut moment = first_bare(&mut self.next_bare, from);
                while moment < to {
                    let room = self.capacity.checked_sub(self.left[moment])?;
                    if height > room {
                        return None;
                    }
                    highest = highest.min(room);
                    self.next_bare[moment] = moment + 1;
                    moment = first_bare(&mut self.next_bare, moment + 1);
                }
            }
        }
        Some(highest)
    }

    fn place(&mut self, block: u32, offset: u64) {
        let (problem, index) = (self.problem, block as usize);
        let size = problem.sizes[index];
        self.offsets[index] = offset;
        self.placed[index] = true;
        for &(from, to) in &problem.stretches[index] {
            self.left[from..to].iter_mut().for_each(|left| *left -= size);
        }
        for &other in &problem.neighbours[index] {
            let height = &mut self.heights[other as usize];
            if !self.placed[other as usize] && *height < offset + size {
                self.trail.push((other, *height));
                *height = offset + size;
            }
        }
    }

    /// Takes back a block, and the heights since `mark`.
    fn unplace(&mut self, block: u32, mark: usize) {
        self.take_back(&[block]);
        while self.trail.len() > mark {
            let (other, height) = self.trail.pop().expect("longer than the mark");
            self.heights[other as usize] = height;
        }
    }

    /// Takes back blocks. Heights are restored by who placed what lies below.
    fn take_back(&mut self, blocks: &[u32]) {
        let problem = self.problem;
        for index in blocks.iter().map(|&block| block as usize) {
            self.placed[index] = false;
            for &(from, to) in &problem.stretches[index] {
                let left = &mut self.left[from..to];
                left.iter_mut().for_each(|left| *left += problem.sizes[index]);
            }
        }
    }
}
