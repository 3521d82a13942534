//! Streams and host functions.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::Out;
use crate::error::{Error, answer};
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

#[unsafe(no_mangle)]
extern "C" fn cudaStreamCreateWithPriority(
    handle: Out<usize>,
    flags: c_uint,
    priority: c_int,
) -> Error {
    answer("cudaStreamCreateWithPriority", || {
        handle.put(stream::create(flags, priority)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamDestroy(handle: usize) -> Error {
    answer("cudaStreamDestroy", || stream::destroy(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamSynchronize(handle: usize) -> Error {
    answer("cudaStreamSynchronize", || {
        waiting::synchronize(&stream::resolve(handle)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamQuery(handle: usize) -> Error {
    answer("cudaStreamQuery", || {
        waiting::query(&stream::resolve(handle)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamWaitEvent(handle: usize, event: usize, flags: c_uint) -> Error {
    answer("cudaStreamWaitEvent", || {
        event::wait(&stream::resolve(handle)?, &event::resolve(event)?, flags)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamGetPriority(handle: usize, priority: Out<c_int>) -> Error {
    answer("cudaStreamGetPriority", || {
        priority.put(stream::resolve(handle)?.priority)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaLaunchHostFunc(
    handle: usize,
    function: Option<extern "C" fn(*mut c_void)>,
    data: usize,
) -> Error {
    answer("cudaLaunchHostFunc", || {
        let function = function.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || function(std::ptr::with_exposed_provenance_mut(data));
        let work = Work::Call(HostCall(Arc::new(call)));
        stream::submit(&stream::resolve(handle)?, work).map(|_| ())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaStreamAddCallback(
    handle: usize,
    callback: Option<extern "C" fn(usize, Error, *mut c_void)>,
    data: usize,
    _flags: c_uint,
) -> Error {
    answer("cudaStreamAddCallback", || {
        let callback = callback.ok_or(Error::cudaErrorInvalidValue)?;
        let call = move || {
            let data = std::ptr::with_exposed_provenance_mut(data);
            callback(handle, Error::cudaSuccess, data);
        };
        let work = Work::Call(HostCall(Arc::new(call)));
        stream::submit(&stream::resolve(handle)?, work).map(|_| ())
    })
}
