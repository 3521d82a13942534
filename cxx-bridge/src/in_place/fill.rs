//! Has the kernel bring pages in before the driver locks them: several threads do that several times faster than the driver.
//!
//! Changes no content. The kernel says where a file has become shorter than its mapping, which a load there would be killed for.

#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::places::Place;
use crate::backing::{crew, pages::sizes, touch::SLICE};
use crate::lock::Lock;

/// Brings a part of a place in. Private memory that may be written gets pages of its own, huge ones where it has none yet.
pub(super) fn fill(place: &Place, part: Range<usize>, threads: usize) -> Result<(), String> {
    let large = sizes().large;
    let huge = part.start.next_multiple_of(large)..part.end / large * large;
    if place.anonymous && huge.start < huge.end {
        // Where the kernel has none, pages stay small.
        let _ = advise(&huge, libc::MADV_HUGEPAGE);
    }
    // A page of a shared file is not to be written back for this.
    let advice = if place.writable && !place.shared { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    let next = AtomicUsize::new(part.start);
    let outcome = Lock::new(Ok(()));
    let work = || {
        loop {
            let from = next.fetch_add(SLICE, Ordering::Relaxed);
            if from >= part.end {
                return;
            }
            if let Err(why) = populate(&(from..part.end.min(from + SLICE)), advice) {
                next.store(part.end, Ordering::Relaxed);
                *outcome.lock() = Err(why);
            }
        }
    };
    let helpers = threads.min(part.len().div_ceil(SLICE)).saturating_sub(1);
    crew::run(helpers, "pinbuddy-touch", &work);
    outcome.into_inner()
}

fn populate(part: &Range<usize>, advice: libc::c_int) -> Result<(), String> {
    loop {
        let why = advise(part, advice);
        match why.raw_os_error().unwrap_or(0) {
            libc::EINTR | libc::EAGAIN => {}
            // Linux before 5.14 has no such call: the driver brings the pages in.
            0 | libc::EINVAL => return Ok(()),
            libc::EFAULT => {
                return Err("found no page for a part of it: its file has become shorter".to_owned());
            }
            _ => return Err(format!("the kernel cannot bring its pages in: {why}")),
        }
    }
}

/// No error has the number 0.
fn advise(part: &Range<usize>, advice: libc::c_int) -> io::Error {
    let start = with_exposed_provenance_mut(part.start);
    // SAFETY: none of the advice given here changes what is read at these addresses, and the kernel checks that they are mapped.
    match unsafe { libc::madvise(start, part.len(), advice) } {
        0 => io::Error::from_raw_os_error(0),
        _ => io::Error::last_os_error(),
    }
}
