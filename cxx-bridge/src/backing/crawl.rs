//! Fills a region with transparent huge pages, private or shared, unless that crawls.
//!
//! On fragmented memory the kernel moves others' pages together for each huge page, and a virtual
//! machine may have to ask its host for one, where single pages are at hand. That can take longer
//! than all that huge pages save. Slices that are slow are compared with pages of 4 KiB. Knows time
//! and mappings; what is done about it is decided in `region`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::background;
use super::mapping::Mapping;
use super::pages::Pages;
use super::touch::{SLICE, Toucher, Unfilled};
use crate::config::memory::Fork;
use crate::lock::Lock;

/// A slice that costs no more is not compared: pages of 4 KiB take half of that at the least, and
/// CUDA then locks each of them by itself.
const SURELY_FAST: Duration = Duration::from_millis(1);
/// Touching is not all: CUDA then locks each page by itself, which takes as long again for pages of
/// 4 KiB and next to nothing for huge ones. So these may take twice as long to come.
const WORTH: u32 = 2;
/// Huge pages are tried again after so long: memory comes together again, or the host has given it.
const AGAIN: Duration = Duration::from_secs(10);

/// How filling a mapping with transparent huge pages went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// All of it was filled in that way.
    Whole,
    /// A slice cost so much more than one of pages of 4 KiB. What lies before this offset is filled.
    Crawled {
        until: usize,
        huge: Duration,
        small: Duration,
    },
}

/// What was seen of late.
#[derive(Debug, Default)]
pub(super) struct Crawl(Lock<Seen>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When huge pages crawled.
    crawl: Option<Instant>,
    /// What a slice may cost, since those of pages of 4 KiB cost half of it; and when that was measured.
    limit: Option<(Duration, Instant)>,
}

impl Crawl {
    /// Whether they are not worth trying now.
    pub(super) fn was_just_seen(&self) -> bool {
        self.0.lock().crawl.is_some_and(is_recent)
    }

    /// Fills `mapping` with transparent huge pages, as long as that is worth it.
    pub(super) fn fill(
        &self,
        mapping: &Mapping,
        pages: Pages,
        toucher: Toucher<'_>,
    ) -> Result<Filled, Unfilled> {
        let touch = |from, judge: &(dyn Fn(Duration) -> bool + Sync)| {
            toucher.touch_while(mapping, from..mapping.len(), pages, judge)
        };
        let limit = self.0.lock().limit.filter(|it| is_recent(it.1));
        let small = || {
            let small = cost_of_small(mapping.fork(), toucher)?;
            if let Some(small) = small {
                self.0.lock().limit = Some((small * WORTH, Instant::now()));
            }
            Ok(small)
        };
        let limit = limit.map_or(SURELY_FAST, |it| it.0.max(SURELY_FAST));
        let filled = fill_unless_it_crawls(mapping.len(), limit, touch, small)?;
        if filled != Filled::Whole {
            self.0.lock().crawl = Some(Instant::now());
        }
        Ok(filled)
    }
}

fn is_recent(moment: Instant) -> bool {
    moment.elapsed() < AGAIN
}

/// What a slice of pages of 4 KiB of such memory costs now; nothing where they are not to be had.
fn cost_of_small(fork: Fork, toucher: Toucher<'_>) -> Result<Option<Duration>, Unfilled> {
    let Ok(sample) = Mapping::new(SLICE, Pages::Small, fork) else {
        return Ok(None);
    };
    let before = background::work();
    // A single slice: this thread does all of it.
    let touched = toucher.touch(&sample, 0..SLICE, Pages::Small);
    let cost = background::work() - before;
    let _ = sample.unmap();
    match touched {
        Ok(()) => Ok(Some(cost)),
        Err(Unfilled::Failed(_)) => Ok(None),
        Err(Unfilled::Stopped) => Err(Unfilled::Stopped),
    }
}

/// Fills `length` bytes by `touch`, which begins where it is told and goes on as long as the judge
/// lets it, and stops where two slices in a row cost more than `small` says that one in pages of
/// 4 KiB is worth; nothing where that is not known.
///
/// Two, since one may have met a moment when others held what it needed. A slice that costs no more
/// than `limit` is not looked at.
fn fill_unless_it_crawls(
    length: usize,
    mut limit: Duration,
    mut touch: impl FnMut(usize, &(dyn Fn(Duration) -> bool + Sync)) -> Result<usize, Unfilled>,
    mut small: impl FnMut() -> Result<Option<Duration>, Unfilled>,
) -> Result<Filled, Unfilled> {
    let mut filled = 0;
    loop {
        // The quicker of two slices in a row that cost more than the limit; 0 for none.
        let (last, slow) = (AtomicU64::new(0), AtomicU64::new(0));
        let judge = |cost: Duration| {
            let over = if cost > limit { nanos(cost) } else { 0 };
            let before = last.swap(over, Ordering::Relaxed);
            if over == 0 || before == 0 {
                return true;
            }
            slow.store(over.min(before), Ordering::Relaxed);
            false
        };
        filled = touch(filled, &judge)?;
        if filled >= length {
            return Ok(Filled::Whole);
        }
        let huge = Duration::from_nanos(slow.into_inner());
        limit = match small()? {
            Some(small) if huge > small * WORTH => {
                let until = filled;
                return Ok(Filled::Crawled { until, huge, small });
            }
            // Small pages are as slow, and their cost is known now.
            Some(small) => small * WORTH,
            None => Duration::MAX,
        };
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::Control;
    use super::super::tally::Tally;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// So many slices, which cost `huge` milliseconds each in turn, the last of them for good, and
    /// small ones that cost `small`; how often these were asked for.
    fn fill(slices: usize, huge: &[u32], small: Option<u32>) -> (Filled, usize) {
        let (mut at, mut asked) = (0, 0);
        let filled = fill_unless_it_crawls(
            slices * SLICE,
            SURELY_FAST,
            |from, judge| {
                assert_eq!(from, at * SLICE);
                while at < slices {
                    at += 1;
                    if !judge(MS * huge[(at - 1).min(huge.len() - 1)]) {
                        break;
                    }
                }
                Ok(at * SLICE)
            },
            || {
                asked += 1;
                Ok(small.map(|it| MS * it))
            },
        );
        (filled.unwrap(), asked)
    }

    fn crawled(slices: usize, huge: u32, small: u32) -> Filled {
        Filled::Crawled {
            until: slices * SLICE,
            huge: MS * huge,
            small: MS * small,
        }
    }

    #[test]
    fn what_is_fast_is_not_even_compared() {
        assert_eq!(fill(256, &[1], Some(1)), (Filled::Whole, 0));
    }

    #[test]
    fn single_slow_moments_are_forgiven() {
        let huge = [1, 90, 1, 90, 1, 90, 1];
        assert_eq!(fill(256, &huge, Some(2)), (Filled::Whole, 0));
    }

    #[test]
    fn what_crawls_is_left_after_two_slices_wherever_it_begins() {
        assert_eq!(fill(4, &[9], Some(2)), (crawled(2, 9, 2), 1));
        let later = [1, 1, 1, 1, 1, 12, 9];
        assert_eq!(fill(256, &later, Some(2)), (crawled(7, 9, 2), 1));
    }

    #[test]
    fn where_small_pages_are_as_slow_huge_ones_stay() {
        assert_eq!(fill(256, &[9], Some(5)), (Filled::Whole, 1));
        // And slower ones are compared again.
        let slower = [9, 9, 9, 9, 30];
        assert_eq!(fill(256, &slower, Some(5)), (crawled(6, 30, 5), 2));
    }

    #[test]
    fn nothing_is_told_by_one_slice_or_without_a_measure() {
        assert_eq!(fill(1, &[500], Some(1)), (Filled::Whole, 0));
        assert_eq!(fill(256, &[500], None), (Filled::Whole, 1));
    }

    #[test]
    fn a_page_that_does_not_come_ends_it() {
        let failed = fill_unless_it_crawls(
            4 * SLICE,
            SURELY_FAST,
            |_, _| Err(Unfilled::Failed(io::Error::from_raw_os_error(libc::ENOMEM))),
            || Ok(Some(MS)),
        );
        let Err(Unfilled::Failed(why)) = failed else {
            panic!("{failed:?}")
        };
        assert_eq!(why.raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn a_stop_while_pages_are_compared_is_a_stop() {
        struct Ends;
        impl Control for Ends {
            fn go_on(&self) -> bool {
                false
            }
        }
        let toucher = Toucher {
            threads: 2,
            populates: true,
            rests: false,
            control: &Ends,
            tally: &Tally::default(),
        };
        assert!(matches!(
            cost_of_small(Fork::Share, toucher),
            Err(Unfilled::Stopped)
        ));
        let slow = |_, judge: &(dyn Fn(Duration) -> bool + Sync)| {
            assert!(judge(9 * MS) && !judge(9 * MS));
            Ok(2 * SLICE)
        };
        let outcome = fill_unless_it_crawls(4 * SLICE, SURELY_FAST, slow, || {
            cost_of_small(Fork::Share, toucher)
        });
        assert!(matches!(outcome, Err(Unfilled::Stopped)), "{outcome:?}");
    }

    #[test]
    fn what_crawled_is_tried_again_later() {
        let crawl = Crawl::default();
        assert!(!crawl.was_just_seen());
        crawl.0.lock().crawl = Some(Instant::now());
        assert!(crawl.was_just_seen());
        crawl.0.lock().crawl = Instant::now().checked_sub(AGAIN);
        assert!(!crawl.was_just_seen());
    }
}
