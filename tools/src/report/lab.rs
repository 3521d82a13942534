//! The trace replayed with many settings, for a page where they can be changed.
//!
//! The engine itself cannot run in a page: that would take a compiler for WebAssembly. So every setting of a grid is
//! replayed beforehand, until the time is up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use pinbuddy_core::Growth;
use pinbuddy_plan::side_by_side;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::prepared::Prepared;
use pinbuddy_replay::step::{Act, Step};
use serde::Serialize;

use super::curve::{COARSE, Curve};
use crate::baseline::MOST_PINNED;

const MIB: u64 = 1 << 20;

const BLOCKS_MB: [u64; 6] = [64, 128, 256, 512, 1024, 2048];
const COUNTS: [Option<u64>; 6] = [None, Some(0), Some(1), Some(2), Some(4), Some(8)];
const THRESHOLDS_MB: [u64; 4] = [0, 1, 4, 16];

/// What settings came to.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// `BUDDY_BLOCK_SIZE_MB`.
    pub block_mb: u64,
    /// `BUDDY_BLOCK_COUNT`, where it is set.
    pub count: Option<u64>,
    /// `BUDDY_THRESHOLD_MB`.
    pub threshold_mb: u64,
    /// `BUDDY_GROWTH=exact BUDDY_WARMUP=off`, for which blocks do not matter.
    pub exact: bool,
    /// Bytes pinned over time.
    pub pinned: Curve,
    /// The most.
    pub peak: u64,
    /// Requests that waited for the driver.
    pub waits: u64,
    /// Calls to the driver.
    pub calls: u64,
}

/// The grid.
#[derive(Clone, Debug, Serialize)]
pub struct Lab {
    block_mb: Vec<u64>,
    count: Vec<Option<u64>>,
    threshold_mb: Vec<u64>,
    /// As many as there was time for.
    pub tried: Vec<Tried>,
    /// How many there would have been.
    pub of: usize,
}

/// Replays, on so many threads, until `stop`.
pub(super) fn explore(steps: &[Step], threads: usize, stop: &(dyn Fn() -> bool + Sync)) -> Lab {
    let alike = alike(steps);
    let all = grid();
    let of = all.len();
    let replayed = |(_, it): &(bool, Settings)| {
        let megabytes = it.threshold_bytes / MIB;
        alike.contains(&(megabytes, megabytes))
    };
    let grid: Vec<_> = all.into_iter().filter(replayed).collect();
    let (next, tried) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // By threshold, made by the first who needs it.
    let ready: [OnceLock<Prepared>; THRESHOLDS_MB.len()] = Default::default();
    side_by_side(threads, |_| {
        while !stop()
            && let Some((exact, settings)) = grid.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let threshold = settings.threshold_bytes;
            let at = THRESHOLDS_MB.partition_point(|it| *it * MIB < threshold);
            let ready = ready[at].get_or_init(|| Prepared::new(steps, threshold));
            let one = try_one(ready, *exact, *settings);
            // Nobody panics while holding it.
            if let Ok(mut tried) = tried.lock() {
                tried.push(one);
            }
        }
    });
    let mut tried = tried.into_inner().unwrap_or_default();
    for (threshold_mb, same) in alike.into_iter().filter(|(one, other)| one != other) {
        let copies = tried.iter().filter(|it| it.threshold_mb == same);
        let copies = copies.cloned().map(|it| Tried { threshold_mb, ..it });
        tried.extend(copies.collect::<Vec<_>>());
    }
    tried.sort_by_key(|it| (it.exact, it.threshold_mb, it.block_mb, it.count));
    Lab { block_mb: BLOCKS_MB.into(), count: COUNTS.into(), threshold_mb: THRESHOLDS_MB.into(), tried, of }
}

/// Each threshold, and one that leaves the same requests to stock: a threshold says nothing else.
fn alike(steps: &[Step]) -> [(u64, u64); THRESHOLDS_MB.len()] {
    let mut between = [false; THRESHOLDS_MB.len()];
    for step in steps {
        if let Act::Alloc { bytes, .. } = step.act {
            let below = THRESHOLDS_MB.partition_point(|it| *it * MIB <= bytes);
            between[below.saturating_sub(1)] = true;
        }
    }
    // Those with no request between them are alike, and the default stands for its like.
    let group = |at: usize| between[..at].iter().filter(|it| **it).count();
    let usual = Settings::default().threshold_bytes / MIB;
    std::array::from_fn(|at| {
        let all = (0..THRESHOLDS_MB.len()).filter(|it| group(*it) == group(at));
        let all: Vec<u64> = all.map(|it| THRESHOLDS_MB[it]).collect();
        let chosen = if all.contains(&usual) { usual } else { all[0] };
        (THRESHOLDS_MB[at], chosen)
    })
}

/// All settings; the defaults and what is near to them first.
fn grid() -> Vec<(bool, Settings)> {
    let usual = Settings::default();
    let mut all = Vec::new();
    for megabytes in THRESHOLDS_MB {
        let threshold_bytes = megabytes * MIB;
        let with = Settings { threshold_bytes, ..usual };
        all.push((true, with.exact()));
        for block in BLOCKS_MB {
            for block_count in COUNTS {
                let (block_bytes, mut settings) = (block * MIB, with);
                (settings.block_bytes, settings.block_count) = (block_bytes, block_count);
                all.push((false, settings));
            }
        }
    }
    all.sort_by_key(|(exact, it)| {
        let other = u32::from(it.threshold_bytes != usual.threshold_bytes);
        let block = it.block_bytes.ilog2().abs_diff(usual.block_bytes.ilog2());
        (other + block + u32::from(it.block_count.is_some()), !exact)
    });
    all
}

fn try_one(ready: &Prepared, exact: bool, settings: Settings) -> Tried {
    debug_assert_eq!(exact, settings.growth == Growth::Exact, "of the grid");
    let mut pinned = Curve::new(COARSE);
    let last = ready.replay(settings, &mut |at, bytes| {
        pinned.push(at, bytes);
        bytes <= MOST_PINNED
    });
    Tried {
        block_mb: settings.block_bytes / MIB,
        count: settings.block_count,
        threshold_mb: settings.threshold_bytes / MIB,
        exact,
        pinned,
        peak: last.peak,
        waits: last.misses,
        calls: last.calls,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(sizes: &[u64]) -> Vec<Step> {
        let step = |(block, &bytes): (u32, &u64)| Step { at: block.into(), act: Act::Alloc { block, bytes } };
        (0..).zip(sizes).map(step).collect()
    }

    #[test]
    fn thresholds_are_alike_that_serve_the_same() {
        let of = |sizes: &[u64]| alike(&requests(sizes)).map(|it| it.1);
        assert_eq!(of(&[]), [4, 4, 4, 4]);
        assert_eq!(of(&[1, MIB, 4 * MIB, 16 * MIB]), [0, 1, 4, 16]);
        assert_eq!(of(&[MIB, 64 * MIB]), [0, 0, 4, 4]);
        assert_eq!(of(&[1, 4 * MIB - 1, 5 * MIB]), [0, 1, 4, 16]);
    }

    /// What is not replayed is what a replay would have come to.
    #[test]
    fn what_is_copied_is_what_would_have_been_replayed() {
        let steps = requests(&[5 * MIB, 30 * MIB, 2 * MIB, 5 * MIB]);
        let lab = explore(&steps, 1, &|| false);
        assert_eq!((lab.tried.len(), lab.of), (148, 148));
        for (exact, settings) in grid() {
            let ready = Prepared::new(&steps, settings.threshold_bytes);
            let shown = |it: &Tried| serde_json::to_string(it).unwrap();
            let key = |it: &Tried| (it.exact, it.block_mb, it.count, it.threshold_mb);
            let one = try_one(&ready, exact, settings);
            let there = lab.tried.iter().find(|it| key(it) == key(&one)).unwrap();
            assert_eq!(shown(there), shown(&one));
        }
    }
}
