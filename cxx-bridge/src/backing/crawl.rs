//! Fills a region with transparent huge pages, unless that crawls.
//!
//! On fragmented memory the kernel moves others' pages together for each huge page, and that can
//! take longer than all that huge pages save. The first chunk shows it. Knows time and mappings;
//! what is done about it is decided in `region`.

use std::ops::Range;
use std::time::Duration;

use super::pages::{Mapping, Pages};
use super::touch::{Toucher, Unfilled};
use crate::config::MIB;
use crate::lock::Lock;

/// What is looked at before the rest is filled in the same way.
const CHUNK: usize = 64 * MIB;

/// How many bytes of 4 KiB pages are touched to know their pace: some for each thread.
const SAMPLE: usize = 32 * MIB;

/// What is known of pages of 4 KiB on this machine: how long a sample took, with so many threads.
#[derive(Debug, Default)]
pub(super) struct Pace(Lock<Option<(usize, Duration)>>);

impl Pace {
    /// How long `bytes` bytes take: measured once for each number of threads.
    fn of(&self, toucher: Toucher<'_>, bytes: usize) -> Result<Option<Duration>, Unfilled> {
        let threads = toucher.threads;
        let known = *self.0.lock();
        let took = match known {
            Some((of, took)) if of == threads => took,
            _ => {
                let Some(took) = time_of_small(toucher, SAMPLE)? else {
                    return Ok(None);
                };
                *self.0.lock() = Some((threads, took));
                took
            }
        };
        Ok(Some(took.mul_f64(bytes as f64 / SAMPLE as f64)))
    }

    /// Fills `mapping` with transparent huge pages, as long as that is worth it; `stalls` is how
    /// often a page had to wait for others to be moved, where the kernel counts that.
    pub(super) fn fill(
        &self,
        mapping: &Mapping,
        toucher: Toucher<'_>,
        stalls: impl Fn() -> Option<u64>,
    ) -> Result<Filled, Unfilled> {
        let before = stalls();
        let touch = |part| toucher.touch(mapping, part, Pages::Transparent.unit());
        let small = |bytes, care| {
            // A virtual machine that has to ask its host for the memory is slow as well, and would
            // be with small pages, too.
            if before.is_some() && before == stalls() {
                return Ok(None);
            }
            match care {
                Care::Quick => self.of(toucher, bytes),
                Care::Thorough => time_of_small(toucher, bytes),
            }
        };
        fill_unless_it_crawls(mapping.len(), touch, small)
    }
}

/// How long so many bytes in pages of 4 KiB take; nothing where they are not to be had.
fn time_of_small(toucher: Toucher<'_>, bytes: usize) -> Result<Option<Duration>, Unfilled> {
    let Ok(sample) = Mapping::new(bytes, Pages::Small) else {
        return Ok(None);
    };
    let _ = sample.keep_from_children();
    let took = toucher.touch(&sample, 0..bytes, Pages::Small.unit());
    let _ = sample.unmap();
    match took {
        Ok(took) => Ok(Some(took)),
        Err(Unfilled::Failed(_)) => Ok(None),
        Err(Unfilled::Stopped) => Err(Unfilled::Stopped),
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
fn fill_unless_it_crawls(
    length: usize,
    mut touch: impl FnMut(Range<usize>) -> Result<Duration, Unfilled>,
    mut small: impl FnMut(usize, Care) -> Result<Option<Duration>, Unfilled>,
) -> Result<Filled, Unfilled> {
    let mut filled = 0;
    for care in [Care::Quick, Care::Thorough] {
        if length - filled < CHUNK {
            // Too little to tell by, and soon done.
            break;
        }
        let huge = touch(filled..filled + CHUNK)?;
        filled += CHUNK;
        let small = small(CHUNK, care)?;
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
enum Care {
    /// As it was once, with a few that are likely to be at hand.
    Quick,
    /// Now, with as many as there are bytes.
    Thorough,
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::touch::Idle;
    use super::super::{Control, Foreground};
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
                Ok(small.map(|it| MS * it))
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
            |_| Err(Unfilled::Failed(io::Error::from_raw_os_error(libc::ENOMEM))),
            |_, _| Ok(Some(MS)),
        );
        let Err(Unfilled::Failed(why)) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(why.raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn a_stop_while_pages_are_compared_is_a_stop() {
        let (slow, stopped) = (|_| Ok(500 * MS), |_, _| Err(Unfilled::Stopped));
        let outcome = fill_unless_it_crawls(4 * CHUNK, slow, stopped);
        assert!(matches!(outcome, Err(Unfilled::Stopped)), "{outcome:?}");
        let toucher = Toucher {
            threads: 2,
            populates: true,
            rests: false,
            control: &Ends,
            idle: &Idle::default(),
        };
        let pace = Pace::default();
        assert!(pace.of(toucher, SAMPLE).is_err());
        assert!(pace.0.lock().is_none(), "nothing is learnt from it");
    }

    struct Ends;

    impl Control for Ends {
        fn go_on(&self) -> bool {
            false
        }
    }

    #[test]
    fn the_pace_of_small_pages_is_measured_once_for_each_number_of_threads() {
        let pace = Pace::default();
        let idle = Idle::default();
        let of = |threads, bytes| {
            let toucher = Toucher {
                threads,
                populates: true,
                rests: false,
                control: &Foreground,
                idle: &idle,
            };
            pace.of(toucher, bytes).unwrap()
        };
        let first = of(2, SAMPLE).unwrap();
        assert_eq!(of(2, SAMPLE), Some(first));
        assert_eq!(of(2, 2 * SAMPLE), Some(first * 2));
        assert!(of(1, SAMPLE).is_some());
    }
}
