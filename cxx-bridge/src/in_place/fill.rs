//! Has the kernel bring pages in before the driver locks them: several threads do that several times faster than the driver.
//!
//! Changes no content. Between two slices it can be stopped. The kernel says where a file has become shorter than its mapping,
//! which a store there would be killed for.

#![allow(unsafe_code)]

use std::io;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::areas::{Pages, Place};
use crate::backing::{LARGE, SLICE, crew};
use crate::lock::Lock;

/// Bytes of a page.
pub(super) fn page_bytes() -> usize {
    // SAFETY: asks a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the kernel has pages")
}

/// Bytes that `place` takes from what is free once it is pinned: pages that are not there yet, and copies of a file's pages.
pub(super) fn missing(place: &Place, copies: bool) -> usize {
    let pages = &place.pages;
    if copies && !place.anonymous {
        return pages.len();
    }
    let page = page_bytes();
    // So many bytes need a list of at most 256 KiB.
    let step = page << 18;
    let mut there = vec![0_u8; pages.len().min(step) / page];
    let missing_in = |from: usize| {
        let bytes = step.min(pages.end - from);
        // SAFETY: the list has a byte for each page, and the kernel checks the pages.
        let asked = unsafe {
            libc::mincore(
                with_exposed_provenance_mut(from),
                bytes,
                there.as_mut_ptr().cast(),
            )
        };
        let known = if asked == 0 {
            &there[..bytes / page]
        } else {
            &[]
        };
        let present = known.iter().filter(|it| **it & 1 == 1).count();
        bytes - present * page
    };
    pages.clone().step_by(step).map(missing_in).sum()
}

/// Brings a place in, with up to so many threads; anonymous memory gets huge pages where it has none yet. `copies`: a private
/// mapping gets its own pages, not a file's. Stops with an error for people, also once `goes_on` says no.
pub(super) fn fill(
    place: &Place,
    copies: bool,
    threads: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<(), String> {
    let pages = &place.pages;
    let huge = pages.start.next_multiple_of(LARGE)..pages.end / LARGE * LARGE;
    if place.anonymous && huge.start < huge.end {
        // Where the kernel has none, pages stay small.
        let _ = advise(&huge, libc::MADV_HUGEPAGE);
    }
    let advice = if copies {
        libc::MADV_POPULATE_WRITE
    } else {
        libc::MADV_POPULATE_READ
    };
    let next = AtomicUsize::new(pages.start);
    let outcome = Lock::new(Ok(()));
    let work = || {
        loop {
            let from = next.fetch_add(SLICE, Ordering::Relaxed);
            if from >= pages.end {
                return;
            }
            let filled = if goes_on() {
                populate(&(from..pages.end.min(from + SLICE)), advice)
            } else {
                Err("the process ends".to_owned())
            };
            if filled.is_err() {
                next.store(pages.end, Ordering::Relaxed);
                *outcome.lock() = filled;
                return;
            }
        }
    };
    let helpers = threads.min(pages.len().div_ceil(SLICE)).saturating_sub(1);
    crew::run(helpers, "pinbuddy-touch", &work);
    outcome.into_inner()
}

fn populate(part: &Pages, advice: libc::c_int) -> Result<(), String> {
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
        Some(libc::EFAULT) => Err(format!(
            "found no page for {:#x} to {:#x}, expected one of the mapped file: it has become shorter",
            part.start, part.end
        )),
        _ => Err(format!("the kernel cannot bring its pages in: {why}")),
    }
}

fn advise(part: &Pages, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: none of the advice given here changes what is read at these addresses, and the kernel checks that they are mapped.
    let done =
        unsafe { libc::madvise(with_exposed_provenance_mut(part.start), part.len(), advice) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
