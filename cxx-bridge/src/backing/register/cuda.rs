//! Regions that CUDA allocates, and when it is to allocate one though memory can be mapped.

use std::time::{Duration, Instant};

use pinbuddy_core::Region;

use super::super::driver::Driver;
use super::super::pace::By;
use super::super::{Control, Device, Pinned, Source, Unpinned, background};
use super::Chain;
use crate::config::memory::Way;

impl<D: Driver> Chain<D> {
    /// Whether CUDA pins this region sooner, for a request: it would have small pages, which CUDA is, or may be, quicker with.
    ///
    /// What is pinned behind the program stays ours, since it can be stopped; as does what lies on a chosen node, or is hidden from
    /// children.
    pub(super) fn is_sooner_by_cuda(&self, bytes: usize, source: Source) -> bool {
        self.way == Way::Auto
            && source == Source::Ordinary
            && self.maps()
            && !background::entered()
            && self.paces.quicker(bytes) == By::Cuda
            && self.maker.is_as_cudas(bytes)
    }

    /// Has CUDA allocate a region, which cannot be stopped.
    pub(super) fn allocate(&self, bytes: usize, device: Device, control: &dyn Control) -> Result<Pinned, Unpinned> {
        if !control.may_register(bytes) {
            return Err(Unpinned::Stopped);
        }
        let start = Instant::now();
        let base = match self.driver.pin(bytes, device) {
            Ok(base) => base,
            Err(_) if !control.go_on() => return Err(Unpinned::Stopped),
            Err(why) => return Err(Unpinned::Refused(why)),
        };
        let registering = start.elapsed();
        let region = Region { base, bytes };
        self.remember(region, None, region, Source::Ordinary);
        Ok(Pinned { base, filling: Duration::ZERO, registering })
    }

    /// Has CUDA allocate a region that could be mapped here, unless it refuses to.
    pub(super) fn allocate_sooner(
        &self,
        bytes: usize,
        device: Device,
        control: &dyn Control,
    ) -> Option<Result<Pinned, Unpinned>> {
        match self.allocate(bytes, device, control) {
            Ok(pinned) => {
                let all = pinned.registering;
                self.timed(By::Cuda, bytes, all, all);
                self.said.sooner.say(false, || {
                    "there are no huge pages for a region: CUDA allocates it where that takes less time than pages of \
                     4 KiB do here (BUDDY_BACKING)"
                        .to_owned()
                });
                // What is pinned behind the program is registered here, and its length is chosen by how long that takes.
                let registering = self.paces.registering(bytes).min(all);
                Some(Ok(Pinned { filling: all - registering, registering, ..pinned }))
            }
            Err(Unpinned::Stopped) => Some(Err(Unpinned::Stopped)),
            Err(Unpinned::Refused(_)) => {
                self.timed(By::Cuda, bytes, Duration::MAX, Duration::ZERO);
                None
            }
        }
    }

    /// A region without huge pages was pinned in that time.
    pub(super) fn timed(&self, by: By, bytes: usize, all: Duration, registering: Duration) {
        // Threads behind the program have a lower priority, and rest.
        if !background::entered() {
            self.paces.timed(by, bytes, all, registering);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::machine::tests::{ENABLED, made_up};
    use super::super::super::{Foreground, Memory};
    use super::super::tests::{Fake, chain, chain_on, pin};
    use super::*;
    use crate::config::MIB;

    const BYTES: usize = 8 * MIB;

    /// Two threads fill a region: each of them has a slice of this one.
    const THREADS: (&str, &str) = ("BUDDY_PIN_THREADS", "2");

    /// How many of four regions CUDA allocates, which takes no time here, on a machine without huge pages.
    fn allocated(variables: &[(&str, &str)], bytes: usize) -> usize {
        let chain = chain(&[variables, &[THREADS]].concat());
        let regions = [(); 4].map(|()| pin(&chain, bytes));
        let allocated = chain.driver.allocated();
        for region in regions {
            chain.unpin(region).unwrap();
        }
        assert_eq!(chain.driver.allocated(), 0);
        allocated
    }

    fn ours_took_long(chain: &Chain<Fake>) {
        let long = Duration::from_secs(1);
        chain.timed(By::Us, BYTES, long, long / 5);
    }

    #[test]
    fn of_regions_without_huge_pages_all_but_the_first_are_pinned_the_quicker_way() {
        assert_eq!([&[][..], &[("BUDDY_HUGE_PAGES", "off")]].map(|it| allocated(it, BYTES)), [3; 2]);
        // Short ones tell nothing, and are not compared.
        assert_eq!(allocated(&[], BYTES - MIB), 0);
    }

    #[test]
    fn what_cuda_would_not_do_as_asked_is_mapped_here() {
        for setting in [("BUDDY_BACKING", "pages"), ("BUDDY_FORK", "hide"), ("BUDDY_NUMA", "auto"), ("BUDDY_NUMA", "0")]
        {
            assert_eq!(allocated(&[setting], BYTES), 0, "{setting:?}");
        }
    }

    #[test]
    fn a_region_with_huge_pages_is_not_compared() {
        let (machine, _folder) = made_up(&[(ENABLED, "[always] madvise never")]);
        let chain = chain_on(&machine, &[THREADS]);
        ours_took_long(&chain);
        let before = chain.driver.allocated();
        let region = pin(&chain, BYTES);
        assert_eq!(chain.driver.allocated(), before);
        chain.unpin(region).unwrap();
    }

    #[test]
    fn where_cuda_refuses_or_memory_is_short_it_is_mapped_here() {
        let chain = chain(&[THREADS]);
        ours_took_long(&chain);
        chain.driver.refuses_to_allocate();
        assert!(chain.is_sooner_by_cuda(BYTES, Source::Ordinary));
        chain.unpin(pin(&chain, BYTES)).unwrap();
        ours_took_long(&chain);
        assert!(!chain.is_sooner_by_cuda(BYTES, Source::Ordinary), "it is not asked each time");
        let (machine, _folder) = made_up(&[("proc/meminfo", "MemAvailable: 2048 kB\n")]);
        let chain = chain_on(&machine, &[THREADS]);
        ours_took_long(&chain);
        assert!(!chain.is_sooner_by_cuda(BYTES, Source::Ordinary));
    }

    /// Else the worker would find that it registers slowly, and pin nothing ahead.
    #[test]
    fn what_cuda_allocates_sooner_says_how_long_a_registration_takes() {
        let chain = chain(&[THREADS]);
        chain.timed(By::Us, BYTES, Duration::from_secs(1), Duration::from_nanos(8));
        let pinned = chain.pin(BYTES, Device(0), Source::Ordinary, &Foreground).unwrap();
        assert_eq!(chain.driver.allocated(), 1);
        assert_eq!(pinned.registering, Duration::from_nanos(8));
        let base = pinned.base;
        chain.unpin(Region { base, bytes: BYTES }).unwrap();
    }
}
