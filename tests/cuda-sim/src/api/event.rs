//! Events.

use std::ffi::c_uint;

use super::Out;
use crate::error::{Error, answer};
use crate::{event, stream};

#[unsafe(no_mangle)]
extern "C" fn cudaEventCreate(handle: Out<usize>) -> Error {
    cudaEventCreateWithFlags(handle, 0)
}

entries! {
    fn cudaEventCreateWithFlags(handle: Out<usize>, flags: c_uint) {
        handle.put(event::create(flags)?)
    }

    fn cudaEventDestroy(handle: usize) { event::destroy(handle) }
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecord(handle: usize, stream: usize) -> Error {
    cudaEventRecordWithFlags(handle, stream, 0)
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventRecordWithFlags(handle: usize, stream: usize, flags: c_uint) -> Error {
    answer("cudaEventRecord", || event::record(&event::resolve(handle)?, &stream::resolve(stream)?, flags))
}

entries! {
    fn cudaEventQuery(handle: usize) { event::query(&*event::resolve(handle)?) }
    fn cudaEventSynchronize(handle: usize) { event::synchronize(&*event::resolve(handle)?) }

    fn cudaEventElapsedTime(milliseconds: Out<f32>, start: usize, end: usize) {
        milliseconds.put(event::elapsed(
            &*event::resolve(start)?,
            &*event::resolve(end)?,
        )?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: usize, end: usize) -> Error {
    cudaEventElapsedTime(milliseconds, start, end)
}
