//! Stream capture.
//!
//! `cudaStreamGetCaptureInfo` and `cudaStreamUpdateCaptureDependencies` took on new arguments in
//! CUDA 13 under their old names; the loaded libcudart says which ones the caller passes.

use std::cell::RefCell;
use std::ffi::c_uint;

use super::{In, Out, loaded};
use crate::bindings::{cudaStreamCaptureMode as Mode, cudaStreamCaptureStatus as CaptureStatus};
use crate::error::{Error, Status};
use crate::{capture, capture_rules, stream};

/// `cudaStreamSetCaptureDependencies`: replace instead of adding.
const REPLACE: c_uint = 1;

entries! {
    fn cudaStreamBeginCapture(handle: usize, mode: Mode) {
        capture::begin(&stream::resolve(handle)?, mode)
    }

    fn cudaStreamEndCapture(handle: usize, graph: Out<usize>) {
        let ended = capture::end(&stream::resolve(handle)?);
        graph.put(ended.unwrap_or(0))?;
        ended.map(|_| ())
    }

    fn cudaStreamIsCapturing(handle: usize, status: Out<CaptureStatus>) {
        let stream = stream::resolve(handle)?;
        if stream.is_legacy() {
            capture_rules::legacy_call(stream.device)?;
        }
        let none = CaptureStatus::cudaStreamCaptureStatusNone;
        status.put(stream.capture().map_or(none, |capture| capture.status()))
    }

    fn cudaThreadExchangeStreamCaptureMode(mode: *mut Mode) {
        if mode.is_null() {
            return Err(Error::cudaErrorInvalidValue);
        }
        // SAFETY: the caller gives a valid mode, which is also the place for the old one.
        let mode = unsafe { &mut *mode };
        *mode = capture_rules::exchange_mode(*mode)?;
        Ok(())
    }
}

thread_local! {
    /// The dependencies last shown to this thread: valid until it asks again.
    static SHOWN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Data of edges that carry none, for as many as a stream will ever depend on.
static PLAIN_EDGES: [u64; 1024] = [0; 1024];

fn info(
    handle: usize,
    status: Out<CaptureStatus>,
    id: Out<u64>,
    graph: Out<usize>,
    (dependencies, count): (Out<*const usize>, Out<usize>),
    edges: Out<*const u64>,
) -> Status {
    let stream = stream::resolve(handle)?;
    let Some(capture) = stream.capture() else {
        return status.put(CaptureStatus::cudaStreamCaptureStatusNone);
    };
    let now = capture.status();
    status.put(now)?;
    if now != CaptureStatus::cudaStreamCaptureStatusActive {
        return Ok(());
    }
    id.put_if_wanted(capture.id);
    graph.put_if_wanted(capture.graph_handle);
    let tail = capture.tail(&stream)?;
    count.put_if_wanted(tail.len());
    edges.put_if_wanted(PLAIN_EDGES.as_ptr());
    let shown = SHOWN.with_borrow_mut(|shown| {
        *shown = tail;
        shown.as_ptr()
    });
    dependencies.put_if_wanted(shown);
    Ok(())
}

fn nowhere<T>() -> Out<T> {
    Out(std::ptr::null_mut())
}

entries! {
    /// CUDA 13: all of it. CUDA 12: status and number only, the other arguments are not there.
    fn cudaStreamGetCaptureInfo(
        handle: usize,
        status: Out<CaptureStatus>,
        id: Out<u64>,
        graph: Out<usize>,
        dependencies: Out<*const usize>,
        edges: Out<*const u64>,
        count: Out<usize>,
    ) {
        if loaded::major() < 13 {
            let nodes = (nowhere(), nowhere());
            info(handle, status, id, nowhere(), nodes, nowhere())
        } else {
            info(handle, status, id, graph, (dependencies, count), edges)
        }
    }

    fn cudaStreamGetCaptureInfo_v2(
        handle: usize,
        status: Out<CaptureStatus>,
        id: Out<u64>,
        graph: Out<usize>,
        dependencies: Out<*const usize>,
        count: Out<usize>,
    ) {
        info(handle, status, id, graph, (dependencies, count), nowhere())
    }

    fn cudaStreamGetCaptureInfo_v3(
        handle: usize,
        status: Out<CaptureStatus>,
        id: Out<u64>,
        graph: Out<usize>,
        dependencies: Out<*const usize>,
        edges: Out<*const u64>,
        count: Out<usize>,
    ) {
        info(handle, status, id, graph, (dependencies, count), edges)
    }
}

fn update(handle: usize, nodes: In<usize>, count: usize, flags: c_uint) -> Status {
    let stream = stream::resolve(handle)?;
    let capture = stream.capture().ok_or(Error::cudaErrorIllegalState)?;
    capture.set_tail(&stream, &nodes.items(count)?, flags & REPLACE != 0)
}

entries! {
    /// CUDA 13: (stream, nodes, edges, count, flags). CUDA 12: (stream, nodes, count, flags).
    fn cudaStreamUpdateCaptureDependencies(
        handle: usize,
        nodes: In<usize>,
        edges_or_count: usize,
        count_or_flags: usize,
        flags: c_uint,
    ) {
        if loaded::major() < 13 {
            update(handle, nodes, edges_or_count, count_or_flags as c_uint)
        } else {
            update(handle, nodes, count_or_flags, flags)
        }
    }

    fn cudaStreamUpdateCaptureDependencies_v2(
        handle: usize,
        nodes: In<usize>,
        _edges: usize,
        count: usize,
        flags: c_uint,
    ) {
        update(handle, nodes, count, flags)
    }
}
