//! Stream capture: recording a graph instead of running, and what may not be called meanwhile.
//!
//! Dependencies are CUDA's: each stream in a capture has a tail, the nodes that its next one runs
//! after; an event recorded there carries the tail to the streams that wait for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use crate::bindings::{cudaStreamCaptureMode as Mode, cudaStreamCaptureStatus as CaptureStatus};
use crate::error::{Error, Status, lock};
use crate::graph::{self, Graph, Step};
use crate::stream::Stream;

/// Captures under way.
static ACTIVE: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());
/// How many there are, to be asked without the lock.
static ACTIVE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// One capture, over all streams that joined it.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) id: u64,
    pub(crate) mode: Mode,
    pub(crate) thread: ThreadId,
    origin: usize,
    pub(crate) graph_handle: usize,
    graph: Arc<Graph>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    invalid: bool,
    tails: HashMap<usize, Vec<usize>>,
    members: Vec<Arc<Stream>>,
}

/// The captures under way.
pub(crate) fn active() -> Vec<Arc<Capture>> {
    if ACTIVE_COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    lock(&ACTIVE).clone()
}

/// `cudaStreamBeginCapture`.
pub(crate) fn begin(stream: &Arc<Stream>, mode: Mode) -> Status {
    if mode.0 > Mode::cudaStreamCaptureModeRelaxed.0 {
        return Err(Error::cudaErrorInvalidValue);
    }
    if stream.is_legacy() {
        return Err(Error::cudaErrorStreamCaptureUnsupported);
    }
    if stream.capture().is_some() {
        return Err(Error::cudaErrorIllegalState);
    }
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let graph_handle = graph::create();
    let capture = Arc::new(Capture {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        mode,
        thread: std::thread::current().id(),
        origin: stream.handle,
        graph_handle,
        graph: graph::resolve(graph_handle)?,
        state: Mutex::default(),
    });
    capture.admit(stream);
    lock(&ACTIVE).push(capture);
    ACTIVE_COUNT.fetch_add(1, Ordering::Release);
    Ok(())
}

/// `cudaStreamEndCapture`: the handle of the graph.
pub(crate) fn end(stream: &Arc<Stream>) -> Status<usize> {
    let capture = stream.capture().ok_or(Error::cudaErrorIllegalState)?;
    if capture.origin != stream.handle {
        capture.invalidate();
        return Err(Error::cudaErrorStreamCaptureUnmatched);
    }
    let relaxed = capture.mode == Mode::cudaStreamCaptureModeRelaxed;
    if !relaxed && capture.thread != std::thread::current().id() {
        return Err(Error::cudaErrorStreamCaptureWrongThread);
    }
    let mut state = lock(&capture.state);
    let tail = state.tails.remove(&stream.handle).unwrap_or_default();
    let verdict = if state.invalid {
        Err(Error::cudaErrorStreamCaptureInvalidated)
    } else if capture.graph.leaves().iter().any(|leaf| !tail.contains(leaf)) {
        Err(Error::cudaErrorStreamCaptureUnjoined)
    } else {
        Ok(capture.graph_handle)
    };
    for member in state.members.drain(..) {
        member.set_capture(None);
    }
    drop(state);
    lock(&ACTIVE).retain(|active| active.id != capture.id);
    ACTIVE_COUNT.fetch_sub(1, Ordering::Release);
    if verdict.is_err() {
        graph::destroy(capture.graph_handle)?;
    }
    verdict
}

impl Capture {
    /// Add a node after the stream's tail.
    pub(crate) fn append(&self, stream: &Stream, step: Step) -> Status {
        let mut state = lock(&self.state);
        state.check()?;
        let tail = state.tails.entry(stream.handle).or_default();
        *tail = vec![self.graph.add(step, std::mem::take(tail))];
        Ok(())
    }

    /// The nodes that the stream's next one will run after.
    pub(crate) fn tail(&self, stream: &Stream) -> Status<Vec<usize>> {
        let state = lock(&self.state);
        state.check()?;
        Ok(state.tails.get(&stream.handle).cloned().unwrap_or_default())
    }

    /// Add to the stream's tail, or replace it.
    pub(crate) fn set_tail(&self, stream: &Stream, nodes: &[usize], replace: bool) -> Status {
        let mut state = lock(&self.state);
        state.check()?;
        let tail = state.tails.entry(stream.handle).or_default();
        if replace {
            tail.clear();
        }
        for node in nodes {
            if !tail.contains(node) {
                tail.push(*node);
            }
        }
        Ok(())
    }

    /// A stream waits for an event of this capture, and so becomes part of it.
    pub(crate) fn join(self: &Arc<Self>, stream: &Arc<Stream>, own: Option<&Arc<Self>>, nodes: &[usize]) -> Status {
        match own {
            Some(own) if own.id != self.id => {
                own.invalidate();
                self.invalidate();
                return Err(Error::cudaErrorStreamCaptureMerge);
            }
            None if !lock(&ACTIVE).iter().any(|active| active.id == self.id) => {
                return Err(Error::cudaErrorCapturedEvent);
            }
            None if stream.is_legacy() => {
                self.invalidate();
                return Err(Error::cudaErrorStreamCaptureImplicit);
            }
            None => self.admit(stream),
            Some(_) => {}
        }
        self.set_tail(stream, nodes, false)
    }

    /// Spoil it: it records nothing more and ends with an error.
    pub(crate) fn invalidate(&self) {
        lock(&self.state).invalid = true;
    }

    /// What `cudaStreamIsCapturing` says.
    pub(crate) fn status(&self) -> CaptureStatus {
        if lock(&self.state).invalid {
            CaptureStatus::cudaStreamCaptureStatusInvalidated
        } else {
            CaptureStatus::cudaStreamCaptureStatusActive
        }
    }

    fn admit(self: &Arc<Self>, stream: &Arc<Stream>) {
        stream.set_capture(Some(Arc::clone(self)));
        lock(&self.state).members.push(Arc::clone(stream));
    }

    /// Whether a stream of some kind is part of it.
    pub(crate) fn has(&self, test: impl Fn(&Stream) -> bool) -> bool {
        lock(&self.state).members.iter().any(|stream| test(stream))
    }
}

impl State {
    fn check(&self) -> Status {
        if self.invalid { Err(Error::cudaErrorStreamCaptureInvalidated) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event;
    use crate::stream::{self, apart};
    use crate::waiting;
    use crate::work::Work;

    // Relaxed, because other tests pin memory meanwhile.
    const MODE: Mode = Mode::cudaStreamCaptureModeRelaxed;

    #[test]
    fn work_is_recorded_and_not_done_and_asking_for_a_captured_stream_spoils_the_capture() {
        let stream = apart();
        begin(&stream, MODE).unwrap();
        assert_eq!(begin(&stream, MODE), Err(Error::cudaErrorIllegalState));
        assert!(stream::submit(&stream, Work::Kernel).unwrap().is_none());
        stream::submit(&stream, Work::Kernel).unwrap();
        let graph = graph::resolve(end(&stream).unwrap()).unwrap();
        let nodes = graph.nodes();
        assert_eq!(nodes[1].depends_on, [nodes[0].handle]);
        assert_eq!(end(&stream), Err(Error::cudaErrorIllegalState));
        assert_eq!(waiting::query(&stream), Ok(()));

        begin(&stream, MODE).unwrap();
        assert_eq!(waiting::query(&stream), Err(Error::cudaErrorStreamCaptureUnsupported));
        let spoiled = Err(Error::cudaErrorStreamCaptureInvalidated);
        assert_eq!(stream::submit(&stream, Work::Kernel).map(|_| ()), spoiled);
        assert_eq!(end(&stream).map(|_| ()), spoiled);
        assert!(stream.capture().is_none());
    }

    #[test]
    fn a_stream_that_forked_off_has_to_join_again() {
        for (joins, verdict) in [(true, Ok(())), (false, Err(Error::cudaErrorStreamCaptureUnjoined))] {
            let (origin, side) = (apart(), apart());
            let event = event::resolve(event::create(2).unwrap()).unwrap();
            begin(&origin, MODE).unwrap();
            event::record(&event, &origin, 0).unwrap();
            event::wait(&side, &event, 0).unwrap();
            stream::submit(&side, Work::Kernel).unwrap();
            if joins {
                event::record(&event, &side, 0).unwrap();
                event::wait(&origin, &event, 0).unwrap();
            }
            assert_eq!(end(&origin).map(|_| ()), verdict);
            assert!(side.capture().is_none());
        }
    }

    #[test]
    fn work_outside_cannot_be_waited_for_inside() {
        let (captured, outside) = (apart(), apart());
        let event = event::resolve(event::create(2).unwrap()).unwrap();
        event::record(&event, &outside, 0).unwrap();
        begin(&captured, MODE).unwrap();
        let isolated = Err(Error::cudaErrorStreamCaptureIsolation);
        assert_eq!(event::wait(&captured, &event, 0), isolated);
        assert_eq!(end(&captured), Err(Error::cudaErrorStreamCaptureInvalidated));
    }
}
