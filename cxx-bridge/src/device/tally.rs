//! What is counted of planned device memory: of a stream, as PyTorch counts its own; and of a device, to know its peaks.
//!
//! PyTorch's allocator knows the peak of its own memory, and the plans know the bytes of their blocks. The sum of two peaks is no
//! peak of the sum. So where planned bytes are about to change, the peak of PyTorch's allocator is read together with the planned
//! bytes of that time, and begins anew. That takes longer than a request, and is left out where the sum cannot exceed the known
//! peak: what PyTorch's allocator had when it was read last, and what passed to it since, is the most that it can have. Knows no
//! allocator.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use pinbuddy_core::Gauge;

use crate::ffi::Length;

/// As many devices as an index of PyTorch's can name.
const DEVICES: usize = 128;

static ALL: [Tally; DEVICES] = [const { Tally::new() }; DEVICES];

/// An upper bound of all bytes that PyTorch's allocator was asked for, on all devices. Grows only.
static PASSED: AtomicI64 = AtomicI64::new(0);

/// The peak is not known.
const UNKNOWN: i64 = -1;

/// A device's planned bytes, and failures that are not the program's.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Of planned blocks: allocated, active, requested.
    planned: [AtomicI64; 3],
    /// Planned bytes and passed bytes whose sum is at most this make no new peak.
    most: [AtomicI64; 3],
    /// Failures, retries and rejections that PyTorch's allocator counted of tries that are not the program's.
    forgiven: [AtomicU64; 3],
    /// The most in use and the most reserved, of the whole run.
    of_run: [AtomicI64; 2],
    has_pool: AtomicBool,
}

/// This device's; the first one's, for an index that names none.
pub(crate) fn device_tally(device: i8) -> &'static Tally {
    &ALL[usize::try_from(device).unwrap_or(0)]
}

/// PyTorch's allocator is asked for a block of so many bytes.
pub(crate) fn device_passes(bytes: usize) {
    // A block is at most twice as long as its request. A long one may get a rest that PyTorch does not split off.
    const SPLIT: usize = 1 << 20;
    const LEAST: usize = 512;
    const ANY: i64 = 1 << 32;
    let most = if bytes < SPLIT { 2 * (bytes + LEAST) as i64 } else { ANY };
    PASSED.fetch_add(most, Relaxed);
}

/// For how many bytes PyTorch's allocator was asked at most.
pub(crate) fn device_passed() -> i64 {
    PASSED.load(Relaxed)
}

impl Tally {
    const fn new() -> Self {
        Self {
            planned: [const { AtomicI64::new(0) }; 3],
            most: [const { AtomicI64::new(UNKNOWN) }; 3],
            forgiven: [const { AtomicU64::new(0) }; 3],
            of_run: [const { AtomicI64::new(0) }; 2],
            has_pool: AtomicBool::new(false),
        }
    }

    /// Planned blocks have more bytes: allocated, active, requested. Fewer, if negative.
    pub(super) fn add(&self, more: [i64; 3]) {
        for (planned, more) in self.planned.iter().zip(more) {
            if more != 0 {
                planned.fetch_add(more, Relaxed);
            }
        }
    }

    /// Whether the peaks have to be read before planned blocks have up to `more` bytes more, or fewer.
    pub(crate) fn is_due(&self, more: usize) -> bool {
        let more = i64::try_from(more).unwrap_or(i64::MAX);
        let more = more.saturating_add(device_passed());
        let mut both = self.planned.iter().zip(&self.most);
        both.any(|(planned, most)| planned.load(Relaxed).saturating_add(more) > most.load(Relaxed))
    }

    /// The peaks were read, when so much had passed. `slack`: the distance of each value from its peak.
    pub(crate) fn read(&self, passed: i64, slack: &[i64; 3]) {
        for ((most, planned), slack) in self.most.iter().zip(&self.planned).zip(slack) {
            most.store(planned.load(Relaxed) + passed + slack, Relaxed);
        }
    }

    /// The peaks begin anew: nothing is known of them.
    pub(crate) fn forget(&self) {
        self.most.iter().for_each(|it| it.store(UNKNOWN, Relaxed));
    }

    /// Failures, retries and rejections of tries that are not the program's.
    pub(crate) fn forgive(&self, tries: &[u64; 3]) {
        for (forgiven, more) in self.forgiven.iter().zip(tries) {
            forgiven.fetch_add(*more, Relaxed);
        }
    }

    /// What [`Self::forgive`] was told.
    pub(crate) fn forgiven(&self) -> [u64; 3] {
        [0, 1, 2].map(|kind| self.forgiven[kind].load(Relaxed))
    }

    /// Since its peaks began anew, the device had so many bytes in use at most, and so many reserved.
    pub(crate) fn had(&self, in_use: i64, reserved: i64) {
        for (most, had) in self.of_run.iter().zip([in_use, reserved]) {
            most.fetch_max(had, Relaxed);
        }
    }

    /// Private pools, of graphs or the program's, hold what no plan is for.
    pub(crate) fn has_pool(&self) {
        self.has_pool.store(true, Relaxed);
    }

    /// The most of both that [`Self::had`] was told: up to the last request that could be a new peak. None beside pools.
    pub(super) fn of_run(&self) -> Option<[u64; 2]> {
        let most = |it: usize| u64::try_from(self.of_run[it].load(Relaxed)).unwrap_or(0);
        (!self.has_pool.load(Relaxed)).then(|| [most(0), most(1)])
    }

    /// Sums begin anew.
    pub(crate) fn forget_forgiven(&self) {
        self.forgiven.iter().for_each(|it| it.store(0, Relaxed));
    }
}

/// A stream's gauges, each at the index of its name; C++ names them in the same order (`device_reports.h`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted(pub(crate) [Gauge; 10]);

const BLOCKS: usize = 0;
const BYTES: usize = 1;
const REQUESTED: usize = 2;
/// Those that other streams still use count as active.
const ACTIVE: usize = 3;
const ACTIVE_BYTES: usize = 4;
/// PyTorch's allocator counts a region as a block.
const REGIONS: usize = 5;
const REGION_BYTES: usize = 6;
const REGION_REQUESTED: usize = 7;
/// Blocks and regions longer than what PyTorch's allocator splits.
const OVERSIZE: usize = 8;
const OVERSIZE_REGIONS: usize = 9;

impl Length {
    fn of(self, names: [usize; 3]) -> [(usize, u64); 3] {
        let Self { bytes, requested, .. } = self;
        let amounts = [1, bytes as u64, requested as u64];
        [0, 1, 2].map(|it| (names[it], amounts[it]))
    }
}

impl Counted {
    fn add(&mut self, amounts: &[(usize, u64)]) {
        amounts.iter().for_each(|&(it, more)| self.0[it].add(more));
    }

    fn remove(&mut self, amounts: &[(usize, u64)]) {
        amounts.iter().for_each(|&(it, less)| self.0[it].remove(less));
    }

    /// A block was handed out.
    pub(super) fn came(&mut self, block: Length) {
        self.add(&block.of([BLOCKS, BYTES, REQUESTED]));
        self.add(&[(ACTIVE, 1), (ACTIVE_BYTES, block.bytes as u64)]);
        self.add(&[(OVERSIZE, u64::from(block.is_oversize))]);
    }

    /// The program gave it up.
    pub(super) fn freed(&mut self, block: Length) {
        self.remove(&block.of([BLOCKS, BYTES, REQUESTED])[..2]);
        self.remove(&[(OVERSIZE, u64::from(block.is_oversize))]);
    }

    /// Nobody uses it any more.
    pub(super) fn over(&mut self, block: Length) {
        self.remove(&block.of([ACTIVE, ACTIVE_BYTES, REQUESTED]));
    }

    /// A region was taken from PyTorch's allocator.
    pub(super) fn region_came(&mut self, region: Length) {
        self.add(&region.of([REGIONS, REGION_BYTES, REGION_REQUESTED]));
        self.add(&[(OVERSIZE_REGIONS, u64::from(region.is_oversize))]);
    }

    pub(super) fn region_went(&mut self, region: Length) {
        self.remove(&region.of([REGIONS, REGION_BYTES, REGION_REQUESTED]));
        self.remove(&[(OVERSIZE_REGIONS, u64::from(region.is_oversize))]);
    }

    /// The bytes of regions in no block.
    pub(super) fn idle(&self) -> u64 {
        self.0[REGION_BYTES].current - self.0[ACTIVE_BYTES].current
    }
}
