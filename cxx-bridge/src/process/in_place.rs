//! Pins in place of this process, through the C++ side. Decides nothing.

use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use pinbuddy_core::Gauge;

use super::handle;
use crate::cuda::said;
use crate::ffi::{self, Counter, Counters, Place};
use crate::in_place::{InPlace, World};

/// PyTorch's storages, CUDA and this process's budget.
#[derive(Debug, Default)]
pub(crate) struct Torch;

/// This process's.
pub(crate) fn in_place() -> &'static InPlace<Torch> {
    static PINS: OnceLock<InPlace<Torch>> = OnceLock::new();
    PINS.get_or_init(InPlace::default)
}

const NOT_HERE: &str = "found that the engine is off, or no GPU, expected both: pinbuddy doctor says why";

impl World for Torch {
    fn begin(&self) -> Result<(), String> {
        if !handle().is_on() || ffi::device_count() == 0 {
            return Err(NOT_HERE.to_owned());
        }
        said(ffi::initialise(ffi::current_device()))
    }

    fn memory_of(&self, storage: usize, shared: bool, pin: &mut u64) -> Result<Range<usize>, String> {
        let Place { address, bytes } = said(ffi::memory_of_storage(storage, shared, pin))?;
        Ok(address..address + bytes)
    }

    fn hold(&self, storage: usize, pin: u64, address: usize) -> Result<(), String> {
        said(ffi::hold_storage(storage, pin, address))
    }

    fn let_go(&self, owner: usize) {
        ffi::let_go(owner);
    }

    fn finish_devices(&self) -> Result<bool, String> {
        said(ffi::finish_devices())
    }

    fn register(&self, pages: &Range<usize>, read_only: bool) -> Result<(), String> {
        let address = pages.start;
        said(ffi::register_mapped(address, pages.len(), read_only, -1))?;
        said(ffi::check_mapped(address)).inspect_err(|_| drop(ffi::unregister_mapped(address)))?;
        note(pages.start, pages.len());
        Ok(())
    }

    fn unregister(&self, pages: &Range<usize>) -> Result<(), String> {
        said(ffi::unregister_mapped(pages.start))?;
        note(pages.start, 0);
        Ok(())
    }

    fn take(&self, bytes: usize) -> Result<(), String> {
        handle().take_in_place(bytes)
    }

    fn put(&self, bytes: usize) {
        handle().put_in_place(bytes);
    }

    fn threads(&self) -> usize {
        handle().fill_threads()
    }
}

/// Tells PyTorch's history. What it lacks is no error: the memory is pinned, or it is not.
fn note(address: usize, bytes: usize) {
    let _ = ffi::note_in_place(address, bytes);
}

/// The memory of a pinned storage is to be given back: whether it may be. If not, its owner is let go later.
pub(crate) fn engine_storage_dies(pin: u64, owner: usize) -> bool {
    // A panic must not reach C++, which is in a destructor.
    catch_unwind(|| in_place().dies(pin, owner)).unwrap_or(false)
}

/// What this process has pinned, for PyTorch's statistics.
pub(crate) fn engine_counters() -> Counters {
    let stats = handle().stats().unwrap_or_default();
    let stats = stats.and(in_place().stats(|_| {}));
    Counters {
        segments: counter(&stats.segments),
        pinned_bytes: counter(&stats.pinned_bytes),
        active_blocks: counter(&stats.active_blocks),
        active_bytes: counter(&stats.active_bytes),
    }
}

fn counter(gauge: &Gauge) -> Counter {
    Counter {
        current: gauge.current as i64,
        peak: gauge.peak as i64,
        allocated: gauge.allocated as i64,
        freed: gauge.freed as i64,
    }
}
