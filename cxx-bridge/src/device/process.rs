//! This process's planned and recorded device memory, for the C++ side. Thin: translates and forwards.
//!
//! What is asked for is decided once: by the variables when the library is loaded, or by `pinbuddy.device.enable` before
//! CUDA is initialised.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pinbuddy_plan::file::device::{DevicePlan, Stream};
use pinbuddy_slots::Slots;
use serde_json::{Value, json};

use super::all::{self, all};
use super::stream::StreamPlan;
use crate::ffi;
use crate::log::{self, Bytes};
use crate::plan::{Choice, Chosen, Place};
use crate::process::{device_memory, engine_record_begin, handle, recorder};
use crate::record::{self, device::DeviceTrace};

/// What is asked of device memory.
#[derive(Debug)]
struct Asked {
    choice: Choice<DevicePlan>,
    recording: Option<super::Recording>,
    /// The name of the trace's file.
    trace: Option<String>,
    /// Where the plan's file is, and what `auto` chose.
    place: Option<Place>,
    chosen: Option<Chosen>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct DeviceMemory {
    asked: OnceLock<Asked>,
    /// This is a child of a process that has used its devices: what is planned there is the parent's.
    is_child: AtomicBool,
}

impl DeviceMemory {
    /// Decides, unless nothing is asked for. False if it was decided before.
    pub(crate) fn ask(&self, choice: Choice<DevicePlan>, place: Option<&Place>, trace: Option<String>) -> bool {
        let chosen = Chosen::of(&choice, place);
        let recording = match &choice {
            Choice::Record(recorded) => Some(super::Recording::new(recorded.clone())),
            Choice::Nothing if trace.is_none() && chosen.is_none() => return true,
            _ => None,
        };
        let asked = Asked { choice, recording, trace, place: place.cloned(), chosen };
        self.asked.set(asked).is_ok()
    }

    /// The name of the trace's file.
    pub(crate) fn trace(&self) -> Option<&str> {
        self.asked.get()?.trace.as_deref()
    }

    /// The file that `auto` chose.
    pub(crate) fn chosen(&self) -> Option<&Chosen> {
        self.asked.get()?.chosen.as_ref()
    }

    fn choice(&self) -> &Choice<DevicePlan> {
        self.asked.get().map_or(&Choice::Nothing, |it| &it.choice)
    }

    fn recording(&self) -> Option<&super::Recording> {
        self.asked.get()?.recording.as_ref()
    }

    pub(crate) fn enter_child(&self) {
        self.is_child.store(ffi::device_begun(), Ordering::Relaxed);
        if let Some(recording) = self.recording() {
            recording.enter_child();
        }
    }

    /// Why nothing can be asked for any more, if so.
    pub(crate) fn refusal(&self) -> Option<String> {
        let to_do = "call pinbuddy.device.enable before the first tensor on a GPU, or set BUDDY_DEVICE_PLAN and \
                     BUDDY_DEVICE_TRACE before the program starts";
        if self.asked.get().is_some() {
            return Some(ASKED_ALREADY.to_owned());
        }
        ffi::device_initialised().then(|| format!("expected CUDA not to be initialised yet, found that it is: {to_do}"))
    }

    pub(crate) fn iteration(&self) {
        if self.is_child.load(Ordering::Relaxed) {
            return;
        }
        all().iter().for_each(|(_, plan)| plan.iteration());
        if let Some(recording) = self.recording() {
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
    let stream = |(stream, plan): (Stream, &StreamPlan)| {
        let (counts, given_back) = plan.counts();
        json!({
            "device": stream.device,
            "stream": stream.number,
            "reserved_bytes": plan.reserved_bytes(),
            "dropped": plan.is_dropped(),
            "given_back": given_back,
            "hits": counts.hits,
            "misses": counts.misses,
            "unplanned": counts.unplanned,
            "resyncs": counts.resyncs,
            "borrowed": counts.borrowed,
        })
    };
    planned().map(stream).collect()
}

/// The plan that this process uses, and where its file is; none in a child, whose parent's it is.
pub(super) fn used_here() -> Option<(&'static DevicePlan, Option<&'static Place>)> {
    let memory = device_memory();
    let asked = memory.asked.get()?;
    match &asked.choice {
        Choice::Use(plan) if !memory.is_child.load(Ordering::Relaxed) => Some((plan, asked.place.as_ref())),
        _ => None,
    }
}

/// The streams that a plan is there for.
pub(super) fn planned() -> impl Iterator<Item = (Stream, &'static StreamPlan)> {
    let mut all = all();
    all.sort_by_key(|(it, _)| (it.device, it.number));
    all.into_iter().filter(|(_, plan)| plan.regions() > 0)
}

/// Whether requests have planned places.
pub(crate) fn device_planned() -> bool {
    matches!(device_memory().choice(), Choice::Use(_))
}

/// Requests from so many bytes on are planned; none where no plan is used.
pub(crate) fn device_threshold() -> usize {
    let Choice::Use(plan) = device_memory().choice() else {
        return usize::MAX;
    };
    plan.threshold() as usize
}

/// The program has emptied the cache.
pub(crate) fn device_emptied() {
    let _ = on_record(super::Recording::emptied);
}

/// Requests that are longer have no place: the longest region of all plans, once each stream that has a plan has its number, as far
/// as its device is there. Until then a request has to be asked about, since that numbers its stream.
pub(crate) fn device_longest() -> usize {
    let Choice::Use(plan) = device_memory().choice() else {
        return 0;
    };
    let known = all();
    let devices = ffi::device_count() as u32;
    let mut here = plan.plans.iter().filter(|(it, _)| it.device < devices);
    if !here.all(|(it, _)| known.iter().any(|(known, _)| known == it)) {
        return usize::MAX;
    }
    let regions = plan.plans.iter().flat_map(|(_, plan)| &plan.regions);
    regions.max().map_or(0, |&bytes| bytes as usize)
}

/// Whether the run is recorded.
pub(crate) fn device_records() -> bool {
    device_memory().recording().is_some()
}

/// Whether a trace is recorded.
pub(crate) fn device_traces() -> bool {
    device_memory().trace().is_some()
}

/// The trace of a device, if one is recorded.
pub(super) fn device_trace(device: i8) -> Option<&'static DeviceTrace> {
    let is_device = device >= 0 && device_traces();
    is_device.then(|| record::device::device_trace(device))
}

/// The device allocator is initialised: the process uses its plan, and what it does is traced from now on.
pub(crate) fn device_begins() {
    // A panic must not reach C++.
    let _ = catch_unwind(|| {
        if let Some((_, Some(place))) = used_here() {
            place.begin();
        }
    });
    let _ = catch_unwind(begin_trace);
}

/// Nothing can stand in front of PyTorch's allocator.
pub(crate) fn device_absent(why: String) {
    log::warn(|| {
        format!(
            "BUDDY_DEVICE_PLAN and BUDDY_DEVICE_TRACE have no effect: they need PyTorch's own device allocator, and {why}"
        )
    });
}

/// A region of a stream could not be had. Its plan is not used for that, or goes on with the regions that it has.
pub(crate) fn device_refused(device: i8, is_dropped: bool, why: &str) {
    let why = why.lines().next().unwrap_or_default();
    if is_dropped {
        log::warn(|| format!("the plan for device {device} is not used: {why}"));
    } else {
        log::info(|| format!("device {device} has no room for a region of its plan: {why}"));
    }
}

/// Memory is short: what is idle of plans was given back, and they stay in force.
pub(crate) fn device_gave_back(device: i8, bytes: usize) {
    let bytes = Bytes(bytes as u64);
    log::info(|| format!("device {device} has no room for {bytes}: what is idle of its plan is given back"));
}

/// Memory is short: a request got what was idle in a region, whoever wants that.
pub(crate) fn device_borrowed(device: i8, bytes: usize) {
    let bytes = Bytes(bytes as u64);
    log::info(|| format!("device {device} has no room for {bytes}: a part of its plan that is idle serves"));
}

/// A stream's plan panicked: it is not used any more.
pub(crate) fn device_retired(device: i8) {
    log::warn(|| {
        format!(
            "a stream's plan for device {device} is retired: it panicked. PyTorch's own allocator serves the stream from now on"
        )
    });
}

/// Under no lock: takes into the record what was noted, and has a plan made where one is due.
pub(crate) fn device_record_catch_up() {
    let _ = on_record(super::Recording::catch_up);
}

/// Whether pinned and device memory are traced to the same file.
pub(crate) fn traces_both() -> bool {
    let name = &handle().config().trace.value;
    name.is_some() && name.as_deref() == device_memory().trace()
}

/// Records requests for device memory, if that is asked for.
fn begin_trace() {
    if traces_both() {
        engine_record_begin();
    } else if let Some(name) = device_memory().trace()
        && let Some(sink) = record::device_sink(handle().config(), &ffi::torch_version(), name)
    {
        recorder().also(sink);
    }
}

const ASKED_ALREADY: &str =
    "expected it once in a process, found that a plan or a trace of device memory is in force already";

/// Plans and traces device memory from now on, as the variables do from the start.
pub(crate) fn enable(plan: Option<&str>, trace: Option<&str>) -> Result<(), String> {
    if !handle().is_on() {
        return Err(
            "expected an engine that is on, found that it is off: BUDDY_DISABLE=1, or a child of a fork".to_owned()
        );
    }
    if let Some(why) = device_memory().refusal() {
        return Err(why);
    }
    let (choice, place, warning) = super::choose(plan, handle().config(), &ffi::torch_version());
    if let Some(warning) = warning {
        log::warn(|| warning);
    }
    if !device_memory().ask(choice, place.as_ref(), trace.map(str::to_owned)) {
        return Err(ASKED_ALREADY.to_owned());
    }
    ffi::install_device_allocator();
    Ok(())
}

/// A panic must not reach C++; a record that it leaves half done is still one.
pub(super) fn on_record<T>(act: impl FnOnce(&super::Recording) -> T) -> Option<T> {
    let recording = device_memory().recording()?;
    catch_unwind(AssertUnwindSafe(|| act(recording))).ok()
}

/// The plan of a device's stream, which has none if nothing is planned for it. `name`: CUDA's name of the stream.
pub(crate) fn stream_plan(device: i8, number: u32, name: usize) -> &'static StreamPlan {
    let stream = Stream { device: device as u32, number };
    let slots = || -> Option<Slots> {
        let Choice::Use(plans) = device_memory().choice() else {
            return None;
        };
        let (_, plan) = plans.plans.iter().find(|(it, _)| *it == stream)?;
        Slots::learning(&plan.layout(plan.regions.len())).ok()
    };
    let plan = StreamPlan::new(catch_unwind(slots).ok().flatten(), device);
    let plan = match device_trace(device) {
        Some(trace) => plan.traced(trace, name),
        None => plan,
    };
    all::add(stream, plan)
}
