//! Has the kernel bring pages in before the driver locks them: several threads do that several times faster than the driver.
//!
//! Changes no content. Between two slices it can be stopped. The kernel says where a file has become shorter than its mapping,
//! which a store there would be killed for.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::runs::Pages;
use crate::backing::{LARGE, SLICE, crew};
use crate::lock::Lock;

/// Why pages are not there.
#[derive(Debug)]
pub(super) enum Unfilled {
    Stopped,
    /// For people.
    Failed(String),
}

/// Brings `pages` in, with up to so many threads; `anonymous` memory gets huge pages where it has none yet. `to_write`: also
/// copies pages of a private mapping that are a file's so far.
pub(super) fn fill(
    pages: &Pages,
    (anonymous, to_write): (bool, bool),
    threads: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), Unfilled> {
    let huge = pages.start.next_multiple_of(LARGE)..pages.end / LARGE * LARGE;
    if anonymous && huge.start < huge.end {
        // Where the kernel has none, pages stay small.
        let _ = advise(&huge, libc::MADV_HUGEPAGE);
    }
    let advice = if to_write {
        libc::MADV_POPULATE_WRITE
    } else {
        libc::MADV_POPULATE_READ
    };
    let next = AtomicUsize::new(pages.start);
    let outcome = Lock::new(Ok(()));
    crew::run(
        threads.min(pages.len().div_ceil(SLICE)).saturating_sub(1),
        "pinbuddy-touch",
        &|| {
            loop {
                let from = next.fetch_add(SLICE, Ordering::Relaxed);
                if from >= pages.end {
                    return;
                }
                let filled = if goes_on() {
                    populate(&(from..pages.end.min(from + SLICE)), advice)
                } else {
                    Err(Unfilled::Stopped)
                };
                if filled.is_err() {
                    next.store(pages.end, Ordering::Relaxed);
                    *outcome.lock() = filled;
                    return;
                }
            }
        },
    );
    outcome.into_inner()
}

fn populate(part: &Range<usize>, advice: libc::c_int) -> Result<(), Unfilled> {
    let why = loop {
        match advise(part, advice) {
            Ok(()) => return Ok(()),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) if why.raw_os_error() == Some(libc::EAGAIN) => {}
            Err(why) => break why,
        }
    };
    match why.raw_os_error() {
        // Linux before 5.14 has no such call: the driver brings the pages in.
        Some(libc::EINVAL) => Ok(()),
        Some(libc::EFAULT) => Err(Unfilled::Failed(format!(
            "the kernel has no page for {:#x} to {:#x}: a file that is mapped there has become shorter",
            part.start, part.end
        ))),
        _ => Err(Unfilled::Failed(format!(
            "the kernel cannot bring its pages in: {why}"
        ))),
    }
}

fn advise(part: &Range<usize>, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: none of the advice given here changes what is read at these addresses, and the kernel checks that they are mapped.
    let done =
        unsafe { libc::madvise(with_exposed_provenance_mut(part.start), part.len(), advice) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
