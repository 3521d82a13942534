//! The engine as it serves what has no slots: regions of one length, in which requests begin and are over.
//!
//! Invariants: no region is longer than [`MOST_REGION`], and none is shorter than the longest request, which would
//! otherwise have no place though there is room. All are equally long, as segments are.

use pinbuddy_core::{Block, Config, Decision, Engine, NewSegment, Region};

use crate::file::{GRANULE, MOST_REGION, MOST_REGIONS};
use crate::record::Record;
use crate::replay::Beside;

/// So many ways to cut an amount are tried: fewer regions waste less at their ends, more of them suit long requests.
const MOST_WAYS: u64 = 4;

/// Regions of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Regions {
    count: u64,
    bytes: u64,
}

impl Regions {
    /// Ways to cut `bytes`, for requests of `longest` bytes at most; the one with the fewest regions first.
    pub(super) fn ways(bytes: u64, longest: u64) -> impl Iterator<Item = Self> {
        let fewest = bytes.div_ceil(MOST_REGION).min(MOST_REGIONS as u64);
        let most = if fewest <= 1 {
            fewest
        } else {
            // With more of them the longest request would have no place.
            let holding = bytes / longest.max(1);
            holding.clamp(fewest, (fewest + MOST_WAYS - 1).min(MOST_REGIONS as u64))
        };
        (fewest..=most).map(move |count| {
            let even = bytes.div_ceil(count.max(1)).next_multiple_of(GRANULE);
            Self { count, bytes: even.max(longest).min(MOST_REGION) }
        })
    }

    /// Their lengths.
    pub(super) fn lengths(self) -> Vec<u64> {
        vec![self.bytes; self.count as usize]
    }
}

/// The engine with these segments.
pub(super) struct Spare<'r> {
    record: &'r Record,
    engine: Engine,
    blocks: Vec<Option<Block>>,
}

impl<'r> Spare<'r> {
    pub(super) fn new(record: &'r Record, regions: Regions) -> Self {
        let bytes = regions.bytes as usize;
        let config = Config { segment_bytes: bytes, threshold_bytes: 0 };
        let mut engine = Engine::new(config).mixing();
        for at in 0..regions.count as usize {
            // Regions that touch are never one.
            let base = (1 << 40) + at * 2 * MOST_REGION as usize;
            if let Ok(segment) = NewSegment::new(Region { base, bytes }) {
                // Without its segment the engine serves less.
                let _adopted = engine.adopt(segment.mixing());
            }
        }
        Self { record, engine, blocks: vec![None; record.requests.len()] }
    }
}

impl Beside for Spare<'_> {
    fn request(&mut self, number: u32) -> bool {
        let bytes = self.record.requests[number as usize].bytes();
        if bytes > MOST_REGION {
            // Pinned when it is asked for: it needs no room here.
            return true;
        }
        let Decision::Block(block) = self.engine.request(bytes as usize) else {
            return false;
        };
        self.blocks[number as usize] = Some(block);
        true
    }

    fn over(&mut self, number: u32) {
        if let Some(block) = self.blocks[number as usize].take() {
            // It was taken from this engine.
            let _released = self.engine.release(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn regions_are_equal_hold_the_amount_and_the_longest_request_and_are_never_too_long() {
        for gib in [1, 64, 65, 127, 128, 129, 1000] {
            for longest in [1, 30, 60, 64].map(|it: u64| it.min(gib) * GIB) {
                let ways: Vec<Regions> = Regions::ways(gib * GIB, longest).collect();
                assert!((1..=MOST_WAYS as usize).contains(&ways.len()));
                for way in ways {
                    assert!(way.count * way.bytes >= gib * GIB, "{way:?} for {gib} GiB");
                    assert!((longest..=MOST_REGION).contains(&way.bytes), "{way:?}");
                    assert!(gib > 64 || way.count == 1, "{way:?} for {gib} GiB");
                }
            }
        }
        assert_eq!(Regions::ways(65 * GIB, GIB).next().map(Regions::lengths), Some(vec![65 * GIB / 2; 2]));
        assert_eq!(Regions::ways(0, 0).next().map(Regions::lengths), Some(vec![]));
    }
}
