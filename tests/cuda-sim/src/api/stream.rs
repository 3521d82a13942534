//! Streams and host functions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::Out;
use crate::error::Error;
use crate::stream;
use crate::work::{HostCall, Work};
use crate::{event, waiting};

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreate(handle: Out<usize>) -> Error {
    cudaStreamCreateWithPriority(handle, 0, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreateWithFlags(handle: Out<usize>, flags: c_uint) -> Error {
    cudaStreamCreateWithPriority(handle, flags, 0)
}

entries! {
    fn cudaStreamCreateWithPriority(handle: Out<usize>, flags: c_uint, priority: c_int) {
        handle.put(stream::create(flags, priority)?)
    }

    fn cudaStreamDestroy(handle: usize) { stream::destroy(handle) }
    fn cudaStreamSynchronize(handle: usize) { waiting::synchronize(&stream::resolve(handle)?) }
    fn cudaStreamQuery(handle: usize) { waiting::query(&stream::resolve(handle)?) }

    fn cudaStreamWaitEvent(handle: usize, event: usize, flags: c_uint) {
        event::wait(&stream::resolve(handle)?, &event::resolve(event)?, flags)
    }

    fn cudaStreamGetPriority(handle: usize, priority: Out<c_int>) {
        priority.put(stream::resolve(handle)?.priority)
    }

    fn cudaLaunchHostFunc(
        handle: usize,
        function: Option<extern "C" fn(*mut c_void)>,
        data: usize,
    ) {
        let function = function.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || function(std::ptr::with_exposed_provenance_mut(data));
        let work = Work::Call(HostCall(Arc::new(call)));
        stream::submit(&stream::resolve(handle)?, work).map(|_| ())
    }

    fn cudaStreamAddCallback(
        handle: usize,
        callback: Option<extern "C" fn(usize, Error, *mut c_void)>,
        data: usize,
        _flags: c_uint,
    ) {
        let callback = callback.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || {
            let data = std::ptr::with_exposed_provenance_mut(data);
            callback(handle, Error::cudaSuccess, data);
        };
        let work = Work::Call(HostCall(Arc::new(call)));
        stream::submit(&stream::resolve(handle)?, work).map(|_| ())
    }
}
