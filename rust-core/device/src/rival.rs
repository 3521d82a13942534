//! PyTorch's allocator beside a plan: what it would have reserved for what the plan serves to a stream, as far as a run's first
//! requests tell.
//!
//! Each of these takes some tenths of a microsecond, so later ones are not looked at. Expandable segments would reserve less: a plan
//! that loses to this model loses to them as well. A block that other streams use is free once they are done with it, as it is here.

use crate::{Device as _, Kind, SHARED, Torch};

/// An iteration of a large model has some thousand requests that may be planned.
const LOOKED_AT: u32 = 1 << 14;

/// So many percent may be lost in a run that differs.
const LOST: u64 = 3;

/// What a run with a plan may reserve more than `without`: a segment of PyTorch's or three percent, whichever is more.
pub const fn allowance(without: u64) -> u64 {
    let lost = without / 100 * LOST;
    if lost > SHARED { lost } else { SHARED }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Rival {
    /// None once enough requests were looked at.
    model: Option<Torch>,
    requests: u32,
    peak: u64,
}

impl Default for Rival {
    fn default() -> Self {
        Self { model: Some(Kind::Torch.model()), requests: 0, peak: 0 }
    }
}

impl Rival {
    /// A request of `bytes` bytes that the plan serves, and the block's number; none if it is not looked at.
    pub fn allocate(&mut self, bytes: u64) -> Option<u32> {
        let model = self.model.as_mut()?;
        let number = self.requests;
        model.allocate(number, bytes, 0);
        self.peak = model.usage().peak_reserved;
        self.requests += 1;
        if self.requests == LOOKED_AT {
            self.model = None;
        }
        Some(number)
    }

    /// Nobody uses this block any more.
    pub fn free(&mut self, block: u32) {
        if let Some(model) = &mut self.model {
            model.free(block);
        }
    }

    /// Memory that is idle is given back: `empty_cache`, or a device that is full.
    pub fn clear(&mut self) {
        if let Some(model) = &mut self.model {
            model.clear();
        }
    }

    /// The most that it has reserved.
    pub fn peak(&self) -> u64 {
        self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_reserves_as_pytorch_does_until_enough_was_seen() {
        let mut it = Rival::default();
        let [first, second] = [24, 40].map(|mib| it.allocate(mib * MIB).unwrap());
        it.free(first);
        it.clear();
        it.free(second);
        assert_eq!(it.peak(), 64 * MIB);
        // The longer segment serves.
        for _ in 2..LOOKED_AT {
            let block = it.allocate(30 * MIB).unwrap();
            it.free(block);
        }
        assert_eq!((it.peak(), it.allocate(800 * MIB)), (64 * MIB, None));
        it.free(second);
        it.clear();
        assert_eq!(it.peak(), 64 * MIB);
    }

    #[test]
    fn a_segment_or_three_percent_may_be_lost() {
        assert_eq!([0, 600 * MIB, 1000 * MIB].map(allowance), [20 * MIB, 20 * MIB, 1000 * MIB / 100 * 3]);
    }
}
