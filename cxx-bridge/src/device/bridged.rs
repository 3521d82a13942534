//! A stream's plan, and what PyTorch's allocator says that it does, as the bridge has them. Thin: translates.

use super::Recording;
use super::process::{device_refused, device_trace, on_record};
use super::stream::{Ask, GiveBack, Idle, Step, StreamPlan};
use super::tally::Length;
use crate::ffi::{self, FreedBlock, IdleRegion, Note, Noted, Place, StreamPart};

// The steps of both are the same.
const _: () = assert!(Step::Begin as u8 == ffi::Step::Begin.repr);
const _: () = assert!(Step::Retire as u8 == ffi::Step::Retire.repr);

impl From<Idle> for IdleRegion {
    fn from(idle: Idle) -> Self {
        Self {
            region: idle.region,
            base: idle.base,
            bytes: idle.held.requested,
            held: idle.held.bytes,
            is_oversize: idle.held.is_oversize,
        }
    }
}

impl StreamPlan {
    pub(crate) fn ask(&self, request: &mut ffi::Ask, place: &mut Place) -> ffi::Step {
        let mut ask = Ask {
            bytes: request.bytes,
            rounded: request.rounded,
            oversize_from: request.oversize_from,
            needs: u32::try_from(request.needs).ok(),
        };
        let after = match request.after {
            ffi::Step::Begin => Step::Begin,
            ffi::Step::Settle => Step::Settle,
            ffi::Step::Reserve => Step::Reserve,
            _ => Step::Peaks,
        };
        let served = if request.borrows {
            self.borrow(&ask, after)
        } else {
            self.request(&mut ask, after)
        };
        request.needs = ask.needs.map_or(-1, i64::from);
        match served {
            Ok(given) => {
                (place.address, place.bytes) = (given.address, given.bytes);
                ffi::Step::Served
            }
            Err(step) => ffi::Step { repr: step as u8 },
        }
    }

    pub(crate) fn free_block(&self, address: usize) -> FreedBlock {
        let freed = self.free(address).unwrap_or_default();
        FreedBlock {
            bytes: freed.bytes,
            waits: freed.waits,
            is_last: freed.is_last,
        }
    }

    pub(crate) fn next_to_record(&self, address: &mut usize, streams: &mut Vec<u64>) -> bool {
        let next = self.to_record();
        next.map(|it| (*address, *streams) = it).is_some()
    }

    pub(crate) fn region_refused(&self, device: i8, why: &str) {
        device_refused(device, self.refused(), why);
    }

    pub(crate) fn reserve_ends(&self, all: bool) -> Vec<IdleRegion> {
        translated(self.end_reserve(all))
    }

    pub(crate) fn take_back(&self, why: ffi::GiveBack) -> Vec<IdleRegion> {
        translated(self.give_back(match why {
            ffi::GiveBack::Cleared => GiveBack::Cleared,
            ffi::GiveBack::Short => GiveBack::Short,
            _ => GiveBack::ForGood,
        }))
    }

    pub(crate) fn take_rest(&self) -> Vec<IdleRegion> {
        translated(self.take_dropped())
    }

    pub(crate) fn region_went(&self, region: &IdleRegion) {
        self.gone(Length {
            bytes: region.held,
            requested: region.bytes,
            is_oversize: region.is_oversize,
        });
    }

    pub(crate) fn parts(&self) -> Vec<StreamPart> {
        let part = |it: super::stream::Shown| StreamPart {
            address: it.address,
            bytes: it.bytes,
            requested: it.requested,
            live: it.live,
        };
        self.shown().into_iter().map(part).collect()
    }
}

/// For the trace and the recording. Called under the allocator's lock; true if [`Recording::catch_up`] is to be called under none.
pub(crate) fn device_note(note: &Note) -> bool {
    let trace = device_trace(note.device);
    let (device, address) = (note.device as u32, note.address);
    match note.what {
        Noted::Allocated => {
            if let Some(trace) = trace.filter(|_| !note.is_region) {
                trace.request(address, note.rounded, note.stream, !note.is_ordinary);
            }
            let record = |it: &Recording| {
                it.allocated(device, note.stream, address, note.bytes, note.rounded)
            };
            return note.is_ordinary && on_record(record).unwrap_or(false);
        }
        Noted::Freed => trace.into_iter().for_each(|it| it.free(address)),
        Noted::Over => {
            trace.into_iter().for_each(|it| it.done(address));
            let _ = on_record(|it| it.freed(device, address));
        }
        Noted::Failed => {
            let _ = on_record(Recording::failed);
        }
        Noted::Took | Noted::Gave | Noted::Mapped | Noted::Unmapped => {
            if note.what == Noted::Mapped {
                let _ = on_record(Recording::expandable);
            }
            let is_gone = matches!(note.what, Noted::Gave | Noted::Unmapped);
            trace
                .into_iter()
                .for_each(|it| it.segment(note.bytes, is_gone));
        }
        _ => {}
    }
    false
}

/// Another stream uses the block at this address, for the trace.
pub(crate) fn device_uses(device: i8, address: usize, stream: usize) {
    if let Some(trace) = device_trace(device) {
        trace.uses(address, stream);
    }
}

fn translated(idle: Vec<Idle>) -> Vec<IdleRegion> {
    idle.into_iter().map(IdleRegion::from).collect()
}
