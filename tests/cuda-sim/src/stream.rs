//! Streams: queues with CUDA's rules of order between the legacy default stream and the others.
//!
//! Work on a device's legacy default stream waits for earlier work of the device's blocking
//! streams, and the other way round; non-blocking streams, which PyTorch uses, stand apart.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use crate::bindings::cudaStreamNonBlocking;
use crate::capture::Capture;
use crate::error::{Error, Status, lock};
use crate::graph::Step;
use crate::handles::Handles;
use crate::queue::Queue;
use crate::work::{self, Work};
use crate::{capture_rules, config, device, hazard};

/// The handle of the legacy default stream, besides 0.
const LEGACY: usize = 1;
/// The handle of the calling thread's own default stream.
const PER_THREAD: usize = 2;

pub(crate) static STREAMS: Handles<Stream> = Handles::new(1);
/// Queues of destroyed streams that may still have work.
pub(crate) static RETIRED: Mutex<Vec<Arc<Queue>>> = Mutex::new(Vec::new());
/// Held while work is given to a stream that others are ordered against.
static ORDER: Mutex<()> = Mutex::new(());

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) handle: usize,
    pub(crate) device: i32,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
    legacy: bool,
    pub(crate) queue: Arc<Queue>,
    capture: Mutex<Option<Arc<Capture>>>,
}

impl Stream {
    fn new(handle: usize, device: i32, flags: u32, priority: i32, legacy: bool) -> Self {
        let (queue, capture) = Default::default();
        Self { handle, device, flags, priority, legacy, queue, capture }
    }

    /// Whether it is a legacy default stream.
    pub(crate) fn is_legacy(&self) -> bool {
        self.legacy
    }

    /// Whether it is ordered against the legacy default stream.
    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & cudaStreamNonBlocking == 0
    }

    /// The capture that it is part of.
    pub(crate) fn capture(&self) -> Option<Arc<Capture>> {
        lock(&self.capture).clone()
    }

    /// Enter or leave a capture.
    pub(crate) fn set_capture(&self, capture: Option<Arc<Capture>>) {
        *lock(&self.capture) = capture;
    }
}

/// `cudaStreamCreateWithPriority` on the current device.
pub(crate) fn create(flags: u32, priority: i32) -> Status<usize> {
    if flags & !cudaStreamNonBlocking != 0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    let device = device::activate_current()?;
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    Ok(STREAMS.insert_with(|own| Stream::new(own, device, flags, priority, false)).handle)
}

/// The priorities that streams may have.
pub(crate) const LEAST_PRIORITY: i32 = 0;
/// The most urgent one; smaller is more urgent.
pub(crate) const GREATEST_PRIORITY: i32 = -5;

/// `cudaStreamDestroy`: work under way is still done.
pub(crate) fn destroy(handle: usize) -> Status {
    if handle <= PER_THREAD {
        return Err(Error::cudaErrorInvalidResourceHandle);
    }
    let stream = STREAMS.remove(handle)?;
    let mut retired = lock(&RETIRED);
    retired.retain(|queue| !queue.is_idle());
    retired.push(Arc::clone(&stream.queue));
    Ok(())
}

/// The stream of a handle, the default streams of the current device included.
pub(crate) fn resolve(handle: usize) -> Status<Arc<Stream>> {
    match handle {
        0 | LEGACY => Ok(legacy(device::activate_current()?)),
        PER_THREAD => {
            let device = device::activate_current()?;
            Ok(PER_THREAD_STREAMS.with_borrow_mut(|streams| {
                let make = || STREAMS.insert_with(|own| Stream::new(own, device, 0, 0, false));
                Arc::clone(streams.entry(device).or_insert_with(make))
            }))
        }
        handle => STREAMS.get(handle),
    }
}

thread_local! {
    static PER_THREAD_STREAMS: RefCell<HashMap<i32, Arc<Stream>>> = RefCell::default();
}

/// Legacy default streams, one for each device, in order.
pub(crate) fn legacy_streams() -> &'static [Arc<Stream>] {
    static STREAMS: OnceLock<Vec<Arc<Stream>>> = OnceLock::new();
    STREAMS.get_or_init(|| {
        let devices = 0..i32::try_from(config::get().devices).unwrap_or(0);
        devices.map(|device| Arc::new(Stream::new(LEGACY, device, 0, 0, true))).collect()
    })
}

/// The legacy default stream of a device.
pub(crate) fn legacy(device: i32) -> Arc<Stream> {
    // The device number was checked where it was made current.
    Arc::clone(&legacy_streams()[device.unsigned_abs() as usize])
}

/// The streams of a device that are ordered against its legacy default stream.
pub(crate) fn blocking_streams(device: i32) -> impl Iterator<Item = Arc<Stream>> {
    let all = STREAMS.all().into_iter();
    all.filter(move |stream| stream.device == device && stream.is_blocking())
}

/// Give a stream work; the answer is how to wait for it, or nothing where it was captured.
pub(crate) fn submit(stream: &Arc<Stream>, work: Work) -> Status<Option<Ticket>> {
    if let Some(capture) = stream.capture() {
        capture.append(stream, Step::Work(work))?;
        return Ok(None);
    }
    let _order = if stream.is_legacy() {
        capture_rules::legacy_call(stream.device)?;
        let order = lock(&ORDER);
        for other in blocking_streams(stream.device).filter(|other| !other.queue.is_idle()) {
            let newest = other.queue.newest();
            stream.queue.push(Work::AwaitQueue(Arc::clone(&other.queue), newest))?;
        }
        Some(order)
    } else if stream.is_blocking() {
        let order = lock(&ORDER);
        let legacy = legacy(stream.device);
        if !legacy.queue.is_idle() {
            let newest = legacy.queue.newest();
            stream.queue.push(Work::AwaitQueue(Arc::clone(&legacy.queue), newest))?;
        }
        Some(order)
    } else {
        None
    };
    let work = match hazard::begin(&work) {
        Some(flight) => Work::Watched(Box::new(work), flight),
        None => work,
    };
    let number = stream.queue.push(work)?;
    Ok(Some(Ticket { queue: Arc::clone(&stream.queue), number }))
}

/// A place in a queue that can be waited for.
#[derive(Debug)]
pub(crate) struct Ticket {
    queue: Arc<Queue>,
    number: u64,
}

impl Ticket {
    /// Wait until the work is done.
    pub(crate) fn wait(&self) -> Status {
        work::may_wait()?;
        self.queue.wait(self.number);
        Ok(())
    }
}

/// A stream of a test's own, which waits for no other.
#[cfg(test)]
pub(crate) fn apart() -> Arc<Stream> {
    resolve(create(cudaStreamNonBlocking, 0).unwrap()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting;
    use std::time::{Duration, Instant};

    const HELD: Duration = Duration::from_secs(1);

    #[test]
    fn the_legacy_stream_waits_for_blocking_streams_only_and_they_for_it() {
        let blocking = resolve(create(0, 0).unwrap()).unwrap();
        let start = Instant::now();
        submit(&blocking, Work::Hold(HELD)).unwrap();
        submit(&apart(), Work::Kernel).unwrap().unwrap().wait().unwrap();
        assert!(start.elapsed() < HELD);
        let legacy = resolve(0).unwrap();
        submit(&legacy, Work::Kernel).unwrap().unwrap().wait().unwrap();
        assert!(start.elapsed() >= HELD);
        let start = Instant::now();
        submit(&legacy, Work::Hold(HELD)).unwrap();
        assert_eq!(waiting::query(&legacy), Err(Error::cudaErrorNotReady));
        submit(&blocking, Work::Kernel).unwrap().unwrap().wait().unwrap();
        assert!(start.elapsed() >= HELD);
    }

    #[test]
    fn a_destroyed_stream_finishes_its_work() {
        let handle = create(cudaStreamNonBlocking, 0).unwrap();
        let stream = resolve(handle).unwrap();
        let ticket = submit(&stream, Work::Hold(HELD)).unwrap().unwrap();
        drop(stream);
        destroy(handle).unwrap();
        assert_eq!(resolve(handle).err(), Some(Error::cudaErrorInvalidResourceHandle));
        waiting::synchronize_all().unwrap();
        assert!(ticket.queue.is_idle());
    }
}
