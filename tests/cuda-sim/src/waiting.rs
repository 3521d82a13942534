//! Waiting for streams, devices, and everything.

use std::sync::Arc;

use crate::error::{Error, Status, lock};
use crate::queue::Queue;
use crate::stream::{RETIRED, STREAMS, Stream, blocking_streams, legacy, legacy_streams};
use crate::{capture_rules, work};

/// The queues that a stream's completion means: the legacy default stream stands for the blocking
/// streams too.
fn queues_of(stream: &Arc<Stream>) -> Status<Vec<Arc<Queue>>> {
    if let Some(capture) = stream.capture() {
        capture.invalidate();
        return Err(Error::cudaErrorStreamCaptureUnsupported);
    }
    let mut queues = vec![Arc::clone(&stream.queue)];
    if stream.is_legacy() {
        capture_rules::legacy_call(stream.device)?;
        queues.extend(blocking_streams(stream.device).map(|other| Arc::clone(&other.queue)));
    }
    Ok(queues)
}

/// `cudaStreamSynchronize`.
pub(crate) fn synchronize(stream: &Arc<Stream>) -> Status {
    work::may_wait()?;
    queues_of(stream)?.iter().for_each(|queue| queue.wait(queue.newest()));
    Ok(())
}

/// `cudaStreamQuery`.
pub(crate) fn query(stream: &Arc<Stream>) -> Status {
    let idle = queues_of(stream)?.iter().all(|queue| queue.is_idle());
    if idle { Ok(()) } else { Err(Error::cudaErrorNotReady) }
}

/// `cudaDeviceSynchronize`.
pub(crate) fn synchronize_device(device: i32) -> Status {
    capture_rules::device_call(device)?;
    work::may_wait()?;
    let streams = STREAMS.all().into_iter().filter(|stream| stream.device == device);
    for stream in streams.chain([legacy(device)]) {
        stream.queue.wait(stream.queue.newest());
    }
    wait_for_retired();
    Ok(())
}

/// Wait for all work of all devices, as freeing memory does.
pub(crate) fn synchronize_all() -> Status {
    work::may_wait()?;
    for stream in STREAMS.all().iter().chain(legacy_streams()) {
        stream.queue.wait(stream.queue.newest());
    }
    wait_for_retired();
    Ok(())
}

fn wait_for_retired() {
    let retired = lock(&RETIRED).clone();
    retired.iter().for_each(|queue| queue.wait(queue.newest()));
}
