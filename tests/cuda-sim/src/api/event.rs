//! Events.

use std::ffi::c_uint;

use super::Out;
use crate::error::{Error, answer};
use crate::{event, stream};

#[unsafe(no_mangle)]
extern "C" fn cudaEventCreate(handle: Out<usize>) -> Error {
    cudaEventCreateWithFlags(handle, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventCreateWithFlags(handle: Out<usize>, flags: c_uint) -> Error {
    answer("cudaEventCreateWithFlags", || {
        handle.put(event::create(flags)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventDestroy(handle: usize) -> Error {
    answer("cudaEventDestroy", || event::destroy(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecord(handle: usize, stream: usize) -> Error {
    cudaEventRecordWithFlags(handle, stream, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecordWithFlags(handle: usize, stream: usize, flags: c_uint) -> Error {
    answer("cudaEventRecord", || {
        event::record(&event::resolve(handle)?, &stream::resolve(stream)?, flags)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventQuery(handle: usize) -> Error {
    answer("cudaEventQuery", || event::query(&*event::resolve(handle)?))
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventSynchronize(handle: usize) -> Error {
    answer("cudaEventSynchronize", || {
        event::synchronize(&*event::resolve(handle)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) -> Error {
    answer("cudaEventElapsedTime", || {
        milliseconds.put(event::elapsed(
            &*event::resolve(start)?,
            &*event::resolve(end)?,
        )?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: usize, end: usize) -> Error {
    cudaEventElapsedTime(milliseconds, start, end)
}
