//! CUDA, through the C++ side. Decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pinbuddy_core::Region;

use crate::backing::{Completions, Device, Driver};
use crate::ffi;
use crate::log::{self, Bytes};
use crate::process::show;
use crate::record::writing::{wait_begins, wait_ends};

/// CUDA through the C++ side: stock's way of pinning, with stock's settings, and registration.
#[derive(Debug)]
pub(crate) struct Cuda;

impl Completions for Cuda {
    fn reap(&self) -> bool {
        let asked = said(ffi::reap_completed());
        if let Err(why) = &asked {
            log::warn(|| format!("could not ask whether streams are done with blocks: {why}"));
        }
        asked.is_ok()
    }

    fn reap_behind(&self) {
        // A program whose context is broken goes on, and so do the looks.
        if let Err(why) = said(ffi::reap_behind()) {
            log::debug(|| format!("idle memory is not looked for: {why}"));
        }
    }

    fn wait_begins(&self, in_request: bool) {
        wait_begins(in_request);
    }

    fn wait_ends(&self) {
        wait_ends();
    }
}

impl Driver for Cuda {
    fn available(&self) -> bool {
        ffi::device_count() > 0
    }

    fn device(&self) -> Device {
        Device(ffi::current_device())
    }

    fn initialise(&self, device: Device) -> Result<(), String> {
        show(device);
        said(ffi::initialise(device.0))
    }

    fn pci_address(&self, device: Device) -> Option<String> {
        ffi::pci_address(device.0).ok()
    }

    fn pin(&self, bytes: usize, device: Device) -> Result<usize, String> {
        show(device);
        said(ffi::pin_region(bytes, device.0))
    }

    fn unpin(&self, region: Region) -> Result<(), String> {
        said(ffi::unpin_region(region.base, region.bytes))
    }

    fn register(&self, region: Region, device: Device) -> Result<(), String> {
        said(ffi::register_mapped(region.base, region.bytes, false, device.0))
    }

    fn check(&self, region: Region) -> Result<(), String> {
        said(ffi::check_mapped(region.base))
    }

    fn unregister(&self, region: Region) -> Result<(), String> {
        if !said(ffi::unregister_mapped(region.base))? {
            // No device uses it any more, so it may go.
            let Region { base, bytes } = region;
            let bytes = Bytes(bytes as u64);
            static SAID: AtomicBool = AtomicBool::new(false);
            if SAID.swap(true, Ordering::Relaxed) {
                return Ok(());
            }
            log::warn(|| {
                format!(
                    "{bytes} of memory at {base:#x}, which pinbuddy had registered with CUDA, were unregistered by the program or \
                     by one of its libraries: copies of tensors there have not been from pinned memory since"
                )
            });
        }
        Ok(())
    }

    fn pinned(&self, region: Region, taken: Duration) {
        // If it cannot be traced for want of memory, it is pinned all the same.
        let _ = ffi::segment_pinned(region.base, region.bytes, microseconds(taken));
    }

    fn goes(&self, region: Region) {
        let _ = ffi::segment_goes(region.base, region.bytes);
    }

    fn gone(&self, taken: Duration) {
        ffi::count_unpin(microseconds(taken));
    }
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Cuts a PyTorch error before its C++ backtrace.
pub(crate) fn said<T>(outcome: Result<T, cxx::Exception>) -> Result<T, String> {
    outcome.map_err(|error| error.what().lines().next().unwrap_or_default().to_owned())
}
