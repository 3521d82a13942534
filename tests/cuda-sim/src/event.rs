//! Events: a completion for each record, so that a waiter keeps the record that it saw.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::bindings::{cudaEventDisableTiming, cudaEventInterprocess, cudaEventRecordExternal, cudaEventWaitExternal};
use crate::capture::Capture;
use crate::error::{Error, Status, lock};
use crate::graph::Step;
use crate::handles::Handles;
use crate::stream::{self, Stream};
use crate::work::{self, Completion, Work};
use crate::{config, device};

static EVENTS: Handles<Event> = Handles::new(2);

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    device: i32,
    flags: u32,
    record: Mutex<Record>,
}

/// What an event was last recorded on.
#[derive(Debug, Clone)]
enum Record {
    Never,
    Queued(Arc<Completion>),
    /// Inside a capture, after these nodes.
    Captured(Arc<Capture>, Vec<usize>),
}

/// `cudaEventCreateWithFlags` on the current device.
pub(crate) fn create(flags: u32) -> Status<usize> {
    if flags > 7 || (flags & cudaEventInterprocess != 0 && flags & cudaEventDisableTiming == 0) {
        return Err(Error::cudaErrorInvalidValue);
    }
    let device = device::activate_current()?;
    Ok(EVENTS.insert(Event { device, flags, record: Mutex::new(Record::Never) }))
}

/// `cudaEventDestroy`: who waits for its last record keeps that. It takes the current device's
/// context, which PyTorch minds (`CUDAEvent`'s destructor).
pub(crate) fn destroy(handle: usize) -> Status {
    device::activate_current()?;
    EVENTS.remove(handle).map(|_| ())
}

/// The event of a handle.
pub(crate) fn resolve(handle: usize) -> Status<Arc<Event>> {
    EVENTS.get(handle)
}

/// `cudaEventRecordWithFlags`.
pub(crate) fn record(event: &Arc<Event>, stream: &Arc<Stream>, flags: u32) -> Status {
    if event.device != stream.device {
        return Err(Error::cudaErrorInvalidResourceHandle);
    }
    let record = match stream.capture() {
        Some(capture) if flags & cudaEventRecordExternal != 0 => {
            return capture.append(stream, Step::Record(Arc::clone(event)));
        }
        Some(capture) => {
            let nodes = capture.tail(stream)?;
            Record::Captured(capture, nodes)
        }
        None => {
            let completion = Arc::new(Completion::late(lag()));
            stream::submit(stream, Work::Reach(Arc::clone(&completion)))?;
            Record::Queued(completion)
        }
    };
    *lock(&event.record) = record;
    Ok(())
}

/// How long after an event is complete it is seen to be: each record's own.
fn lag() -> Duration {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    match config::get().event_lag_ms as u64 {
        0 => Duration::ZERO,
        most => {
            let drawn = DRAWN.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            Duration::from_micros((drawn >> 20) % (most * 1000 + 1))
        }
    }
}

/// `cudaEventQuery`.
pub(crate) fn query(event: &Event) -> Status {
    match completion(event)? {
        Some(completion) if !completion.is_seen() => Err(Error::cudaErrorNotReady),
        _ => Ok(()),
    }
}

/// `cudaEventSynchronize`.
pub(crate) fn synchronize(event: &Event) -> Status {
    if let Some(completion) = completion(event)? {
        work::may_wait()?;
        completion.wait();
    }
    Ok(())
}

/// The last record of an event outside captures; inside one, asking spoils the capture.
fn completion(event: &Event) -> Status<Option<Arc<Completion>>> {
    match lock(&event.record).clone() {
        Record::Never => Ok(None),
        Record::Queued(completion) => Ok(Some(completion)),
        Record::Captured(capture, _) => {
            capture.invalidate();
            Err(Error::cudaErrorCapturedEvent)
        }
    }
}

/// `cudaStreamWaitEvent`.
pub(crate) fn wait(stream: &Arc<Stream>, event: &Arc<Event>, flags: u32) -> Status {
    let record = lock(&event.record).clone();
    match (stream.capture(), record) {
        (Some(capture), _) if flags & cudaEventWaitExternal != 0 => {
            capture.append(stream, Step::Wait(Arc::clone(event)))
        }
        (_, Record::Never) => Ok(()),
        (None, Record::Queued(completion)) => stream::submit(stream, Work::Await(completion)).map(|_| ()),
        (Some(capture), Record::Queued(_)) => {
            capture.invalidate();
            Err(Error::cudaErrorStreamCaptureIsolation)
        }
        (own, Record::Captured(capture, nodes)) => capture.join(stream, own.as_ref(), &nodes),
    }
}

/// `cudaEventElapsedTime` in milliseconds.
pub(crate) fn elapsed(start: &Event, end: &Event) -> Status<f32> {
    let untimed = (start.flags | end.flags) & cudaEventDisableTiming != 0;
    if untimed || start.device != end.device {
        return Err(Error::cudaErrorInvalidResourceHandle);
    }
    let (Some(start), Some(end)) = (completion(start)?, completion(end)?) else {
        return Err(Error::cudaErrorInvalidResourceHandle);
    };
    let (Some(start), Some(end)) = (start.at(), end.at()) else {
        return Err(Error::cudaErrorNotReady);
    };
    let forward = end.saturating_duration_since(start).as_secs_f64();
    let backward = start.saturating_duration_since(end).as_secs_f64();
    Ok(((forward - backward) * 1e3) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::apart;
    use crate::waiting;

    fn new_event(flags: u32) -> Arc<Event> {
        resolve(create(flags).unwrap()).unwrap()
    }

    #[test]
    fn an_event_is_ready_when_the_queue_reaches_it_and_timing_needs_events_that_time() {
        let (stream, start, end, untimed) = (apart(), new_event(0), new_event(0), new_event(2));
        let refused = Err(Error::cudaErrorInvalidResourceHandle);
        assert_eq!((query(&start), elapsed(&start, &start)), (Ok(()), refused));
        record(&start, &stream, 0).unwrap();
        record(&untimed, &stream, 0).unwrap();
        stream::submit(&stream, Work::Hold(Duration::from_millis(500))).unwrap();
        record(&end, &stream, 0).unwrap();
        assert_eq!(query(&end), Err(Error::cudaErrorNotReady));
        assert_eq!(elapsed(&start, &end), Err(Error::cudaErrorNotReady));
        synchronize(&end).unwrap();
        assert_eq!(query(&end), Ok(()));
        assert!(elapsed(&start, &end).unwrap() >= 500.0);
        assert!(elapsed(&end, &start).unwrap() <= -500.0);
        assert_eq!(elapsed(&start, &untimed), refused);
    }

    #[test]
    fn another_stream_waits_for_an_event() {
        let (first, second, event) = (apart(), apart(), new_event(2));
        stream::submit(&first, Work::Hold(Duration::from_millis(500))).unwrap();
        record(&event, &first, 0).unwrap();
        wait(&second, &event, 0).unwrap();
        assert_eq!(waiting::query(&second), Err(Error::cudaErrorNotReady));
        waiting::synchronize(&second).unwrap();
        assert_eq!(query(&event), Ok(()));
    }
}
