//! The simulated GPUs: how many, which one a thread uses, which are in use, how much memory is left.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::config;
use crate::error::{self, Error, Status};

/// Simulated clock of every GPU in kHz: a cycle is a nanosecond.
pub(crate) const CLOCK_KHZ: i32 = 1_000_000;

/// Memory that a primary context takes for itself, at most; a small device gives up a part of it.
const CONTEXT_BYTES: usize = 512 << 20;

#[derive(Debug, Default)]
struct Device {
    /// Whether its primary context exists.
    active: AtomicBool,
    used_bytes: AtomicUsize,
}

thread_local! {
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| (0..config::get().devices).map(|_| Device::default()).collect())
}

fn get(device: i32) -> Status<&'static Device> {
    if devices().is_empty() {
        return Err(Error::cudaErrorNoDevice);
    }
    usize::try_from(device).ok().and_then(|index| devices().get(index)).ok_or(Error::cudaErrorInvalidDevice)
}

/// How many GPUs there are.
pub(crate) fn count() -> Status<i32> {
    match i32::try_from(devices().len()) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::cudaErrorNoDevice),
    }
}

/// Refuse the number of a GPU that is not there.
pub(crate) fn check(device: i32) -> Status {
    get(device).map(|_| ())
}

/// The thread's current GPU.
pub(crate) fn current() -> i32 {
    CURRENT.get()
}

/// `cudaSetDevice`, which makes the primary context too, as CUDA 12 and later do.
pub(crate) fn set_current(device: i32) -> Status {
    check(device)?;
    CURRENT.set(device);
    activate_current().map(|_| ())
}

/// Make the current GPU's primary context, as a call that needs one does.
pub(crate) fn activate_current() -> Status<i32> {
    let device = current();
    activate(device).map(|()| device)
}

/// `cudaInitDevice`: make a GPU's primary context, where it has none.
pub(crate) fn activate(device: i32) -> Status {
    let active = &get(device)?.active;
    if !active.swap(true, Ordering::Relaxed) {
        take_memory(device, context_bytes()).inspect_err(|_| active.store(false, Ordering::Relaxed))?;
        static ONCE: OnceLock<()> = OnceLock::new();
        ONCE.get_or_init(error::refuse_after_fork);
    }
    Ok(())
}

/// The GPUs that have a primary context.
pub(crate) fn active() -> Vec<i32> {
    let all = 0..count().unwrap_or(0);
    all.filter(|&device| is_active(device)).collect()
}

/// Whether a GPU's primary context exists.
pub(crate) fn is_active(device: i32) -> bool {
    get(device).is_ok_and(|device| device.active.load(Ordering::Relaxed))
}

/// `cudaDeviceReset`: the primary context is gone.
pub(crate) fn deactivate(device: i32) {
    let was_active = get(device).is_ok_and(|it| it.active.swap(false, Ordering::Relaxed));
    if was_active {
        give_memory(device, context_bytes());
    }
}

fn context_bytes() -> usize {
    CONTEXT_BYTES.min(config::get().device_bytes / 32)
}

/// Free and total bytes of a GPU.
pub(crate) fn memory(device: i32) -> Status<(usize, usize)> {
    let total = config::get().device_bytes;
    let used = get(device)?.used_bytes.load(Ordering::Relaxed);
    Ok((total.saturating_sub(used), total))
}

/// Take bytes of a GPU's memory, or say that there are not enough.
pub(crate) fn take_memory(device: i32, bytes: usize) -> Status {
    let total = config::get().device_bytes;
    get(device)?
        .used_bytes
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_add(bytes).filter(|&sum| sum <= total))
        .map(|_| ())
        .map_err(|_| Error::cudaErrorMemoryAllocation)
}

/// Give bytes of a GPU's memory back.
pub(crate) fn give_memory(device: i32, bytes: usize) {
    if let Ok(device) = get(device) {
        device.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        assert_eq!(set_current(-1), Err(Error::cudaErrorInvalidDevice));
        assert_eq!(set_current(1000), Err(Error::cudaErrorInvalidDevice));
        assert_eq!(activate(-1), Err(Error::cudaErrorInvalidDevice));
        set_current(0).unwrap();
        assert!(is_active(0) && !is_active(1000));
        assert_eq!(active(), [0]);
    }
}
