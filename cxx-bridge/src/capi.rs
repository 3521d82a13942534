//! The C interface that `include/pinbuddy/pinbuddy.h` declares: what Python and C programs read.
//!
//! Strings are copied into the caller's buffer, so that no memory has to be freed.

#![allow(unsafe_code)]
// Exported by name, not by path.
#![allow(unreachable_pub)]

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};

use crate::device::process::enable;
use crate::ffi;
use crate::log;
use crate::process::{
    cuda_is_up, flushed_handle, handle, in_place, iteration, report, start_trace, stop_trace, warm_up,
};

/// Whether this process's engine serves requests: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_enabled() -> c_int {
    catch_unwind(|| c_int::from(handle().is_on())).unwrap_or(0)
}

/// Whether the library was built with its assertions: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_debug_build() -> c_int {
    c_int::from(cfg!(debug_assertions))
}

/// Has the next request panic in the engine: for tests, in a debug build only.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_break_down() {
    handle().break_down();
}

/// Has the next request of each plan of device memory panic: for tests, in a debug build only.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_break_down_device() {
    crate::device::places::break_down();
}

/// Copies the first thing that the engine's audit finds wrong, or an empty text; returns as
/// `pinbuddy_stats_json` does. For tests, in a debug build only.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_audit(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(|| flushed_handle().audit(), buffer, capacity) }
}

/// Starts pinning the warm-up's deficit, in a thread of its own; unless `wait` is 0, returns when that
/// has ended. Where the process has a context on none of several GPUs, it waits for the first one, in that thread. 1, or 0 if
/// the engine is off or there is no GPU.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_warm_up(wait: c_int) -> c_int {
    catch_unwind(|| c_int::from(handle().is_on() && warm_up(wait != 0))).unwrap_or(0)
}

/// Says that CUDA is initialised in this process. A plan's memory is pinned once there is a context.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_cuda_is_up() {
    let _ = catch_unwind(cuda_is_up);
}

/// Unpins all that is cached and idle. 1, or 0 if the engine is off or unpinning failed.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_empty_cache() -> c_int {
    let empty = || match ffi::empty_host_cache() {
        Ok(()) => 1,
        Err(error) => {
            log::warn(|| format!("could not empty the cache: {}", error.what()));
            0
        }
    };
    let all = || {
        in_place().end_what_waits();
        if handle().is_on() { empty() } else { 0 }
    };
    catch_unwind(all).unwrap_or(0)
}

/// Records requests to a file from now on. Copies why it does not, or an empty text; returns as
/// `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `name` must be a text that ends with a zero; `buffer` as for `pinbuddy_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_trace_start(name: *const c_char, buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: by the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str();
    let start = || match name {
        Ok(name) => start_trace(name).err().unwrap_or_default(),
        Err(_) => "the name is not UTF-8".to_owned(),
    };
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(start, buffer, capacity) }
}

/// Plans and traces device memory. Copies why it does not, or an empty text; returns as `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `plan` and `trace` must each be null or a text that ends with a zero; `buffer` as for `pinbuddy_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_device_enable(
    plan: *const c_char,
    trace: *const c_char,
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    let text = |it: *const c_char| {
        if it.is_null() {
            return Ok(None);
        }
        // SAFETY: by the caller's promise.
        unsafe { CStr::from_ptr(it) }.to_str().map(Some)
    };
    let names = text(plan).and_then(|plan| Ok((plan, text(trace)?)));
    let enabled = || match names {
        Ok((plan, trace)) => enable(plan, trace).err().unwrap_or_default(),
        Err(_) => "the name is not UTF-8".to_owned(),
    };
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(enabled, buffer, capacity) }
}

/// Pins the memory of the `c10::StorageImpl` at `storage` where it is, a step each call: begins if `pin` begins with 0, writes the
/// pin's number there, and 0 behind it once it is pinned. `asked`: 1, PyTorch says that other processes may have the memory; 2, it
/// says that it is pinned; and 4 for each process that pins it. 0 takes one pin back, made or not: that with this number, or if it
/// is 0 one of the storage's. Copies why it does not, or an empty text; returns as `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `storage` must be a storage that lives, unless `pin` has a number; `buffer` as for `pinbuddy_stats_json`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_pin(
    storage: usize,
    asked: usize,
    pin: &mut [u64; 2],
    buffer: *mut c_char,
    capacity: usize,
) -> usize {
    let step = AssertUnwindSafe(|| {
        let done = match (asked, pin[0]) {
            (0, pin) => in_place().unpin(storage, pin),
            (_, 0) => in_place().begin(storage, asked).map(|it| pin[0] = it),
            (_, begun) => in_place().step(begun).map(|it| pin[1] = it.into()),
        };
        done.err().unwrap_or_default()
    });
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(step, buffer, capacity) }
}

/// Ends the trace being recorded. 1 if there was one and it is written, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_trace_stop() -> c_int {
    catch_unwind(|| c_int::from(stop_trace())).unwrap_or(0)
}

/// Says that an iteration of the program is over, to what is recorded and to plans.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_iteration() {
    let _ = catch_unwind(iteration);
}

/// The version of the fork, for instance `2.15.0+cu132.pinbuddy.0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn pinbuddy_version() -> *const c_char {
    concat!(env!("PINBUDDY_FORK_VERSION"), "\0").as_ptr().cast()
}

/// Copies the engine's counters and segments as JSON; returns the full length without the terminating
/// zero, which may be more than fits into the buffer.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_stats_json(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(|| report().to_string(), buffer, capacity) }
}

/// Copies each segment with its blocks as JSON; returns as `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_segments_json(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(|| flushed_handle().segments().to_string(), buffer, capacity) }
}

/// Copies the configuration as JSON, each value with where it came from; returns as
/// `pinbuddy_stats_json` does.
///
/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pinbuddy_config_json(buffer: *mut c_char, capacity: usize) -> usize {
    let text = || serde_json::to_string(handle().config()).unwrap_or_default();
    // SAFETY: the caller's promise is `answer`'s.
    unsafe { answer(text, buffer, capacity) }
}

/// # Safety
///
/// `buffer` must be valid for writes of `capacity` bytes, or `capacity` must be 0.
unsafe fn answer(text: impl FnOnce() -> String + UnwindSafe, buffer: *mut c_char, capacity: usize) -> usize {
    // Where no text means that all is well, this does not.
    let text = catch_unwind(text).unwrap_or_else(|_| "it panicked".to_owned());
    if capacity > 0 {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length + 1 <= capacity` bytes are writable by the caller's promise, and our string does
        // not overlap the caller's buffer.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, length);
            buffer.add(length).write(0);
        }
    }
    text.len()
}
