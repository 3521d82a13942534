//! A stream's plan, and what PyTorch's allocator says that it does, as the bridge has them. Thin: translates.

use pinbuddy_plan::device::SHARED;

use super::Recording;
use super::process::{device_refused, device_trace, on_record};
use super::stream::StreamPlan;
use crate::ffi::{Ask, FreedBlock, Note, Noted, Place, Step};

impl StreamPlan {
    pub(crate) fn ask(&self, request: &mut Ask, place: &mut Place) -> Step {
        let after = request.after;
        let served = if request.borrows { self.borrow(request, after) } else { self.request(request, after) };
        served.map_or_else(
            |step| step,
            |it| {
                *place = it;
                Step::Served
            },
        )
    }

    pub(crate) fn free_block(&self, address: usize) -> FreedBlock {
        self.free(address).unwrap_or_default()
    }

    pub(crate) fn next_to_record(&self, address: &mut usize, streams: &mut Vec<u64>) -> bool {
        let next = self.to_record();
        next.map(|it| (*address, *streams) = it).is_some()
    }

    pub(crate) fn region_refused(&self, device: i8, why: &str) {
        device_refused(device, self.refused(), why);
    }

    /// Whether `roundup_power2_divisions` makes regions so many bytes longer, which nobody can use, that the plan is not used.
    pub(crate) fn too_much_longer(&self, device: i8, bytes: usize) -> bool {
        let is_too_much = bytes as u64 > SHARED;
        if is_too_much {
            let longer = bytes >> 20;
            self.region_refused(
                device,
                &format!(
                    "roundup_power2_divisions makes its regions {longer} MiB longer; plan and run without it, a plan rounds nothing up"
                ),
            );
        }
        is_too_much
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
            let record = |it: &Recording| it.allocated(device, note.stream, address, note.bytes, note.rounded);
            return note.is_ordinary && on_record(record).unwrap_or(false);
        }
        Noted::Freed => {
            trace.into_iter().for_each(|it| it.free(address));
            let _ = on_record(|it| it.freed(device, address));
        }
        Noted::Over => {
            trace.into_iter().for_each(|it| it.done(address));
            let _ = on_record(|it| it.over(device, address));
        }
        Noted::Failed => {
            let _ = on_record(Recording::failed);
        }
        Noted::Took | Noted::Gave | Noted::Mapped | Noted::Unmapped => {
            if note.what == Noted::Mapped {
                let _ = on_record(Recording::expandable);
            }
            let is_gone = matches!(note.what, Noted::Gave | Noted::Unmapped);
            let _ = on_record(|it| it.segment(device, note.bytes, is_gone));
            trace.into_iter().for_each(|it| it.segment(note.bytes, is_gone));
        }
        _ => {}
    }
    false
}

/// A stream uses the block at this address: for the same.
pub(crate) fn device_uses(device: i8, address: usize, stream: usize) {
    if let Some(trace) = device_trace(device) {
        trace.uses(address, stream);
    }
    let _ = on_record(|it| it.used(device as u32, stream, address));
}
