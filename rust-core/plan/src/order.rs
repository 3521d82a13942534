//! Orders in which blocks are placed, and what decides where two are alike.
//!
//! No order is the best for all programs, and ties decide as much as keys: for one training step the
//! same order is 0.8 % above the bound with one tie, and 14 % with the other.

use crate::first_fit::Gap;
use crate::instance::{Block, Instance};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Size,
    Lifetime,
    /// The lifetime's order of magnitude, in powers of 16.
    Magnitude,
    Area,
    Begin,
    End,
}

impl Key {
    /// Small numbers come first.
    fn of(self, block: &Block, descending: bool) -> u128 {
        let lifetime = block.upper - block.lower;
        let number = match self {
            Self::Size => u128::from(block.size),
            Self::Lifetime => u128::from(lifetime),
            Self::Magnitude => u128::from(lifetime.ilog2() / 4),
            Self::Area => u128::from(block.size) * u128::from(lifetime),
            Self::Begin => u128::from(block.lower),
            Self::End => u128::from(block.upper),
        };
        if descending { u128::MAX - number } else { number }
    }
}

/// One way to place all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    keys: [(Key, bool); 3],
    pub(crate) gap: Gap,
}

const DOWN: bool = true;
const UP: bool = false;

/// What comes first of each key, and the ties that are tried with it.
const KEYS: [[(Key, bool); 3]; 14] = [
    [(Key::Magnitude, DOWN), (Key::End, DOWN), (Key::Begin, UP)],
    [(Key::Size, DOWN), (Key::Begin, UP), (Key::End, UP)],
    [(Key::Magnitude, DOWN), (Key::Begin, UP), (Key::End, DOWN)],
    [(Key::Begin, UP), (Key::End, DOWN), (Key::Size, DOWN)],
    [(Key::End, DOWN), (Key::Begin, UP), (Key::Size, DOWN)],
    [(Key::Area, DOWN), (Key::Size, DOWN), (Key::Begin, UP)],
    [(Key::Lifetime, DOWN), (Key::Size, DOWN), (Key::Begin, UP)],
    [(Key::Magnitude, DOWN), (Key::Size, DOWN), (Key::Begin, UP)],
    [(Key::Size, DOWN), (Key::Lifetime, DOWN), (Key::Begin, UP)],
    [(Key::Size, DOWN), (Key::Begin, DOWN), (Key::End, DOWN)],
    [(Key::Size, DOWN), (Key::End, DOWN), (Key::Begin, UP)],
    [(Key::Size, DOWN), (Key::Lifetime, UP), (Key::Begin, UP)],
    [(Key::Lifetime, DOWN), (Key::Begin, DOWN), (Key::Size, DOWN)],
    [(Key::End, DOWN), (Key::Size, DOWN), (Key::Begin, DOWN)],
];

/// All ways, those first that are most often the best.
pub(crate) fn ways() -> impl Iterator<Item = Way> {
    [Gap::Lowest, Gap::Shortest].into_iter().flat_map(|gap| KEYS.into_iter().map(move |keys| Way { keys, gap }))
}

/// How many ways there are.
pub(crate) const WAYS: usize = KEYS.len() * 2;

impl Way {
    pub(crate) fn order(self, instance: &Instance) -> Vec<u32> {
        let blocks = instance.blocks();
        let mut order: Vec<u32> = (0..).take(blocks.len()).collect();
        order.sort_by_cached_key(|&index| {
            let block = &blocks[index as usize];
            self.keys.map(|(key, descending)| key.of(block, descending))
        });
        order
    }
}

/// Rankings of the blocks for the exact search, as numbers: who comes first at the same height. Mostly blocks
/// that live when most lives come first, since there is least room.
pub(crate) fn rankings(instance: &Instance) -> [Vec<u32>; 4] {
    let crowds = instance.crowds();
    let by = |keys: [Option<Key>; 3]| {
        let mut order: Vec<usize> = (0..instance.blocks.len()).collect();
        order.sort_by_cached_key(|&index| {
            let block = &instance.blocks[index];
            let crowd = u128::MAX - u128::from(crowds[index]);
            let keys = keys.map(|key| key.map_or(crowd, |key| key.of(block, DOWN)));
            (keys, block.lower)
        });
        let mut ranks = vec![0; order.len()];
        for (rank, index) in (0..).zip(order) {
            ranks[index] = rank;
        }
        ranks
    };
    let [area, lifetime, size] = [Key::Area, Key::Lifetime, Key::Size].map(Some);
    [by([None, lifetime, area]), by([lifetime, area, None]), by([None, area, lifetime]), by([None, size, lifetime])]
}
