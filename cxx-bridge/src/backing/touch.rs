//! Has pages there before CUDA registers them: several threads do that several times faster than
//! the driver, which holds its lock meanwhile.
//!
//! Knows mappings and time, and neither CUDA nor what pages there are.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::pages::{LARGE, Mapping};
use crate::lock::Lock;

/// More than this many threads gain little: the kernel's zeroing is bound by memory.
const MOST: usize = 8;
/// What a thread fills at a time: little, since the kernel keeps others from mapping meanwhile.
const SLICE: usize = 2 * LARGE;
/// What is looked at before the rest is filled in the same way.
const CHUNK: usize = 64 << 20;

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

/// Whether threads rest as long as they work: behind a program that goes on, where there are few
/// cores. Two of them are often one core's threads, and then zeroing on the one slows the other by
/// a fifth, whatever the priorities.
pub(super) fn rests(cores: usize, processes: usize, behind: bool) -> bool {
    behind && cores / processes.max(1) < MANY
}

/// So many cores have work for all of a program's threads and for these.
const MANY: usize = 4;

/// Fills parts of mappings with pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Toucher {
    pub(super) threads: usize,
    /// As the kernel can: `pages::kernel_populates`.
    pub(super) populates: bool,
    /// Whether a thread rests as long as it works.
    pub(super) rests: bool,
}

impl Toucher {
    /// Fills `part`; how long that took.
    pub(super) fn touch(
        &self,
        mapping: &Mapping,
        part: Range<usize>,
        unit: usize,
    ) -> io::Result<Duration> {
        let start = Instant::now();
        let slice = SLICE.max(unit);
        let next = AtomicUsize::new(part.start);
        let failed: Lock<Option<io::Error>> = Lock::default();
        let work = || {
            loop {
                let from = next.fetch_add(slice, Ordering::Relaxed);
                if from >= part.end {
                    break;
                }
                let slice = from..part.end.min(from + slice);
                let begun = Instant::now();
                if !self.populates {
                    mapping.write(&slice);
                } else if let Err(why) = mapping.populate(&slice) {
                    next.store(part.end, Ordering::Relaxed);
                    *failed.lock() = Some(why);
                    break;
                }
                if self.rests {
                    thread::sleep(begun.elapsed());
                }
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
        let failed = failed.lock().take();
        failed.map_or_else(|| Ok(start.elapsed()), Err)
    }
}

/// How filling a mapping with transparent huge pages went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// All of it was filled in that way.
    Whole,
    /// It took longer than pages of 4 KiB would: on fragmented memory the kernel has to move
    /// others' pages for each huge one. What lies before this offset is filled.
    Crawled {
        until: usize,
        huge: Duration,
        small: Duration,
    },
}

/// Touching is not all: CUDA then locks each page by itself, which takes as long again for pages of
/// 4 KiB and next to nothing for huge ones. So these may take twice as long to come.
const WORTH: u32 = 2;

/// Fills `length` bytes by `touch`, and stops where two chunks in a row are slower than `small`
/// says: the time that as many bytes in pages of 4 KiB take; nothing where there is another reason.
///
/// Two, since one may have met a moment when others had the machine; for the second, `small` is
/// asked to measure as carefully as it can.
pub(super) fn fill_unless_it_crawls(
    length: usize,
    mut touch: impl FnMut(Range<usize>) -> io::Result<Duration>,
    mut small: impl FnMut(usize, Care) -> Option<Duration>,
) -> io::Result<Filled> {
    let mut filled = 0;
    for care in [Care::Quick, Care::Thorough] {
        if length - filled < CHUNK {
            // Too little to tell by, and soon done.
            break;
        }
        let huge = touch(filled..filled + CHUNK)?;
        filled += CHUNK;
        let small = small(CHUNK, care);
        let Some(small) = small.filter(|small| huge > *small * WORTH) else {
            break;
        };
        if care == Care::Thorough {
            let until = filled;
            return Ok(Filled::Crawled { until, huge, small });
        }
    }
    if filled < length {
        touch(filled..length)?;
    }
    Ok(Filled::Whole)
}

/// How the time of small pages is to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// As it was once, with a few that are likely to be at hand.
    Quick,
    /// Now, with as many as there are bytes.
    Thorough,
}

#[cfg(test)]
mod tests {
    use super::super::pages::Pages;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Chunks of huge pages that take `huge` milliseconds each, and small ones that take `small`.
    fn fill(length: usize, huge: &[u32], small: Option<u32>) -> (Filled, Vec<Range<usize>>, usize) {
        let (mut parts, mut asked) = (Vec::new(), 0);
        let filled = fill_unless_it_crawls(
            length,
            |part| {
                parts.push(part);
                Ok(MS * huge[(parts.len() - 1).min(huge.len() - 1)])
            },
            |bytes, _| {
                asked += 1;
                assert_eq!(bytes, CHUNK);
                small.map(|it| MS * it)
            },
        );
        (filled.unwrap(), parts, asked)
    }

    #[test]
    fn what_is_fast_is_filled_in_two_parts() {
        let (filled, parts, asked) = fill(16 * CHUNK, &[5], Some(16));
        assert_eq!((filled, asked), (Filled::Whole, 1));
        assert_eq!(parts, [0..CHUNK, CHUNK..16 * CHUNK]);
    }

    #[test]
    fn one_slow_moment_is_forgiven() {
        let (filled, parts, asked) = fill(16 * CHUNK, &[500, 5], Some(16));
        assert_eq!((filled, asked), (Filled::Whole, 2));
        assert_eq!(parts.last(), Some(&(2 * CHUNK..16 * CHUNK)));
    }

    #[test]
    fn what_crawls_is_left_after_two_chunks() {
        let (filled, parts, _) = fill(16 * CHUNK, &[500], Some(16));
        let (huge, small, until) = (500 * MS, 16 * MS, 2 * CHUNK);
        assert_eq!(filled, Filled::Crawled { until, huge, small });
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn nothing_is_told_by_little_or_without_a_measure() {
        let (filled, parts, asked) = fill(CHUNK - 4096, &[500], Some(16));
        assert_eq!((filled, parts.len(), asked), (Filled::Whole, 1, 0));
        let (filled, parts, _) = fill(CHUNK, &[500], Some(16));
        assert_eq!((filled, parts.len()), (Filled::Whole, 1));
        assert_eq!(fill(4 * CHUNK, &[500], None).0, Filled::Whole);
    }

    #[test]
    fn a_page_that_does_not_come_ends_it() {
        let failed = fill_unless_it_crawls(
            4 * CHUNK,
            |_| Err(io::Error::from_raw_os_error(libc::ENOMEM)),
            |_, _| Some(MS),
        );
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::ENOMEM));
    }

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
}
