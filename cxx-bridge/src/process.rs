//! This process's only engine, for the C++ side.
//!
//! Thin: each function finds the process's handle and translates between its types and the bridge's. Bad
//! settings are reported when the library is loaded, and not only when memory is pinned.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::OnceLock;

use pinbuddy_core::{Cached, Home, SegmentId, Stats};
use serde_json::{Value, json};

use crate::backing::{Chain, Device};
use crate::budget::Account;
use crate::config::Config;
use crate::cuda::Cuda;
use crate::device::{self, process::DeviceMemory, process::device_report, process::traces_both};
use crate::ffi::{self, Grant, Part};
use crate::guard::Guard;
use crate::handle::{self, Handle};
use crate::live::Live;
use crate::log;
use crate::plan::{self, Choice, Chosen};
use crate::record::writing::{Rings, record_iteration};
use crate::record::{self, FileSink, Recorder, Source};
use crate::surroundings;
use pinbuddy_events::trace::Memory;
use pinbuddy_live::NodeUse;
use pinbuddy_machine::{Files, Limits};

mod in_place;
mod lane;

pub(crate) use in_place::{engine_counters, engine_storage_dies, in_place};
use lane::lane_thread;

/// Memory is about to be pinned: other programs see it from now on, where the settings say so.
pub(crate) fn show(device: Device) {
    let process = process();
    process.live.pins(device, || process.handle.shown(ffi::caches));
}

struct Process {
    handle: Handle<Chain<Cuda>>,
    /// What becomes of `BUDDY_PLAN`.
    choice: Choice,
    /// The file that `BUDDY_PLAN=auto` chose.
    chosen: Option<Chosen>,
    /// What is recorded for a plan of pinned memory.
    to_record: Option<plan::ToRecord>,
    recorder: Recorder<Rings>,
    device_memory: DeviceMemory,
    live: Live,
    guard: Guard,
    warnings: Vec<String>,
}

/// Made when the library is loaded, before there can be a second thread or a fork.
fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let (mut config, mut warnings) = Config::from_environment(&surroundings::here());
        if config.max_mb.value.is_some() {
            let whole = Limits::whole(&Files::below(Path::new("/")));
            warnings.extend(whole.and_then(|it| config.compare_with(it)));
        }
        log::set_level(config.log.value);
        let memory = Chain::new(&config, Cuda);
        let capacity = Box::new(Account::new("/".into(), ffi::shares_host_memory));
        let torch = ffi::torch_version();
        let (choice, place, warning) = plan::choose(&config, &torch);
        warnings.extend(warning);
        let chosen = Chosen::of(&choice, place.as_ref());
        config.plan_file = place.as_ref().map(|it| it.path.clone());
        let device_memory = DeviceMemory::default();
        let name = config.device_plan.value.as_deref();
        let (device_choice, device_place, warning) = device::choose(name, &config, &torch);
        warnings.extend(warning);
        let trace = config.device_trace.value.clone();
        device_memory.ask(device_choice, device_place.as_ref(), trace);
        let applied = match &choice {
            Choice::Use(plan) => plan::apply(plan, &mut config),
            _ => None,
        };
        let to_record = plan::to_record(&choice, &config, place.as_ref());
        let live = Live::new(config.live.value && !config.disable.value);
        let handle = Handle::new(config, applied, memory, capacity, Box::new(Cuda));
        if to_record.is_some() {
            handle.leave_misfit_to_the_recording();
        }
        Process {
            handle,
            choice,
            chosen,
            to_record,
            recorder: Recorder::new(RINGS),
            device_memory,
            live,
            guard: Guard::default(),
            warnings,
        }
    })
}

/// This process's engine.
pub(crate) fn handle() -> &'static Handle<Chain<Cuda>> {
    &process().handle
}

/// What the settings ask of device memory.
pub(crate) fn device_memory() -> &'static DeviceMemory {
    &process().device_memory
}

/// This process's recorder.
pub(crate) fn recorder() -> &'static Recorder<Rings> {
    &process().recorder
}

/// This process's engine after all cached blocks are released to it: for callers that read its state.
pub(crate) fn flushed_handle() -> &'static Handle<Chain<Cuda>> {
    ffi::flush_cached();
    handle()
}

const RINGS: Rings = Rings { switch: ffi::record };

/// Requests are recorded from the first one on, if the settings ask for that.
pub(crate) fn engine_arm_record() {
    if handle().config().trace.value.is_some() || process().to_record.is_some() {
        RINGS.record(1);
    }
}

/// The first request is being recorded.
pub(crate) fn engine_record_begin() {
    // A panic must not reach C++. What it leaves half done is not used.
    let begin = || {
        let sinks = || {
            let config = handle().config();
            let sink = record::pinned_sink(config, &ffi::torch_version(), traces_both(), nodes);
            let mut sinks: Vec<_> = sink.into_iter().collect();
            if let Some(to_record) = &process().to_record {
                sinks.push(Box::new(plan::Recording::new(to_record.clone())));
            }
            sinks
        };
        process().recorder.begin(sinks);
    };
    if catch_unwind(begin).is_err() {
        RINGS.record(0);
    }
}

/// Records requests to a file from now on, in addition to what the settings ask for.
pub(crate) fn start_trace(name: &str) -> Result<(), String> {
    if !handle().is_on() {
        return Err("the engine is off, so requests are not seen".to_owned());
    }
    record::no_plan_in(handle().config(), name)?;
    engine_record_begin();
    process().recorder.start(|| {
        let header = record::header(handle().config(), &ffi::torch_version(), Memory::Pinned);
        let file = FileSink::create(name, &header)?;
        Ok(Box::new(file.with_nodes(nodes)))
    })
}

fn nodes() -> Option<Vec<NodeUse>> {
    handle().nodes()
}

/// Ends the trace being recorded; true if there was one, and it is written.
pub(crate) fn stop_trace() -> bool {
    process().recorder.stop()
}

/// The program says that CUDA is up: from now on a plan's memory may be pinned.
pub(crate) fn cuda_is_up() {
    handle().warm_up_early(ffi::adopt_context);
}

/// Pins what `BUDDY_BLOCK_COUNT` asks for, for a device that the program has chosen: by a context, or since there is no other.
/// Otherwise once it has chosen one. False where nothing can be pinned.
pub(crate) fn warm_up(wait: bool) -> bool {
    if ffi::device_count() <= 1 || ffi::has_context() {
        return handle().warm_up(wait);
    }
    if wait && handle().is_on() {
        log::warn(|| {
            "warm_up(wait=True) does not wait: the program has used none of several GPUs, and blocks are pinned once it has. \
             Call it after the first use of a GPU, or as warm_up(wait=True, device=...)"
                .to_owned()
        });
    }
    handle().warm_up_in_context(false, ffi::adopt_context)
}

/// The program says that an iteration is over.
pub(crate) fn iteration() {
    record_iteration();
    if handle().slots() > 0 {
        handle().iteration(lane_thread());
    }
    device_memory().iteration();
}

/// The engine's report, and that of planned device memory.
pub(crate) fn report() -> Value {
    let mut report = flushed_handle().report();
    if report["state"] != "forked" {
        report["device"] = device_report();
        let Stats { segments, pinned_bytes, .. } = in_place().stats(|_| {});
        report["in_place"] = json!({ "pins": segments.current, "bytes": pinned_bytes.current });
        report["auto"] = Chosen::show(process().chosen.as_ref(), device_memory().chosen());
    }
    report
}

/// The process ends: what is recorded is written.
pub(crate) fn engine_record_close() {
    let _ = catch_unwind(|| process().recorder.close());
}

/// Warns about bad settings. Called once, when the library has been loaded.
pub(crate) fn engine_report_settings() {
    for warning in &process().warnings {
        log::warn(|| warning.clone());
    }
    Chosen::say(process().chosen.as_ref(), device_memory().chosen());
}

pub(crate) fn engine_enabled() -> bool {
    handle().is_on()
}

pub(crate) fn engine_threshold() -> usize {
    handle().config().threshold_bytes()
}

pub(crate) fn engine_guarded() -> bool {
    handle().config().guard.value
}

pub(crate) fn engine_guard() -> &'static Guard {
    &process().guard
}

pub(crate) fn engine_segment_bytes() -> usize {
    handle().config().block_bytes()
}

pub(crate) fn engine_request(bytes: usize, grant: &mut Grant) -> bool {
    granted(handle().request_at(bytes, Home(grant.segment as u8)), grant)
}

pub(crate) fn engine_request_beside(bytes: usize, cached: usize, alike: usize, grant: &mut Grant) -> bool {
    let cached = Cached { bytes: cached, alike };
    let home = Home(grant.segment as u8);
    granted(handle().request_beside(bytes, home, cached), grant)
}

/// Whether the memory is a plan's.
pub(crate) fn engine_is_planned(grant: &Grant) -> bool {
    SegmentId::from_u32(grant.segment).number_outside().is_some()
}

/// How many size classes a plan has for each doubling of small requests; 0 if they are not rounded.
pub(crate) fn engine_size_classes() -> u32 {
    match &process().choice {
        Choice::Use(plan) => plan.classes,
        _ => 0,
    }
}

pub(crate) fn engine_slots() -> usize {
    handle().slots()
}

pub(crate) fn engine_request_planned(bytes: usize, grant: &mut Grant) -> bool {
    handle().place_planned(lane_thread(), bytes, |it| give(it, grant))
}

pub(crate) fn engine_slot_at(address: usize, slot: &mut u32) -> bool {
    let found = handle().slot_at(address);
    *slot = found.unwrap_or(*slot);
    found.is_some()
}

pub(crate) fn engine_reused(blocks: usize, bytes: usize) {
    handle().reused(blocks, bytes);
}

fn granted(from: Option<handle::Grant>, to: &mut Grant) -> bool {
    from.map(|it| give(it, to)).is_some()
}

#[inline]
fn give(from: handle::Grant, to: &mut Grant) {
    let handle::Grant { address, block } = from;
    to.address = address;
    to.offset = block.offset;
    to.bytes = block.bytes;
    to.segment = block.segment.to_u32();
}

pub(crate) fn engine_cache(grant: &Grant) {
    handle().cache(handle::block(grant.segment, grant.offset, grant.bytes));
}

pub(crate) fn engine_defer(grant: &Grant) {
    handle().defer(handle::block(grant.segment, grant.offset, grant.bytes));
}

pub(crate) fn engine_release(grant: &Grant) {
    handle().release(handle::block(grant.segment, grant.offset, grant.bytes));
}

pub(crate) fn engine_empty_cache() {
    handle().empty_cache();
}

pub(crate) fn engine_close() {
    process().live.close();
    let _ = catch_unwind(|| in_place().close());
    handle().close();
}

pub(crate) fn engine_enter_child() -> bool {
    process().recorder.enter_child();
    process().live.enter_child();
    device_memory().enter_child();
    handle().enter_child()
}

pub(crate) fn engine_made_child() {
    handle().made_child(ffi::flush_cached);
}

/// How many homes memory can have, a power of two: asked once.
pub(crate) fn engine_homes() -> usize {
    handle().homes()
}

/// The home of requests while this is the current device. It stays the same.
pub(crate) fn engine_home_of(device: i32) -> u32 {
    // A panic must not reach C++.
    catch_unwind(|| handle().home_of(Device(device)).0.into()).unwrap_or_default()
}

pub(crate) fn engine_give_way(bytes: usize) -> bool {
    handle().give_way(bytes)
}

pub(crate) fn engine_state_line() -> String {
    handle().state_line()
}

pub(crate) fn engine_refused_line(bytes: usize) -> String {
    // A panic must not reach C++, nor take the place of the error.
    catch_unwind(|| handle().refused_line(bytes)).unwrap_or_default()
}

pub(crate) fn engine_parts() -> Vec<Part> {
    handle().parts()
}

pub(crate) fn engine_reset_peaks() {
    handle().reset_peaks();
    in_place().stats(Stats::reset_peaks);
}

pub(crate) fn engine_reset_accumulated() {
    handle().reset_accumulated();
    in_place().stats(Stats::reset_accumulated);
}
