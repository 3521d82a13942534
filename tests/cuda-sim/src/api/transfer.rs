//! Copies and memsets.

use std::ffi::c_int;

use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::device;
use crate::error::{Error, answer};
use crate::transfer::{Call, copy, set};
use crate::work::Area;

/// The legacy default stream, where synchronous calls run.
pub(super) const DEFAULT: usize = 0;

#[unsafe(no_mangle)]
extern "C" fn cudaMemcpy(to: usize, from: usize, bytes: usize, kind: CopyKind) -> Error {
    answer("cudaMemcpy", || {
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            DEFAULT,
            Call::Sync,
        )
    })
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
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            stream,
            Call::Async,
        )
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
        copy(
            Area::line(to, bytes),
            Area::line(from, bytes),
            kind,
            stream,
            Call::Async,
        )
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
        let target = Area {
            address: to,
            pitch: to_pitch,
            width,
            rows,
        };
        let source = Area {
            address: from,
            pitch: from_pitch,
            width,
            rows,
        };
        copy(target, source, kind, stream, Call::Async)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemset(to: usize, value: c_int, bytes: usize) -> Error {
    answer("cudaMemset", || {
        set(Area::line(to, bytes), value as u8, DEFAULT, Call::Sync)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaMemsetAsync(to: usize, value: c_int, bytes: usize, stream: usize) -> Error {
    answer("cudaMemsetAsync", || {
        set(Area::line(to, bytes), value as u8, stream, Call::Async)
    })
}
