//! Moments at which some blocks end and others begin that have as many bytes together.

use std::collections::{BTreeMap, HashMap};

use crate::instance::Block;

/// How many blocks a handover has at most on each side.
const SIDE: usize = 3;
/// With more blocks to choose from, only one is taken for one.
const MANY: usize = 12;
/// How many blocks are joined at once at most.
const SET: usize = 8;

/// Handovers that have no block in common on the same side: the smallest that there are.
pub(super) struct Handovers<'b> {
    blocks: &'b [Block],
    /// The blocks of each, on both sides.
    sets: Vec<Vec<usize>>,
    /// Of each block, the one at its begin, and that at its end.
    at_begin: Vec<Option<usize>>,
    at_end: Vec<Option<usize>>,
}

impl<'b> Handovers<'b> {
    /// Nothing if it is told to stop.
    pub(super) fn of(blocks: &'b [Block], stop: &dyn Fn() -> bool) -> Option<Self> {
        let mut moments: BTreeMap<u64, [Vec<usize>; 2]> = BTreeMap::new();
        for (at, block) in blocks.iter().enumerate() {
            moments.entry(block.upper).or_default()[0].push(at);
            moments.entry(block.lower).or_default()[1].push(at);
        }
        let mut all =
            Self { blocks, sets: Vec::new(), at_begin: vec![None; blocks.len()], at_end: vec![None; blocks.len()] };
        for [ended, begun] in moments.values_mut() {
            if stop() {
                return None;
            }
            // First those of one block for another: with equal sizes there would be too many to choose from.
            for most in 1..=SIDE {
                ended.retain(|&it| all.at_end[it].is_none());
                begun.retain(|&it| all.at_begin[it].is_none());
                if most == 1 || ended.len().max(begun.len()) <= MANY {
                    all.add(ended, begun, most);
                }
            }
        }
        Some(all)
    }

    /// Handovers of one moment, of so many blocks on each side at most.
    fn add(&mut self, ended: &[usize], begun: &[usize], most: usize) {
        let mut by_bytes: HashMap<u64, Vec<Vec<usize>>> = HashMap::new();
        for (bytes, some) in self.some_of(begun, most) {
            by_bytes.entry(bytes).or_default().push(some);
        }
        let mut pairs = Vec::new();
        for (bytes, some) in self.some_of(ended, most) {
            let others = by_bytes.get(&bytes).into_iter().flatten();
            pairs.extend(others.map(|others| (some.clone(), others.clone())));
        }
        pairs.sort_by_key(|(some, others)| some.len() + others.len());
        for (some, others) in pairs {
            let taken = some.iter().any(|&it| self.at_end[it].is_some())
                || others.iter().any(|&it| self.at_begin[it].is_some());
            if !taken {
                let own = Some(self.sets.len());
                some.iter().for_each(|&it| self.at_end[it] = own);
                others.iter().for_each(|&it| self.at_begin[it] = own);
                self.sets.push([some, others].concat());
            }
        }
    }

    /// All choices of so many blocks at most, with their bytes.
    fn some_of(&self, blocks: &[usize], most: usize) -> Vec<(u64, Vec<usize>)> {
        let mut all: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new())];
        for &block in blocks {
            for at in 0..all.len() {
                if all[at].1.len() < most {
                    let (bytes, mut some) = all[at].clone();
                    some.push(block);
                    all.push((bytes + self.blocks[block].size, some));
                }
            }
        }
        all.swap_remove(0);
        all
    }

    /// Sets without a block in common that hand on among themselves alone: all of one begin at the same moment, but for those
    /// that take over from others of it, and end likewise. The smallest come first.
    pub(super) fn closed(&self) -> Vec<Vec<usize>> {
        let mut sets: Vec<Vec<usize>> = self.sets.iter().filter_map(|it| self.grown(it)).collect();
        sets.sort_by_key(Vec::len);
        let mut taken = vec![false; self.blocks.len()];
        sets.retain(|set| {
            let free = set.iter().all(|&it| !taken[it]);
            set.iter().for_each(|&it| taken[it] |= free);
            free
        });
        sets
    }

    /// The least such set with these blocks; nothing if that has too many.
    fn grown(&self, blocks: &[usize]) -> Option<Vec<usize>> {
        let mut set = blocks.to_vec();
        loop {
            let own = || set.iter().map(|&it| &self.blocks[it]);
            let (lower, upper) = (own().map(|it| it.lower).min()?, own().map(|it| it.upper).max()?);
            let mut missing: Vec<usize> = Vec::new();
            for &it in &set {
                if self.blocks[it].lower > lower {
                    missing.extend(&self.sets[self.at_begin[it]?]);
                }
                if self.blocks[it].upper < upper {
                    missing.extend(&self.sets[self.at_end[it]?]);
                }
            }
            let before = set.len();
            set.extend(missing);
            set.sort_unstable();
            set.dedup();
            if set.len() > SET {
                return None;
            }
            if set.len() == before {
                return Some(set);
            }
        }
    }
}
