//! Who pins a region without huge pages sooner here: this crate, which maps and registers it, or CUDA, which allocates it.
//!
//! Huge pages are mapped sooner on every machine. Pages of 4 KiB are where many threads fill them; on few cores CUDA may need half the
//! time, since pages that children share cost the kernel twice as much. So both are timed, ours first. Knows neither memory nor drivers.

use std::time::{Duration, Instant};

use crate::lock::Lock;

/// A time counts for so long: as long as huge pages are not tried again after a stall.
const LASTS: Duration = Duration::from_secs(10);

/// Who pins a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// It is mapped here.
    Us = 0,
    /// CUDA allocates it.
    Cuda = 1,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Paces {
    /// In nanoseconds a MiB, and when.
    last: Lock<[Option<(u64, Instant)>; 2]>,
}

impl Paces {
    /// Who pins the next region: the one that was not timed lately, else the one that was quicker.
    pub(super) fn quicker(&self) -> By {
        let last = *self.last.lock();
        let [us, cuda] =
            last.map(|it| it.filter(|it| it.1.elapsed() < LASTS).map(|(pace, _)| pace));
        match (us, cuda) {
            (None, _) => By::Us,
            (Some(_), None) => By::Cuda,
            (Some(us), Some(cuda)) if cuda < us => By::Cuda,
            (Some(_), Some(_)) => By::Us,
        }
    }

    /// A region of `mib` MiB was pinned in `taken`.
    pub(super) fn timed(&self, by: By, mib: usize, taken: Duration) {
        let Some(pace) = taken.as_nanos().checked_div(mib as u128) else {
            return;
        };
        let pace = u64::try_from(pace).unwrap_or(u64::MAX);
        self.last.lock()[by as usize] = Some((pace, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn both_are_timed_and_the_quicker_one_stays() {
        for (cudas, chosen) in [(3, By::Cuda), (5, By::Us)] {
            let paces = Paces::default();
            assert_eq!(paces.quicker(), By::Us);
            paces.timed(By::Us, 8, 4 * MS);
            assert_eq!(paces.quicker(), By::Cuda, "it has not been timed");
            paces.timed(By::Cuda, 16, 2 * cudas * MS);
            assert_eq!(paces.quicker(), chosen);
        }
    }

    #[test]
    fn what_has_become_slower_is_left() {
        let paces = Paces::default();
        paces.timed(By::Us, 8, 4 * MS);
        paces.timed(By::Cuda, 8, 2 * MS);
        paces.timed(By::Cuda, 8, 9 * MS);
        assert_eq!(paces.quicker(), By::Us);
    }

    #[test]
    fn a_time_counts_no_longer_than_that() {
        let paces = Paces::default();
        paces.timed(By::Us, 8, 4 * MS);
        paces.timed(By::Cuda, 8, 9 * MS);
        paces.last.lock()[By::Cuda as usize] = Instant::now().checked_sub(LASTS).map(|it| (1, it));
        assert_eq!(paces.quicker(), By::Cuda, "it is timed again");
        paces.last.lock()[By::Us as usize] = None;
        assert_eq!(paces.quicker(), By::Us);
    }

    #[test]
    fn less_than_a_mib_tells_nothing() {
        let paces = Paces::default();
        paces.timed(By::Us, 0, MS);
        assert_eq!(paces.quicker(), By::Us);
    }
}
