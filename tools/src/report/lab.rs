//! The trace replayed with many settings, for a page where they can be changed.
//!
//! The engine itself cannot run in a page: that would take a compiler for WebAssembly. So every setting of a grid is
//! replayed beforehand, until the time is up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pinbuddy_core::Growth;
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay;
use pinbuddy_trace::checked::Step;
use serde::Serialize;

use super::curve::{COARSE, Curve};
use super::observe::observe;

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
    let grid = grid();
    let (next, tried) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop()
                    && let Some((exact, settings)) = grid.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let one = try_one(steps, *exact, *settings);
                    // Nobody panics while holding it.
                    if let Ok(mut tried) = tried.lock() {
                        tried.push(one);
                    }
                }
            });
        }
    });
    let mut tried = tried.into_inner().unwrap_or_default();
    tried.sort_by_key(|it| (it.exact, it.threshold_mb, it.block_mb, it.count));
    Lab {
        block_mb: BLOCKS_MB.into(),
        count: COUNTS.into(),
        threshold_mb: THRESHOLDS_MB.into(),
        tried,
        of: grid.len(),
    }
}

/// All settings; the defaults and what is near to them first.
fn grid() -> Vec<(bool, Settings)> {
    let usual = Settings::default();
    let mut all = Vec::new();
    for megabytes in THRESHOLDS_MB {
        let threshold_bytes = megabytes * MIB;
        let with = Settings {
            threshold_bytes,
            ..usual
        };
        all.push((true, with.exact()));
        for block in BLOCKS_MB {
            for block_count in COUNTS {
                let block_bytes = block * MIB;
                let settings = Settings {
                    block_bytes,
                    block_count,
                    ..with
                };
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

fn try_one(steps: &[Step], exact: bool, settings: Settings) -> Tried {
    debug_assert_eq!(exact, settings.growth == Growth::Exact, "of the grid");
    let mut run = replay::on(Kind::Pinbuddy, settings);
    let seen = observe(run.as_mut(), steps, COARSE);
    Tried {
        block_mb: settings.block_bytes / MIB,
        count: settings.block_count,
        threshold_mb: settings.threshold_bytes / MIB,
        exact,
        pinned: seen.pinned,
        peak: seen.last.peak,
        waits: seen.last.misses,
        calls: seen.last.calls,
    }
}
