//! Who pins a region without huge pages sooner here: this crate, which maps and registers it, or CUDA, which allocates it.
//!
//! Huge pages are mapped sooner on every machine. Pages of 4 KiB are where many threads fill them; on few cores CUDA may need half the
//! time, since pages that children share cost the kernel twice as much. So both are timed, ours first. Knows neither memory nor drivers.

use std::time::{Duration, Instant};

use super::compaction::is_recent;
use crate::config::MIB;
use crate::lock::Lock;

/// CUDA gets no longer region before it was timed, since its calls cannot be stopped: as much as it allocates in about a tenth of a
/// second, by an H100's figures.
const LONGEST_TRIAL: usize = 256 * MIB;

/// Who pins a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// It is mapped here.
    Us = 0,
    /// CUDA allocates it.
    Cuda = 1,
}

/// How long a region took, in nanoseconds a MiB: all of it, and its registration; and when that was.
#[derive(Clone, Copy, Debug)]
struct Time {
    all: u64,
    registering: u64,
    at: Instant,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Paces {
    last: Lock<[Option<Time>; 2]>,
}

impl Paces {
    /// Who pins a region of `bytes`: the one that was not timed lately, else the one that was quicker. A time counts as long as a stall.
    pub(super) fn quicker(&self, bytes: usize) -> By {
        let last = *self.last.lock();
        let [us, cuda] = last.map(|it| it.filter(|it| is_recent(it.at)).map(|it| it.all));
        match (us, cuda) {
            (Some(_), None) if bytes <= LONGEST_TRIAL => By::Cuda,
            (Some(us), Some(cuda)) if cuda < us => By::Cuda,
            _ => By::Us,
        }
    }

    /// A region of `bytes`, a MiB at least, was pinned in `all`, of which its registration took a part.
    pub(super) fn timed(&self, by: By, bytes: usize, all: Duration, registering: Duration) {
        let mib = (bytes / MIB).max(1) as u128;
        let pace = |it: Duration| u64::try_from(it.as_nanos() / mib).unwrap_or(u64::MAX);
        self.last.lock()[by as usize] =
            Some(Time { all: pace(all), registering: pace(registering), at: Instant::now() });
    }

    /// How long it takes to register a region that is mapped here.
    pub(super) fn registering(&self, bytes: usize) -> Duration {
        let us = self.last.lock()[By::Us as usize];
        let pace = us.map_or(0, |it| it.registering);
        Duration::from_nanos(pace.saturating_mul((bytes / MIB) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::compaction::AGAIN;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// `mib` MiB took so many milliseconds.
    fn timed(paces: &Paces, by: By, mib: usize, ms: u32) {
        paces.timed(by, mib * MIB, ms * MS, MS);
    }

    /// 8 MiB took our way 4 ms, and CUDA's so many.
    fn timed_both(cudas: u32) -> Paces {
        let paces = Paces::default();
        timed(&paces, By::Us, 8, 4);
        timed(&paces, By::Cuda, 8, cudas);
        paces
    }

    #[test]
    fn both_are_timed_and_the_quicker_one_stays_until_it_is_slower_or_refuses() {
        for (cudas, chosen) in [(3, By::Cuda), (5, By::Us)] {
            let paces = Paces::default();
            assert_eq!(paces.quicker(MIB), By::Us);
            timed(&paces, By::Us, 8, 4);
            assert_eq!(paces.quicker(MIB), By::Cuda, "it has not been timed");
            timed(&paces, By::Cuda, 16, 2 * cudas);
            assert_eq!(paces.quicker(MIB), chosen);
            timed(&paces, By::Cuda, 8, 9);
            assert_eq!(paces.quicker(MIB), By::Us);
            paces.timed(By::Cuda, 8 * MIB, Duration::MAX, MS);
            assert_eq!(paces.quicker(MIB), By::Us);
        }
    }

    #[test]
    fn a_long_region_is_no_trial() {
        let paces = Paces::default();
        timed(&paces, By::Us, 8, 4);
        let chosen = [LONGEST_TRIAL, LONGEST_TRIAL + 1].map(|it| paces.quicker(it));
        assert_eq!(chosen, [By::Cuda, By::Us]);
        timed(&paces, By::Cuda, 8, 2);
        assert_eq!(paces.quicker(LONGEST_TRIAL + 1), By::Cuda);
    }

    #[test]
    fn a_time_counts_no_longer_than_that() {
        let paces = timed_both(9);
        let long_ago = Instant::now().checked_sub(AGAIN).unwrap();
        paces.last.lock()[By::Cuda as usize].as_mut().unwrap().at = long_ago;
        assert_eq!(paces.quicker(MIB), By::Cuda, "it is timed again");
        paces.last.lock()[By::Us as usize] = None;
        assert_eq!(paces.quicker(MIB), By::Us);
    }

    #[test]
    fn a_registration_is_a_part_of_our_own_time() {
        assert_eq!(Paces::default().registering(8 * MIB), Duration::ZERO);
        let paces = timed_both(9);
        assert_eq!(paces.registering(32 * MIB), 4 * MS);
    }
}
