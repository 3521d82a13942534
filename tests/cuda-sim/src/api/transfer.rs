//! Copies and memsets.

use std::ffi::c_int;

use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::device;
use crate::error::{Error, answer};
use crate::transfer::{At, copy, copy_bytes, set};
use crate::work::Area;

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy(to: usize, from: usize, bytes: usize, kind: CopyKind) -> Error {
    answer("cudaMemcpy", || copy_bytes(to, from, bytes, kind, At::Now))
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyAsync(
    to: usize,
    from: usize,
    bytes: usize,
    kind: CopyKind,
    stream: usize,
) -> Error {
    answer("cudaMemcpyAsync", || {
        copy_bytes(to, from, bytes, kind, At::On(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpyPeerAsync(
    to: usize,
    to_device: c_int,
    from: usize,
    from_device: c_int,
    bytes: usize,
    stream: usize,
) -> Error {
    answer("cudaMemcpyPeerAsync", || {
        device::check(to_device)?;
        device::check(from_device)?;
        let kind = CopyKind::cudaMemcpyDeviceToDevice;
        copy_bytes(to, from, bytes, kind, At::On(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy2DAsync(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    rows: usize,
    kind: CopyKind,
    stream: usize,
) -> Error {
    answer("cudaMemcpy2DAsync", || {
        let target = Area::rows(to, to_pitch, width, rows);
        let source = Area::rows(from, from_pitch, width, rows);
        copy(target, source, kind, At::On(stream))
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset(to: usize, value: c_int, bytes: usize) -> Error {
    answer("cudaMemset", || {
        set(Area::line(to, bytes), value as u8, At::Now)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemsetAsync(to: usize, value: c_int, bytes: usize, stream: usize) -> Error {
    answer("cudaMemsetAsync", || {
        set(Area::line(to, bytes), value as u8, At::On(stream))
    })
}
