//! Fills a region with transparent huge pages, private or shared, unless compaction stalls it.
//!
//! Where memory is fragmented, the kernel compacts other pages for each huge page, and a virtual
//! machine may have to ask its host for one. That can take longer than huge pages save. So slow slices
//! are compared with a slice of 4 KiB pages. Knows times and mappings; `region` decides what to do
//! about a stall.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::background;
use super::mapping::Mapping;
use super::pages::Pages;
use super::touch::{self, SLICE, Toucher, Unfilled};
use crate::config::memory::Fork;
use crate::lock::Lock;

/// A slice that costs no more is not compared: a slice of 4 KiB pages takes at least half of this, and
/// CUDA then locks each page singly.
const SURELY_FAST: Duration = Duration::from_millis(1);
/// Huge pages may cost so many times what 4 KiB pages do. CUDA locks each page singly afterwards, which
/// takes 4 KiB pages as long again and huge pages next to no time.
const WORTH: u32 = 2;
/// Huge pages are tried again after so long: memory may be less fragmented by then.
pub(super) const AGAIN: Duration = Duration::from_secs(10);

/// The outcome of filling a mapping with transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// All of it has huge pages.
    Whole,
    /// A slice of huge pages cost much more than one of 4 KiB pages. Everything before `until` is
    /// filled, which may be all of it.
    Stalled { until: usize, huge: Duration, small: Duration },
}

/// Compaction stalls of the last [`AGAIN`].
#[derive(Debug, Default)]
pub(super) struct Stalls {
    seen: Lock<Seen>,
    /// The last slice of any mapping, in nanoseconds, if it cost more than the limit; else 0. Of a mapping that was just filled.
    last: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// When a mapping was last filled, and when that stalled.
    filled: Option<Instant>,
    stall: Option<Instant>,
    /// What a slice may cost, from a measured slice of 4 KiB pages; and when that was measured.
    limit: Option<(Duration, Instant)>,
}

impl Stalls {
    /// Whether filling stalled so recently that huge pages are not worth trying.
    pub(super) fn was_just_seen(&self) -> bool {
        self.seen.lock().stall.is_some_and(is_recent)
    }

    /// Fills `mapping` with transparent huge pages until compaction stalls it.
    pub(super) fn fill(&self, mapping: &Mapping, pages: Pages, toucher: Toucher<'_>) -> Result<Filled, Unfilled> {
        let touch = |from, judge: &(dyn Fn(Duration) -> bool + Sync)| {
            toucher.touch_while(mapping, from..mapping.len(), pages, judge)
        };
        let mut seen = self.seen.lock();
        if !seen.filled.replace(Instant::now()).is_some_and(is_recent) {
            self.last.store(0, Ordering::Relaxed);
        }
        let limit = seen.limit.filter(|it| is_recent(it.1));
        drop(seen);
        let small = || {
            // One huge page may be larger than a slice of small ones.
            let times = u32::try_from(touch::slice(pages) / SLICE).unwrap_or(1);
            let small = cost_of_small(mapping.fork(), toucher)?.map(|it| it * times);
            if let Some(small) = small {
                self.seen.lock().limit = Some((small * WORTH, Instant::now()));
            }
            Ok(small)
        };
        let limit = limit.map_or(SURELY_FAST, |it| it.0.max(SURELY_FAST));
        let filled = fill_unless_it_stalls(mapping.len(), limit, &self.last, touch, small)?;
        if filled != Filled::Whole {
            self.seen.lock().stall = Some(Instant::now());
        }
        Ok(filled)
    }
}

/// Whether what was seen then still holds.
pub(super) fn is_recent(moment: Instant) -> bool {
    moment.elapsed() < AGAIN
}

/// What a slice of 4 KiB pages of such memory costs now; `None` if there is no memory for it.
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

/// Fills `length` bytes by `touch`, which starts at an offset and goes on as long as the judge lets it.
/// Stops when two slices in a row cost more than [`WORTH`] times what `small` measures for a slice of
/// 4 KiB pages, if it can measure it.
///
/// Two slices, since others may have held a lock during one; `last` has what the one before cost, also another mapping's, since a
/// program's first mappings have one slice or two. A slice that costs no more than `limit` is not compared.
fn fill_unless_it_stalls(
    length: usize,
    mut limit: Duration,
    last: &AtomicU64,
    mut touch: impl FnMut(usize, &(dyn Fn(Duration) -> bool + Sync)) -> Result<usize, Unfilled>,
    mut small: impl FnMut() -> Result<Option<Duration>, Unfilled>,
) -> Result<Filled, Unfilled> {
    let mut filled = 0;
    loop {
        // In nanoseconds: the quicker of two slices in a row that cost more than the limit; 0 for none.
        let slow = AtomicU64::new(0);
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
        let huge = Duration::from_nanos(slow.into_inner());
        if !huge.is_zero() {
            last.store(0, Ordering::Relaxed);
            limit = match small()? {
                Some(small) if huge > small * WORTH => {
                    let until = filled;
                    return Ok(Filled::Stalled { until, huge, small });
                }
                // Small pages are as slow: their measured cost is the new limit.
                Some(small) => small * WORTH,
                None => Duration::MAX,
            };
        }
        if filled >= length {
            return Ok(Filled::Whole);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::super::tally::Tally;
    use super::*;
    use crate::sync::Dial;

    const MS: Duration = Duration::from_millis(1);

    /// Fills `slices` slices that cost `huge` milliseconds in turn, the last value repeated, where a
    /// slice of small pages costs `small`. Also returns how often a small slice was measured.
    fn fill_after(last: &AtomicU64, slices: usize, huge: &[u32], small: Option<u32>) -> (Filled, usize) {
        let (mut at, mut asked) = (0, 0);
        let filled = fill_unless_it_stalls(
            slices * SLICE,
            SURELY_FAST,
            last,
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

    fn stalled(slices: usize, huge: u32, small: u32) -> Filled {
        Filled::Stalled { until: slices * SLICE, huge: MS * huge, small: MS * small }
    }

    #[test]
    fn huge_pages_end_after_two_slices_that_are_slower_than_small_ones() {
        let whole = || Filled::Whole;
        for (what, slices, huge, small, expected) in [
            ("fast slices are not compared", 256, &[1][..], Some(1), (whole(), 0)),
            ("single slow moments are forgiven", 256, &[1, 90, 1, 90, 1, 90, 1], Some(2), (whole(), 0)),
            ("a stall at the beginning", 4, &[9], Some(2), (stalled(2, 9, 2), 1)),
            ("a stall that begins later", 256, &[1, 1, 1, 1, 1, 12, 9], Some(2), (stalled(7, 9, 2), 1)),
            ("small pages are as slow", 256, &[9], Some(5), (whole(), 1)),
            ("slower ones are compared again", 256, &[9, 9, 9, 9, 30], Some(5), (stalled(6, 30, 5), 2)),
            ("one slice", 1, &[500], Some(1), (whole(), 0)),
            ("no measurement", 256, &[500], None, (whole(), 1)),
            ("a mapping of two slices", 2, &[9], Some(2), (stalled(2, 9, 2), 1)),
            ("one that is no faster in small pages", 2, &[9], Some(5), (whole(), 1)),
        ] {
            assert_eq!(fill_after(&AtomicU64::new(0), slices, huge, small), expected, "{what}");
        }
    }

    /// A program that pinned 8 MiB for each of its first requests never compared: its mappings had no third slice.
    #[test]
    fn a_stall_is_seen_in_mappings_of_one_slice() {
        let last = AtomicU64::new(0);
        let next = |huge| fill_after(&last, 1, &[huge], Some(2));
        assert_eq!(next(9), (Filled::Whole, 0));
        assert_eq!(next(1), (Filled::Whole, 0));
        assert_eq!(next(9), (Filled::Whole, 0));
        assert_eq!(next(12), (stalled(1, 9, 2), 1));
        assert_eq!(next(12), (Filled::Whole, 0));
    }

    #[test]
    fn a_page_that_does_not_come_ends_it() {
        let failed = fill_unless_it_stalls(
            4 * SLICE,
            SURELY_FAST,
            &AtomicU64::new(0),
            |_, _| Err(Unfilled::Failed(io::Error::from_raw_os_error(libc::ENOMEM))),
            || Ok(Some(MS)),
        );
        let Err(Unfilled::Failed(why)) = failed else { panic!("{failed:?}") };
        assert_eq!(why.raw_os_error(), Some(libc::ENOMEM));
    }

    #[test]
    fn a_stop_while_pages_are_compared_is_a_stop() {
        let (ends, tally) = (Dial::at(0), Tally::default());
        let toucher = Toucher::busy(2, &ends, &tally);
        assert!(matches!(cost_of_small(Fork::Share, toucher), Err(Unfilled::Stopped)));
        let slow = |_, judge: &(dyn Fn(Duration) -> bool + Sync)| {
            assert!(judge(9 * MS) && !judge(9 * MS));
            Ok(2 * SLICE)
        };
        let outcome = fill_unless_it_stalls(4 * SLICE, SURELY_FAST, &AtomicU64::new(0), slow, || {
            cost_of_small(Fork::Share, toucher)
        });
        assert!(matches!(outcome, Err(Unfilled::Stopped)), "{outcome:?}");
    }

    #[test]
    fn huge_pages_are_tried_again_some_time_after_a_stall() {
        let stalls = Stalls::default();
        assert!(!stalls.was_just_seen());
        stalls.seen.lock().stall = Some(Instant::now());
        assert!(stalls.was_just_seen());
        stalls.seen.lock().stall = Instant::now().checked_sub(AGAIN);
        assert!(!stalls.was_just_seen());
    }
}
