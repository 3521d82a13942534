//! How much is page-locked, how much may be, and why a pin was refused.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::error::{Error, Status};
use crate::stats::STATS;
use crate::{config, note, pages};

static PINNED: AtomicUsize = AtomicUsize::new(0);
static PINNED_PEAK: AtomicUsize = AtomicUsize::new(0);
/// The ceiling on page-locked bytes that a test set; negative: the environment's.
static CEILING: AtomicI64 = AtomicI64::new(-1);

/// Page-locked bytes now, and at their highest.
pub(crate) fn now_and_peak() -> (usize, usize) {
    (PINNED.load(Ordering::Relaxed), PINNED_PEAK.load(Ordering::Relaxed))
}

/// Let pins fail beyond so many bytes, whatever the environment says; negative: as it says.
pub(crate) fn set_ceiling(bytes: i64) {
    CEILING.store(bytes, Ordering::Relaxed);
}

/// Count a pin before it is made, so that concurrent pins cannot pass the ceiling together.
pub(crate) fn count(bytes: usize) -> Status {
    let ceiling = match CEILING.load(Ordering::Relaxed) {
        ceiling if ceiling >= 0 => Some(ceiling.unsigned_abs() as usize),
        _ => config::get().fail_pin_after,
    };
    let now = PINNED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if ceiling.is_some_and(|ceiling| now > ceiling) {
        return Err(refuse(bytes, Error::cudaErrorMemoryAllocation));
    }
    PINNED_PEAK.fetch_max(now, Ordering::Relaxed);
    Ok(())
}

/// A pin is no more.
pub(crate) fn uncount(bytes: usize) {
    PINNED.fetch_sub(bytes, Ordering::Relaxed);
}

/// A pin that was counted is not made after all.
pub(crate) fn refuse(bytes: usize, error: Error) -> Error {
    uncount(bytes);
    STATS.pins_refused.add(1);
    error
}

/// Say which limit stands in the way, if one does.
pub(crate) fn explain_lock_limit(error: &std::io::Error, bytes: usize) -> bool {
    let Some(limit) = pages::lock_limit().filter(|_| config::get().lock_pages) else {
        return false;
    };
    let locked = PINNED.load(Ordering::Relaxed).saturating_sub(bytes);
    let reason = error.raw_os_error();
    let limited = reason == Some(libc::EPERM)
        || (reason == Some(libc::ENOMEM) && (locked + bytes) as u64 > limit)
        || reason == Some(libc::EAGAIN);
    if limited {
        note::once("RLIMIT_MEMLOCK", || {
            format!(
                "cannot page-lock {bytes} bytes: RLIMIT_MEMLOCK is {limit} bytes and {locked} are \
                 pinned already; raise it (`ulimit -l unlimited`, as root or with a hard limit \
                 that allows it) or run with CAP_IPC_LOCK"
            )
        });
    }
    limited
}
