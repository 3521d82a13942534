//! The C interface that `include/pinbuddy/pinbuddy.h` declares: what Python and C programs read.
//!
//! Strings are handed over by copying into the caller's buffer, so nobody has to free anything.

#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};
use std::panic::catch_unwind;

use crate::process::handle;

/// Whether our allocator is in PyTorch's registry: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_enabled() -> c_int {
    catch_unwind(|| c_int::from(!handle().config().disable.value)).unwrap_or(0)
}

/// The version of the fork, for instance `2.15.0+cu132.pinbuddy.0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_version() -> *const c_char {
    concat!(env!("PINBUDDY_FORK_VERSION"), "\0").as_ptr().cast()
}

/// Copies the engine's counters and segments as JSON; returns the full length without the
/// terminating zero, which may be more than fits.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_stats_json(buffer: *mut c_char, capacity: usize) -> usize {
    let text = catch_unwind(|| handle().report().to_string()).unwrap_or_default();
    // SAFETY: the caller's promise is `copy_out`'s.
    unsafe { copy_out(&text, buffer, capacity) }
}

/// Copies the configuration as JSON, each value with where it came from; returns as
/// `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_config_json(buffer: *mut c_char, capacity: usize) -> usize {
    let text = catch_unwind(|| serde_json::to_string(handle().config()).unwrap_or_default())
        .unwrap_or_default();
    // SAFETY: the caller's promise is `copy_out`'s.
    unsafe { copy_out(&text, buffer, capacity) }
}

/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
unsafe fn copy_out(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if capacity > 0 {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length + 1 <= capacity` bytes are writable by the caller's promise, and a string
        // of ours does not overlap a buffer of theirs.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, length);
            buffer.add(length).write(0);
        }
    }
    text.len()
}
