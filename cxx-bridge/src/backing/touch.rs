//! Fills memory with pages before CUDA registers it. Several threads do that several times faster than
//! the driver, which would hold its lock meanwhile.
//!
//! Knows mappings and time, and not CUDA. Before each slice a thread asks whether to go on; if not, the
//! other threads end, too.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::collapse::{self, Kernel};
use super::mapping::Mapping;
use super::pages::{self, Pages};
use super::tally::Tally;
use super::{Control, background, crew};
use crate::lock::Lock;

/// More threads gain little: zeroing is limited by memory bandwidth.
const MOST: usize = 8;
/// What a thread fills at a time. Small, since the kernel blocks other mappings meanwhile, and the call
/// cannot be stopped.
pub(crate) const SLICE: usize = 4 << 20;

/// The same for such pages of this machine: huge ones are filled whole.
pub(super) fn slice(pages: Pages) -> usize {
    SLICE.max(pages.filled_in(pages::sizes()))
}

/// How many threads fill one region: as asked, or this process's share of the cores. In the background
/// one core is left to the program.
pub(crate) fn threads(asked: Option<usize>, cores: usize, processes: usize, behind: bool) -> usize {
    let share = cores / processes.max(1);
    let spare = if behind { share.saturating_sub(1) } else { share };
    asked.unwrap_or_else(|| spare.min(MOST)).max(1)
}

/// Whether threads rest longer than they work: in the background on few cores. Two virtual cores are
/// often two threads of one core, and zeroing on one then slows the other by a fifth or more, whatever
/// the priorities.
pub(super) fn rests(cores: usize, processes: usize, behind: bool) -> bool {
    behind && cores / processes.max(1) < MANY
}

/// So many cores are enough for the program's threads and for these.
const MANY: usize = 4;

/// Fills parts of mappings with pages.
#[derive(Clone, Copy)]
pub(super) struct Toucher<'a> {
    pub(super) threads: usize,
    /// As `mapping::kernel_populates` says.
    pub(super) populates: bool,
    /// Whether a thread rests longer than it works, unless another thread waits for it.
    pub(super) rests: bool,
    pub(super) control: &'a dyn Control,
    /// Counts idle time and small pages.
    pub(super) tally: &'a Tally,
}

/// Why a part is not filled.
#[derive(Debug)]
pub(super) enum Unfilled {
    /// The pin was stopped.
    Stopped,
    /// The kernel's error.
    Failed(io::Error),
}

impl Toucher<'_> {
    /// Fills `part` with such pages, all of it.
    pub(super) fn touch(&self, mapping: &Mapping, part: Range<usize>, pages: Pages) -> Result<(), Unfilled> {
        self.touch_while(mapping, part, pages, &|_| true).map(|_| ())
    }

    /// Fills `part` from its start, as long as `judge` approves of each whole slice's processor time. Returns
    /// the offset up to which it is filled. Several threads may call `judge` at once.
    pub(super) fn touch_while(
        &self,
        mapping: &Mapping,
        part: Range<usize>,
        pages: Pages,
        judge: &(dyn Fn(Duration) -> bool + Sync),
    ) -> Result<usize, Unfilled> {
        let start = Instant::now();
        let whole = slice(pages);
        let next = AtomicUsize::new(part.start);
        let until = AtomicUsize::new(part.end);
        let outcome: Lock<Result<Duration, Unfilled>> = Lock::new(Ok(Duration::ZERO));
        let end = |why| {
            next.store(part.end, Ordering::Relaxed);
            let mut outcome = outcome.lock();
            if outcome.is_ok() {
                *outcome = Err(why);
            }
        };
        let work = || {
            let mut worked = Duration::ZERO;
            loop {
                // Asked before a slice is taken, so that a thread that waits holds no slice.
                let goes_on = next.load(Ordering::Relaxed) < part.end && self.control.go_on();
                let from = next.fetch_add(whole, Ordering::Relaxed);
                if from >= part.end {
                    break;
                }
                if !goes_on {
                    end(Unfilled::Stopped);
                    return;
                }
                let slice = from..part.end.min(from + whole);
                let is_whole = slice.len() == whole;
                let (begun, before) = (Instant::now(), background::work());
                if let Err(why) = self.fill(mapping, slice, pages) {
                    end(Unfilled::Failed(why));
                    return;
                }
                worked += begun.elapsed();
                let cost = background::work() - before;
                if is_whole && !judge(cost) {
                    // Slices that other threads have taken are still filled.
                    let next = next.swap(part.end, Ordering::Relaxed);
                    until.fetch_min(next, Ordering::Relaxed);
                }
                if self.rests && next.load(Ordering::Relaxed) < part.end {
                    background::rest(cost, self.control);
                }
            }
            if let Ok(most) = &mut *outcome.lock() {
                *most = worked.max(*most);
            }
        };
        let slices = part.len().div_ceil(whole);
        let helpers = self.threads.min(slices).saturating_sub(1);
        crew::run(helpers, "pinbuddy-touch", &work);
        let worked = outcome.into_inner()?;
        self.tally.idled(start.elapsed().saturating_sub(worked));
        Ok(until.into_inner())
    }

    fn fill(&self, mapping: &Mapping, slice: Range<usize>, pages: Pages) -> io::Result<()> {
        let populates = self.populates;
        let kernel = Asked { mapping, populates };
        if pages != Pages::Collapsed {
            return kernel.fill(slice);
        }
        if let Some(scattered) = collapse::fill(&kernel, slice, pages::sizes())? {
            self.tally.scattered(&scattered);
        }
        Ok(())
    }
}

/// The kernel's calls on one mapping.
struct Asked<'a> {
    mapping: &'a Mapping,
    populates: bool,
}

impl Kernel for Asked<'_> {
    fn fill(&self, part: Range<usize>) -> io::Result<()> {
        if self.populates {
            return self.mapping.populate(&part);
        }
        self.mapping.write(&part);
        Ok(())
    }

    fn collapse(&self, part: Range<usize>) -> io::Result<()> {
        self.mapping.collapse(&part)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::*;
    use crate::config::memory::Fork;
    use crate::sync::Dial;

    #[test]
    fn threads_are_this_processs_share_of_the_cores_and_few_are_not_kept_busy_behind_a_program() {
        for (asked, cores, processes, behind, expected) in [
            (None, 64, 1, false, 8),
            (None, 64, 1, true, 8),
            (None, 4, 1, false, 4),
            (None, 4, 1, true, 3),
            (None, 16, 8, false, 2),
            (None, 16, 8, true, 1),
            (None, 4, 8, false, 1),
            (None, 1, 1, true, 1),
            (Some(3), 64, 8, true, 3),
            (Some(20), 2, 1, false, 20),
        ] {
            assert_eq!(threads(asked, cores, processes, behind), expected);
        }
        assert!(rests(2, 1, true) && rests(16, 8, true) && rests(1, 1, true));
        assert!(!rests(4, 1, true) && !rests(2, 1, false) && !rests(64, 8, true));
    }

    impl<'a> Toucher<'a> {
        /// One whose threads do not rest.
        pub(in crate::backing) fn busy(threads: usize, control: &'a dyn Control, tally: &'a Tally) -> Self {
            Self { threads, populates: true, rests: false, control, tally }
        }
    }

    /// Which of these places in a mapping have a page.
    fn there(mapping: &Mapping, places: impl Iterator<Item = usize>) -> Vec<bool> {
        let pages: Vec<usize> = places.map(|at| mapping.base() + at).collect();
        super::super::mapping::nodes(&pages).unwrap().iter().map(Option::is_some).collect()
    }

    #[test]
    fn every_page_is_there_whoever_fills_it() {
        let kinds = [
            (Pages::Transparent, Fork::Hide),
            (Pages::Transparent, Fork::Share),
            (Pages::Collapsed, Fork::Share),
            (Pages::Small, Fork::Share),
        ];
        for (kind, fork) in kinds {
            for (populates, threads) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
                let sizes = pages::sizes();
                let length = 9 * sizes.large + sizes.page;
                let mapping = Mapping::new(length, kind, fork).unwrap();
                let tally = Tally::default();
                let toucher = Toucher { populates, rests: threads > 1, ..Toucher::busy(threads, &Foreground, &tally) };
                toucher.touch(&mapping, 0..length, kind).unwrap();
                let pages = there(&mapping, (0..length).step_by(sizes.page));
                assert!(!pages.contains(&false), "{kind:?} {populates} {threads}");
                let scattered = tally.in_small_pages().map_or(0, |it| it.bytes);
                assert!(kind == Pages::Collapsed || scattered == 0);
                mapping.unmap().unwrap();
            }
        }
    }

    #[test]
    fn what_lies_before_the_end_is_filled_where_a_judge_ends_it() {
        for threads in [1, 3] {
            let length = 16 * SLICE;
            let mapping = Mapping::new(length, Pages::Small, Fork::Share).unwrap();
            let tally = Tally::default();
            let toucher = Toucher::busy(threads, &Foreground, &tally);
            let judged = AtomicUsize::new(0);
            let until = toucher
                .touch_while(&mapping, SLICE..length, Pages::Small, &|_| judged.fetch_add(1, Ordering::Relaxed) < 4)
                .unwrap();
            assert!((6 * SLICE..=(6 + threads) * SLICE).contains(&until));
            let is_there = |part: Range<usize>| there(&mapping, part.step_by(SLICE));
            assert!(!is_there(SLICE..until).contains(&false), "{threads}");
            assert!(!is_there(until..length).contains(&true), "{threads}");
            mapping.unmap().unwrap();
        }
    }

    /// Goes on so many times, then stops.
    impl Control for Dial<usize> {
        fn go_on(&self) -> bool {
            self.spend()
        }
    }

    #[test]
    fn a_stop_ends_all_threads_between_two_slices() {
        for threads in [1, 3] {
            let length = 16 * SLICE;
            let mapping = Mapping::new(length, Pages::Small, Fork::Share).unwrap();
            let (left, tally) = (Dial::at(4), Tally::default());
            let toucher = Toucher::busy(threads, &left, &tally);
            let result = toucher.touch(&mapping, 0..length, Pages::Small);
            assert!(matches!(result, Err(Unfilled::Stopped)), "{result:?}");
            let pages = there(&mapping, (0..length).step_by(SLICE));
            assert_eq!(pages.iter().filter(|it| **it).count(), 4);
            mapping.unmap().unwrap();
        }
    }
}
