//! Copies and memsets: what is read at the call, what later, and what the caller waits for.
//!
//! CUDA's rules. A pageable source is read (staged) at the call; a page-locked one when the stream
//! gets there, so overwriting it earlier is seen. A copy to pageable memory, and a copy between
//! host memories, is done when the call returns. A copy inside devices never holds the caller.

use std::sync::Arc;

use crate::bindings::cudaMemcpyKind as CopyKind;
use crate::error::{Error, Status};
use crate::memory;
use crate::registry::Cover;
use crate::stream::{self, Stream};
use crate::work::{Area, Source, Transfer, Work, stage};

/// Where a function works, and whether it is a synchronous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// On the legacy default stream, and the caller waits.
    Now,
    /// On a stream.
    On(usize),
}

impl At {
    fn stream(self) -> Status<Arc<Stream>> {
        stream::resolve(match self {
            Self::Now => 0,
            Self::On(stream) => stream,
        })
    }
}

/// Whether the range that a copy names is on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Pageable,
    PageLocked,
    Device,
}

/// Copy a plain run of bytes.
pub(crate) fn copy_bytes(to: usize, from: usize, bytes: usize, kind: CopyKind, at: At) -> Status {
    copy(Area::line(to, bytes), Area::line(from, bytes), kind, at)
}

/// Copy rows of bytes.
pub(crate) fn copy(target: Area, source: Area, kind: CopyKind, at: At) -> Status {
    if kind.0 > CopyKind::cudaMemcpyDefault.0 {
        return Err(Error::cudaErrorInvalidMemcpyDirection);
    }
    let stream = at.stream()?;
    if target.bytes() == 0 {
        return Ok(());
    }
    let (to, from) = (place(target)?, place(source)?);
    let to_device = matches!(kind, CopyKind::cudaMemcpyHostToDevice | CopyKind::cudaMemcpyDeviceToDevice);
    let from_device = matches!(kind, CopyKind::cudaMemcpyDeviceToHost | CopyKind::cudaMemcpyDeviceToDevice);
    // A device can reach page-locked memory, but not pageable memory.
    if (to_device && to == Place::Pageable) || (from_device && from == Place::Pageable) {
        return Err(Error::cudaErrorInvalidValue);
    }
    let captured = stream.capture().is_some();
    let staged = !captured && from == Place::Pageable && to == Place::Device;
    let source = if staged { Source::Staged(stage(source)) } else { Source::Memory(source) };
    let ticket = stream::submit(&stream, Work::Copy(Transfer { target, source }))?;
    match ticket {
        Some(ticket) if caller_waits(from, to, at) => ticket.wait(),
        _ => Ok(()),
    }
}

/// Fill rows of bytes.
pub(crate) fn set(target: Area, value: u8, at: At) -> Status {
    let stream = at.stream()?;
    if target.bytes() == 0 {
        return Ok(());
    }
    let to = place(target)?;
    if to == Place::Pageable {
        return Err(Error::cudaErrorInvalidValue);
    }
    let ticket = stream::submit(&stream, Work::Set { target, value })?;
    match ticket {
        Some(ticket) if at == At::Now && to == Place::PageLocked => ticket.wait(),
        _ => Ok(()),
    }
}

fn place(area: Area) -> Status<Place> {
    if area.address == 0 || area.pitch < area.width {
        return Err(Error::cudaErrorInvalidValue);
    }
    match memory::cover(area.address, area.extent()) {
        Cover::Pageable => Ok(Place::Pageable),
        Cover::PageLocked => Ok(Place::PageLocked),
        Cover::Device(_) => Ok(Place::Device),
        Cover::Overrun => Err(Error::cudaErrorInvalidValue),
    }
}

fn caller_waits(from: Place, to: Place, at: At) -> bool {
    match (from, to) {
        (Place::Device, Place::Device) => false,
        (_, Place::Device) | (Place::Device, Place::PageLocked) => at == At::Now,
        (Place::Device, Place::Pageable) => true,
        // Between host memories, whichever they are.
        (Place::Pageable | Place::PageLocked, Place::Pageable | Place::PageLocked) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::cudaStreamNonBlocking;
    use crate::host_memory;
    use std::time::Duration;

    const BYTES: usize = 4096;

    /// Copies from `source` to a device on a held stream, overwrites the source, and reads back.
    fn copied_byte(source: usize, overwrite: impl FnOnce()) -> u8 {
        let stream = stream::create(cudaStreamNonBlocking, 0).unwrap();
        let device = memory::device_alloc(BYTES).unwrap();
        let hold = Work::Hold(Duration::from_millis(500));
        stream::submit(&stream::resolve(stream).unwrap(), hold).unwrap();
        let (to, from) = (Area::line(device, BYTES), Area::line(source, BYTES));
        let on = At::On(stream);
        copy(to, from, CopyKind::cudaMemcpyHostToDevice, on).unwrap();
        overwrite();
        let answer = vec![0_u8; BYTES];
        let back = Area::line(answer.as_ptr().expose_provenance(), BYTES);
        copy(back, to, CopyKind::cudaMemcpyDeviceToHost, on).unwrap();
        memory::device_free(device).unwrap();
        std::hint::black_box(&answer)[BYTES - 1]
    }

    #[test]
    fn a_pageable_source_is_read_at_the_call_and_a_page_locked_one_when_the_stream_gets_there() {
        let mut source = vec![1_u8; BYTES];
        let address = source.as_mut_ptr().expose_provenance();
        assert_eq!(copied_byte(address, || source.fill(2)), 1);
        let source = host_memory::host_alloc(BYTES).unwrap();
        let fill = |value| set(Area::line(source, BYTES), value, At::Now).unwrap();
        fill(1);
        assert_eq!(copied_byte(source, || fill(2)), 2);
        host_memory::host_free(source).unwrap();
    }

    #[test]
    fn a_copy_past_the_end_of_an_allocation_or_across_two_registrations_is_refused_and_one_within_is_not() {
        let host = vec![0_u8; 2 * BYTES];
        let address = host.as_ptr().expose_provenance();
        let device = memory::device_alloc(BYTES).unwrap();
        let halves = [address, address + BYTES];
        let both_ways = |at| {
            let (host, device) = (Area::line(at, BYTES), Area::line(device, BYTES));
            let (down, up) = (CopyKind::cudaMemcpyHostToDevice, CopyKind::cudaMemcpyDeviceToHost);
            [copy(device, host, down, At::On(0)), copy(host, device, up, At::On(0))]
        };
        let refused = Err(Error::cudaErrorInvalidValue);
        let [from, to] = [address, device].map(|it| Area::line(it, 2 * BYTES));
        for to in [to, from] {
            assert_eq!(copy(to, from, CopyKind::cudaMemcpyHostToDevice, At::Now), refused);
        }
        halves.into_iter().for_each(|it| host_memory::host_register(it, BYTES).unwrap());
        assert_eq!(both_ways(address + BYTES / 2), [refused, refused]);
        assert_eq!(halves.map(both_ways), [[Ok(()); 2]; 2]);
        halves.into_iter().for_each(|it| host_memory::host_unregister(it).unwrap());
        memory::device_free(device).unwrap();
    }

    #[test]
    fn rows_are_copied_with_their_pitch() {
        let device = memory::device_alloc(BYTES).unwrap();
        let source: Vec<u8> = (0..16).collect();
        let from = Area::rows(source.as_ptr().expose_provenance(), 4, 2, 4);
        let to = Area::rows(device, 2, 2, 4);
        copy(to, from, CopyKind::cudaMemcpyHostToDevice, At::Now).unwrap();
        let answer = [0_u8; 8];
        let back = Area::line(answer.as_ptr().expose_provenance(), 8);
        let from = Area::line(device, 8);
        copy(back, from, CopyKind::cudaMemcpyDeviceToHost, At::Now).unwrap();
        assert_eq!(*std::hint::black_box(&answer), [0, 1, 4, 5, 8, 9, 12, 13]);
        memory::device_free(device).unwrap();
    }
}
