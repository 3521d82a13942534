//! cuBLAS: handles that know their stream, and products that occupy it and compute nothing.
//!
//! A product is what a kernel is elsewhere in the simulator: work of its stream, in order with
//! copies and events and recorded by a capture, said once and left out. Its result is whatever
//! memory it would have been written to holds.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Status;
use crate::handles::Handles;
use crate::{device, kernel, stream};

/// The stream that a handle's products run on.
static HANDLES: Handles<AtomicUsize> = Handles::new(7);

/// `cublasCreate`, for the current device.
pub(crate) fn create() -> Status<usize> {
    device::activate_current()?;
    Ok(HANDLES.insert(AtomicUsize::default()))
}

/// `cublasDestroy`.
pub(crate) fn destroy(handle: usize) -> Status {
    HANDLES.remove(handle).map(|_| ())
}

/// Whether there is such a handle.
pub(crate) fn check(handle: usize) -> Status {
    HANDLES.get(handle).map(|_| ())
}

/// `cublasSetStream`.
pub(crate) fn set_stream(handle: usize, stream: usize) -> Status {
    let resolved = HANDLES.get(handle)?;
    stream::resolve(stream)?;
    resolved.store(stream, Ordering::Relaxed);
    Ok(())
}

/// A function named `name` that computes on the handle's stream.
pub(crate) fn compute(name: &str, handle: usize) -> Status {
    let stream = HANDLES.get(handle)?.load(Ordering::Relaxed);
    kernel::leave_out(name, &stream::resolve(stream)?)
}

/// One that is told its stream, as cublasLt's are.
pub(crate) fn compute_on(name: &str, handle: usize, stream: usize) -> Status {
    HANDLES.get(handle)?;
    kernel::leave_out(name, &stream::resolve(stream)?)
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
    fn a_product_waits_its_turn_on_the_handles_stream_which_has_to_be_one() {
        const HELD: Duration = Duration::from_millis(500);
        let stream = stream::create(cudaStreamNonBlocking, 0).unwrap();
        let handle = create().unwrap();
        assert_eq!(set_stream(handle, 0xbad), Err(Error::cudaErrorInvalidResourceHandle));
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
}
