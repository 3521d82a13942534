//! Copies and memsets.

use std::ffi::c_int;

use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::device;
use crate::transfer::{At, copy, copy_bytes, set};
use crate::work::Area;

entries! {
    fn cudaMemcpy(to: usize, from: usize, bytes: usize, kind: CopyKind) {
        copy_bytes(to, from, bytes, kind, At::Now)
    }

    fn cudaMemcpyAsync(to: usize, from: usize, bytes: usize, kind: CopyKind, stream: usize) {
        copy_bytes(to, from, bytes, kind, At::On(stream))
    }

    fn cudaMemcpyPeerAsync(
        to: usize,
        to_device: c_int,
        from: usize,
        from_device: c_int,
        bytes: usize,
        stream: usize,
    ) {
        device::check(to_device)?;
        device::check(from_device)?;
        let kind = CopyKind::cudaMemcpyDeviceToDevice;
        copy_bytes(to, from, bytes, kind, At::On(stream))
    }

    fn cudaMemcpy2DAsync(
        to: usize,
        to_pitch: usize,
        from: usize,
        from_pitch: usize,
        width: usize,
        rows: usize,
        kind: CopyKind,
        stream: usize,
    ) {
        let target = Area::rows(to, to_pitch, width, rows);
        let source = Area::rows(from, from_pitch, width, rows);
        copy(target, source, kind, At::On(stream))
    }

    fn cudaMemset(to: usize, value: c_int, bytes: usize) {
        set(Area::line(to, bytes), value as u8, At::Now)
    }

    fn cudaMemsetAsync(to: usize, value: c_int, bytes: usize, stream: usize) {
        set(Area::line(to, bytes), value as u8, At::On(stream))
    }
}
