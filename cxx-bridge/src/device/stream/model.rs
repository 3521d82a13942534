//! PyTorch's allocator beside a stream's plan, as a model (`pinbuddy_device::Rival`).
//!
//! Invariant: no panic leaves this file. After one nothing is known.

use std::cell::Cell;

use pinbuddy_plan::device::Rival;

use super::super::places::caught;
use super::super::tally::Counted;

#[derive(Debug, Default)]
pub(super) struct Model {
    rival: Rival,
    retired: Cell<bool>,
    /// The most bytes that blocks had when a request was looked at last.
    used: u64,
}

impl Model {
    fn change<T: Default>(&mut self, act: impl FnOnce(&mut Rival) -> T) -> T {
        caught(&self.retired, Some(&mut self.rival), act)
    }

    /// A block was handed out, which is counted; its number here.
    #[inline]
    pub(super) fn came(&mut self, bytes: usize, counted: &Counted) -> Option<u32> {
        let number = self.change(|it| it.allocate(bytes as u64))?;
        self.used = self.used.max(counted.most()[1]);
        Some(number)
    }

    /// Nobody uses the block any more.
    #[inline]
    pub(super) fn over(&mut self, number: Option<u32>) {
        if let Some(number) = number {
            self.change(|it| it.free(number));
        }
    }

    /// Memory that is idle is given back.
    pub(super) fn clear(&mut self) {
        self.change(Rival::clear);
    }

    /// What PyTorch's allocator would have reserved in a whole run whose blocks had so many bytes at most: as much more than what was
    /// seen as these are.
    pub(super) fn most(&self, used: u64) -> Option<u64> {
        let peak = self.rival.peak() + used.saturating_sub(self.used);
        (!self.retired.get()).then_some(peak)
    }
}
