//! This process's planned device memory, for the C++ side. Thin: translates and forwards.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use pinbuddy_plan::file::device::Stream;
use pinbuddy_slots::Slots;
use serde_json::{Value, json};

pub(crate) use super::stream::StreamPlan;
use crate::ffi::{self, StreamCounts};
use crate::log::{self, Bytes};
use crate::plan::{self, Choice};
use crate::process::device_memory;

/// What the settings ask for.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    choice: Choice<pinbuddy_plan::file::device::DevicePlan>,
    recording: Option<super::Recording>,
    /// This is a child of a process that has used its devices: what is planned there is the parent's.
    is_child: AtomicBool,
}

impl DeviceMemory {
    pub(crate) fn new(choice: Choice<pinbuddy_plan::file::device::DevicePlan>) -> Self {
        let recording = match &choice {
            Choice::Record { path, run } => Some(super::Recording::new(path.clone(), run.clone())),
            _ => None,
        };
        Self {
            choice,
            recording,
            is_child: AtomicBool::new(false),
        }
    }

    pub(crate) fn enter_child(&self) {
        self.is_child.store(ffi::device_begun(), Ordering::Relaxed);
        if let Some(recording) = &self.recording {
            recording.enter_child();
        }
    }

    pub(crate) fn iteration(&self) {
        if self.is_child.load(Ordering::Relaxed) {
            return;
        }
        ffi::device_iteration();
        if let Some(recording) = &self.recording {
            recording.iteration();
        }
    }
}

/// How the plans of streams fare that have asked for memory; null where no plan is used.
pub(crate) fn device_report() -> Value {
    // Another thread of the parent may have held a lock.
    if !device_planned() || device_memory().is_child.load(Ordering::Relaxed) {
        return Value::Null;
    }
    let counts = ffi::device_counts();
    let stream = |it: &StreamCounts| {
        json!({
            "device": it.device,
            "stream": it.stream,
            "reserved_bytes": it.reserved,
            "dropped": it.dropped,
            "hits": it.hits,
            "misses": it.misses,
            "unplanned": it.unplanned,
            "resyncs": it.resyncs,
            "borrowed": it.borrowed,
        })
    };
    counts.iter().map(stream).collect()
}

/// Whether requests have planned places.
pub(crate) fn device_planned() -> bool {
    matches!(&device_memory().choice, Choice::Use(plan) if !plan.plans.is_empty())
}

/// Whether the run is recorded.
pub(crate) fn device_records() -> bool {
    device_memory().recording.is_some()
}

/// Nothing can stand in front of PyTorch's allocator.
pub(crate) fn device_absent(why: String) {
    log::warn(|| {
        format!(
            "BUDDY_DEVICE_PLAN has no effect: it needs PyTorch's own device allocator, and {why}"
        )
    });
}

/// The regions of a stream could not be had.
pub(crate) fn device_refused(device: i8, why: &str) {
    let why = why.lines().next().unwrap_or_default();
    log::warn(|| format!("the plan for device {device} is not used: {why}"));
}

/// Memory is short: plans are not used any more.
pub(crate) fn device_dropped(device: i8, bytes: usize) {
    let bytes = Bytes(bytes as u64);
    log::warn(|| {
        format!(
            "device {device} has no room for {bytes}: its plan is dropped, and what is idle of it given back"
        )
    });
}

pub(crate) fn device_allocated(device: i8, stream: usize, address: usize, bytes: usize) {
    on_record(|it| it.allocated(device as u32, stream, address, bytes));
}

pub(crate) fn device_freed(device: i8, stream: usize, address: usize) {
    on_record(|it| it.freed(device as u32, stream, address));
}

pub(crate) fn device_record_close() {
    on_record(super::Recording::close);
}

/// A panic must not reach C++; a record that it leaves half done is still one.
fn on_record(act: impl FnOnce(&super::Recording)) {
    if let Some(recording) = &device_memory().recording {
        let _ = catch_unwind(AssertUnwindSafe(|| act(recording)));
    }
}

/// The plan of a device's stream, which has none if nothing is planned for it.
pub(crate) fn stream_plan(device: i8, number: u32) -> Box<StreamPlan> {
    let slots = || -> Option<Slots> {
        let Choice::Use(plans) = &device_memory().choice else {
            return None;
        };
        let stream = Stream {
            device: u32::try_from(device).ok()?,
            number,
        };
        let (_, plan) = plans.plans.iter().find(|(it, _)| *it == stream)?;
        Slots::new(&plan::layout(plan, plan.regions.len())).ok()
    };
    Box::new(StreamPlan::new(catch_unwind(slots).ok().flatten()))
}
