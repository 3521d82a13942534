//! cuBLAS: handles that know their stream, and products that occupy it and compute nothing.
//!
//! A product is what a kernel is elsewhere in the simulator: work of its stream, in order with
//! copies and events and recorded by a capture, said once and left out. Its result is whatever
//! memory it would have been written to holds.

use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use crate::device;
use crate::error::Status;
use crate::handles::Handles;
use crate::kernel;
use crate::stream;

static HANDLES: Handles<Handle> = Handles::new(7);
static DESCRIPTORS: Handles<Descriptor> = Handles::new(8);

/// What a handle remembers between calls.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    stream: AtomicUsize,
    math_mode: Setting,
    pointer_mode: Setting,
}

/// A number that callers set and ask back.
#[derive(Debug, Default)]
pub(crate) struct Setting(AtomicI32);

impl Setting {
    pub(crate) fn set(&self, value: i32) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Handle {
    /// `cublasMath_t`.
    pub(crate) fn math_mode(&self) -> &Setting {
        &self.math_mode
    }

    /// `cublasPointerMode_t`.
    pub(crate) fn pointer_mode(&self) -> &Setting {
        &self.pointer_mode
    }
}

/// A layout, operation or preference of cublasLt; its attributes mean nothing here.
#[derive(Debug)]
struct Descriptor;

/// `cublasCreate`, for the current device.
pub(crate) fn create() -> Status<usize> {
    device::activate_current()?;
    Ok(HANDLES.insert(Handle::default()))
}

/// `cublasDestroy`.
pub(crate) fn destroy(handle: usize) -> Status {
    HANDLES.remove(handle).map(|_| ())
}

/// The handle's settings.
pub(crate) fn resolve(handle: usize) -> Status<std::sync::Arc<Handle>> {
    HANDLES.get(handle)
}

/// `cublasSetStream`.
pub(crate) fn set_stream(handle: usize, stream: usize) -> Status {
    let resolved = HANDLES.get(handle)?;
    stream::resolve(stream)?;
    resolved.stream.store(stream, Ordering::Relaxed);
    Ok(())
}

/// A function named `name` that computes on the handle's stream.
pub(crate) fn compute(name: &str, handle: usize) -> Status {
    let stream = HANDLES.get(handle)?.stream.load(Ordering::Relaxed);
    kernel::leave_out(name, &stream::resolve(stream)?)
}

/// One that is told its stream, as cublasLt's are.
pub(crate) fn compute_on(name: &str, handle: usize, stream: usize) -> Status {
    HANDLES.get(handle)?;
    kernel::leave_out(name, &stream::resolve(stream)?)
}

/// A new descriptor of cublasLt.
pub(crate) fn describe() -> usize {
    DESCRIPTORS.insert(Descriptor)
}

/// Set an attribute of a descriptor, which nothing reads.
pub(crate) fn check_descriptor(descriptor: usize) -> Status {
    DESCRIPTORS.get(descriptor).map(|_| ())
}

/// Destroy a descriptor.
pub(crate) fn forget(descriptor: usize) -> Status {
    DESCRIPTORS.remove(descriptor).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::cudaStreamNonBlocking;
    use crate::error::Error;
    use crate::waiting;
    use crate::work::Work;
    use std::time::{Duration, Instant};

    #[test]
    fn a_product_waits_its_turn_on_the_handles_stream() {
        const HELD: Duration = Duration::from_millis(500);
        let stream = stream::create(cudaStreamNonBlocking, 0).unwrap();
        let handle = create().unwrap();
        set_stream(handle, stream).unwrap();
        let stream = stream::resolve(stream).unwrap();
        let start = Instant::now();
        stream::submit(&stream, Work::Hold(HELD)).unwrap();
        compute("cublasSgemm_v2", handle).unwrap();
        assert!(start.elapsed() < HELD);
        assert_eq!(waiting::query(&stream), Err(Error::cudaErrorNotReady));
        waiting::synchronize(&stream).unwrap();
        assert!(start.elapsed() >= HELD);
        destroy(handle).unwrap();
        assert!(compute("cublasSgemm_v2", handle).is_err());
    }

    #[test]
    fn a_handle_refuses_a_stream_that_is_none() {
        let handle = create().unwrap();
        assert_eq!(
            set_stream(handle, 0xbad),
            Err(Error::cudaErrorInvalidResourceHandle)
        );
        destroy(handle).unwrap();
    }

    #[test]
    fn a_descriptor_lives_until_it_is_destroyed() {
        let descriptor = describe();
        check_descriptor(descriptor).unwrap();
        forget(descriptor).unwrap();
        assert!(check_descriptor(descriptor).is_err() && forget(descriptor).is_err());
    }
}
