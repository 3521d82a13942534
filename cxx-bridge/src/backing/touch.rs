//! Has pages there before CUDA registers them: several threads do that several times faster than
//! the driver, which holds its lock meanwhile.
//!
//! Knows mappings and time, and neither CUDA nor what pages there are. Between two slices each thread
//! asks whether to go on; one that is told not to ends the others' work, too.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::pages::{LARGE, Mapping};
use super::{Control, background};
use crate::lock::Lock;

/// More than this many threads gain little: the kernel's zeroing is bound by memory.
const MOST: usize = 8;
/// What a thread fills at a time: little, since the kernel keeps others from mapping meanwhile, and
/// nothing can stop it there.
pub(super) const SLICE: usize = 2 * LARGE;

/// How many threads touch the pages of one region: as asked, or as many as this process's share of
/// the cores. Behind a program that goes on, one core is left to it.
pub(super) fn threads(asked: Option<usize>, cores: usize, processes: usize, behind: bool) -> usize {
    let share = cores / processes.max(1);
    let spare = if behind {
        share.saturating_sub(1)
    } else {
        share
    };
    asked.unwrap_or_else(|| spare.min(MOST)).max(1)
}

/// Whether threads rest longer than they work: behind a program that goes on, where there are few
/// cores. Two of them are often one core's threads, and then zeroing on the one slows the other by
/// a fifth and more, whatever the priorities.
pub(super) fn rests(cores: usize, processes: usize, behind: bool) -> bool {
    behind && cores / processes.max(1) < MANY
}

/// So many cores have work for all of a program's threads and for these.
const MANY: usize = 4;

/// Fills parts of mappings with pages.
#[derive(Clone, Copy)]
pub(super) struct Toucher<'a> {
    pub(super) threads: usize,
    /// As the kernel can: `pages::kernel_populates`.
    pub(super) populates: bool,
    /// Whether a thread rests longer than it works, unless somebody waits for it.
    pub(super) rests: bool,
    pub(super) control: &'a dyn Control,
    /// What has been waited and rested, in all.
    pub(super) idle: &'a Idle,
}

/// So many nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Idle(AtomicU64);

impl Idle {
    fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// Why a part is not filled.
#[derive(Debug)]
pub(super) enum Unfilled {
    /// It was not to go on.
    Stopped,
    /// The kernel's answer.
    Failed(io::Error),
}

impl Toucher<'_> {
    /// Fills `part`.
    pub(super) fn touch(
        &self,
        mapping: &Mapping,
        part: Range<usize>,
        unit: usize,
    ) -> Result<(), Unfilled> {
        self.touch_while(mapping, part, unit, &|_| true).map(|_| ())
    }

    /// Fills `part` from its start as long as `judge` says so, which hears what each slice cost a
    /// processor; how far it came. Several threads may ask at once.
    pub(super) fn touch_while(
        &self,
        mapping: &Mapping,
        part: Range<usize>,
        unit: usize,
        judge: &(dyn Fn(Duration) -> bool + Sync),
    ) -> Result<usize, Unfilled> {
        let start = Instant::now();
        let slice = SLICE.max(unit);
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
                // Asked before a slice is taken: a thread that waits there has none.
                let goes_on = next.load(Ordering::Relaxed) < part.end && self.control.go_on();
                let from = next.fetch_add(slice, Ordering::Relaxed);
                if from >= part.end {
                    break;
                }
                if !goes_on {
                    end(Unfilled::Stopped);
                    return;
                }
                let slice = from..part.end.min(from + slice);
                let (begun, before) = (Instant::now(), background::work());
                if !self.populates {
                    mapping.write(&slice);
                } else if let Err(why) = mapping.populate(&slice) {
                    end(Unfilled::Failed(why));
                    return;
                }
                worked += begun.elapsed();
                let cost = background::work() - before;
                if !judge(cost) {
                    // Slices that others have taken are filled.
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
        let slices = part.len().div_ceil(slice);
        thread::scope(|scope| {
            for _ in 1..self.threads.min(slices) {
                let thread = thread::Builder::new().name("pinbuddy-touch".to_owned());
                // Where the system has no thread to give, this one does its part.
                if thread.spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        let worked = outcome.into_inner()?;
        self.idle.add(start.elapsed().saturating_sub(worked));
        Ok(until.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Foreground;
    use super::super::pages::Pages;
    use super::*;

    #[test]
    fn threads_are_this_processs_share_of_the_cores() {
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
    }

    #[test]
    fn few_cores_are_not_kept_busy_behind_a_program() {
        assert!(rests(2, 1, true) && rests(16, 8, true) && rests(1, 1, true));
        assert!(!rests(4, 1, true) && !rests(2, 1, false) && !rests(64, 8, true));
    }

    #[test]
    fn every_page_is_there_whoever_fills_it() {
        for populates in [true, false] {
            for threads in [1, 3] {
                let length = 9 * LARGE + 4096;
                let mapping = Mapping::new(length, Pages::Transparent).unwrap();
                let toucher = Toucher {
                    threads,
                    populates,
                    rests: threads > 1,
                    control: &Foreground,
                    idle: &Idle::default(),
                };
                toucher.touch(&mapping, 0..length, 4096).unwrap();
                let pages: Vec<usize> = (mapping.base()..mapping.base() + length)
                    .step_by(4096)
                    .collect();
                let nodes = super::super::pages::nodes(&pages).unwrap();
                assert!(nodes.iter().all(Option::is_some), "{populates} {threads}");
                mapping.unmap().unwrap();
            }
        }
    }

    #[test]
    fn what_lies_before_the_end_is_filled_where_a_judge_ends_it() {
        for threads in [1, 3] {
            let length = 16 * SLICE;
            let mapping = Mapping::new(length, Pages::Small).unwrap();
            let toucher = Toucher {
                threads,
                populates: true,
                rests: false,
                control: &Foreground,
                idle: &Idle::default(),
            };
            let judged = AtomicUsize::new(0);
            let until = toucher
                .touch_while(&mapping, SLICE..length, 4096, &|_| {
                    judged.fetch_add(1, Ordering::Relaxed) < 4
                })
                .unwrap();
            assert!((6 * SLICE..=(6 + threads) * SLICE).contains(&until));
            let there = |at: usize| {
                let page = mapping.base() + at;
                super::super::pages::nodes(&[page]).unwrap()[0].is_some()
            };
            assert!((SLICE..until).step_by(SLICE).all(there), "{threads}");
            assert!(!(until..length).step_by(SLICE).any(there), "{threads}");
            mapping.unmap().unwrap();
        }
    }

    /// Says so often that all goes on, and then no more; each answer may take its time.
    struct Asked {
        left: AtomicUsize,
        takes: Duration,
    }

    impl Control for Asked {
        fn go_on(&self) -> bool {
            thread::sleep(self.takes);
            let one_less = |left: usize| left.checked_sub(1);
            let order = Ordering::Relaxed;
            self.left.fetch_update(order, order, one_less).is_ok()
        }
    }

    fn touched(
        threads: usize,
        slices: usize,
        control: &Asked,
    ) -> (Result<(), Unfilled>, Idle, usize) {
        let length = slices * SLICE;
        let mapping = Mapping::new(length, Pages::Small).unwrap();
        let idle = Idle::default();
        let toucher = Toucher {
            threads,
            populates: true,
            rests: false,
            control,
            idle: &idle,
        };
        let result = toucher.touch(&mapping, 0..length, 4096);
        let pages: Vec<usize> = (0..slices).map(|it| mapping.base() + it * SLICE).collect();
        let nodes = super::super::pages::nodes(&pages).unwrap();
        mapping.unmap().unwrap();
        (result, idle, nodes.iter().flatten().count())
    }

    #[test]
    fn a_stop_ends_all_threads_between_two_slices() {
        for threads in [1, 3] {
            let asked = Asked {
                left: AtomicUsize::new(4),
                takes: Duration::ZERO,
            };
            let (result, _, filled) = touched(threads, 16, &asked);
            assert!(matches!(result, Err(Unfilled::Stopped)), "{result:?}");
            assert_eq!(filled, 4);
        }
    }

    #[test]
    fn what_is_waited_there_is_no_work_and_no_failure() {
        let takes = Duration::from_millis(30);
        let left = AtomicUsize::new(usize::MAX);
        let (result, idle, filled) = touched(2, 6, &Asked { left, takes });
        assert!(result.is_ok() && filled == 6, "{result:?}");
        assert!(idle.get() >= 2 * takes, "{idle:?}");
    }
}
