//! Local search: a block that is to blame for the peak is placed earlier, and the change stays if the
//! peak is no higher.
//!
//! Invariant: what [`Climb`] holds is an order whose placement has the peak that it says.

use crate::first_fit::{Gap, Packer};
use crate::instance::Instance;
use crate::random::Random;

#[derive(Debug)]
pub(crate) struct Climb<'i> {
    instance: &'i Instance,
    packer: Packer<'i>,
    order: Vec<u32>,
    gap: Gap,
    /// The peak of `order`, and where its blocks lie.
    peak: u64,
    offsets: Vec<u64>,
    random: Random,
}

impl<'i> Climb<'i> {
    pub(crate) fn new(
        instance: &'i Instance,
        order: Vec<u32>,
        gap: Gap,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let mut packer = Packer::new(instance);
        let peak = packer.pack(&order, gap, u64::MAX, stop)?;
        let offsets = packer.offsets().to_vec();
        Some(Self { instance, packer, order, gap, peak, offsets, random: Random::new(seed) })
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak
    }

    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Tries one change. Whether the peak is lower now.
    pub(crate) fn step(&mut self, stop: &dyn Fn() -> bool) -> bool {
        let blamed: Vec<usize> = (0..self.order.len())
            .filter(|&at| {
                let block = self.order[at] as usize;
                self.offsets[block] + self.instance.blocks[block].size == self.peak
            })
            .collect();
        let Some(&from) = blamed.get(self.random.below(blamed.len().max(1))) else {
            return false;
        };
        if from == 0 {
            return false;
        }
        let to = self.random.below(from);
        self.order[to..=from].rotate_right(1);
        match self.packer.pack(&self.order, self.gap, self.peak + 1, stop) {
            Some(peak) => {
                let lower = peak < self.peak;
                self.peak = peak;
                self.offsets.copy_from_slice(self.packer.offsets());
                lower
            }
            None => {
                self.order[to..=from].rotate_left(1);
                false
            }
        }
    }
}
