//! Long blocks first: they decide how high a placement is. Short ones that lie among them keep others from places that fit
//! exactly, and local search has nothing to move: the block at the top may be short, and who is to blame lies below.
//!
//! Invariant: a placement of the long ones alone is as high as one of all may be, or lower.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Best, Effort, solve};
use crate::first_fit::Packer;
use crate::instance::Instance;
use crate::order::Way;

/// Short is less than this part of the most that lives at once.
const SHORT: u64 = 1 << 10;

/// Only where so small a part of that is short.
const FEW_BYTES: u64 = 1 << 6;

/// The long ones are good enough at so small a part above what lives of them at once.
const NEAR: u64 = 1 << 10;

/// It asks so many times whether to stop, and then leaves the rest of the time to a search among all.
const MOST_QUESTIONS: usize = 1 << 15;

/// Places the long blocks as well as can be, then the short ones around them.
pub(super) fn first(instance: &Instance, best: &Best, way: Way, effort: Effort<'_>) {
    let bound = instance.lower_bound();
    let (short, long): (Vec<u32>, Vec<u32>) = way
        .order(instance)
        .into_iter()
        .partition(|&it| instance.blocks[it as usize].size < bound / SHORT);
    if short.is_empty() || long.is_empty() {
        return;
    }
    let of_long = instance.only(&long);
    let (least, peak) = (of_long.lower_bound(), AtomicU64::new(u64::MAX));
    if bound - least > bound / FEW_BYTES {
        return;
    }
    let is_good = || peak.load(Ordering::Relaxed) <= least + least / NEAR;
    let asked = AtomicUsize::new(0);
    let is_over = || asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS;
    let placed = solve(
        &of_long,
        Effort {
            stop: &|| is_good() || is_over() || (effort.stop)(),
            seen: &|lower| peak.store(lower, Ordering::Relaxed),
            ..effort
        },
    );
    let mut packer = Packer::new(instance);
    let at = long.iter().copied().zip(placed.offsets.iter().copied());
    if let Some(peak) = packer.pack_around(at, &short, way.gap, best.peak(), &|| false) {
        best.offer(peak, packer.offsets(), "long blocks first", effort);
    }
}
