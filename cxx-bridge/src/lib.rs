//! Carries out what the engine decides.
//!
//! PyTorch's side is C++ (`cpp/`), which asks the functions of the one bridge below. They go to the process's [`handle::Handle`], which
//! pins and unpins through C++ again, outside its lock. `capi` is for Python and C programs. Without `torch` only Rust is here.
#![deny(unsafe_code)]

#[cfg(test)]
mod alone;
pub mod backing;
pub mod budget;
pub mod device;
pub mod guard;
pub mod handle;
mod in_place;
mod live;
mod lock;
pub mod log;
mod nameless;
#[doc(hidden)]
pub mod pending;
pub mod plan;
#[cfg(all(test, feature = "shuttle"))]
mod races;
pub mod record;
mod spare;
mod surroundings;
mod sync;
mod thread_number;

pub use pinbuddy_config as config;

#[cfg(feature = "torch")]
mod capi;
#[cfg(feature = "torch")]
mod cuda;
#[cfg(feature = "torch")]
mod process;
#[cfg(feature = "torch")]
use {
    device::{
        all::{device_counted, device_idle, device_reserved, device_reset_accumulated, device_reset_peaks},
        bridged::{device_note, device_uses},
        misfit::{device_dropped, device_record_close, device_unserved},
        moves::{device_moved, device_moved_since, device_moves},
        process::{
            device_absent, device_begins, device_borrowed, device_emptied, device_gave_back, device_longest,
            device_planned, device_record_catch_up, device_records, device_retired, device_threshold, device_traces,
            stream_plan,
        },
        stream::StreamPlan,
        tally::{Tally, device_passed, device_passes, device_tally},
    },
    guard::Guard,
    pending::{PendingQueues, engine_pending},
    process::{
        engine_arm_record, engine_cache, engine_close, engine_counters, engine_defer, engine_empty_cache,
        engine_enabled, engine_enter_child, engine_give_way, engine_guard, engine_guarded, engine_home_of,
        engine_homes, engine_is_planned, engine_made_child, engine_parts, engine_record_begin, engine_record_close,
        engine_refused_line, engine_release, engine_report_settings, engine_request, engine_request_beside,
        engine_request_planned, engine_reset_accumulated, engine_reset_peaks, engine_reused, engine_segment_bytes,
        engine_size_classes, engine_slot_at, engine_slots, engine_state_line, engine_storage_dies, engine_threshold,
    },
    record::writing::{
        record_clear, record_done, record_free, record_is_on, record_request, record_use, wait_begins, wait_ends,
    },
};

// Without `torch` only its types are here, which the Rust side has as its own.
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications)]
#[cxx::bridge(namespace = "pinbuddy")]
mod ffi {
    /// A block of the engine. Its fields are in another order than the engine's: fields that are neighbours in both would be copied
    /// as one, which stalls if they were just written one by one. `segment`: in a request its home.
    #[derive(Clone, Copy)]
    struct Grant {
        address: usize,
        bytes: usize,
        segment: u32,
        offset: usize,
    }

    /// A block, or a free part between two: `live` where a user has it, `pending` where it was freed and events are outstanding.
    struct Part {
        address: usize,
        bytes: usize,
        live: bool,
        pending: bool,
    }

    /// One gauge, in the sense of PyTorch's `Stat`.
    #[derive(Clone, Copy, Default)]
    struct Counter {
        current: i64,
        peak: i64,
        allocated: i64,
        freed: i64,
    }

    /// What PyTorch's allocator of device memory does, in the order of its own names.
    #[derive(Debug)]
    enum Noted {
        Allocated,
        Freed,
        Over,
        Took,
        Gave,
        Mapped,
        Unmapped,
        Shown,
        Failed,
    }

    /// The same with what it does it. `rounded`: as its settings round. `is_ordinary`: a run with a plan would ask the plan.
    struct Note {
        what: Noted,
        device: i8,
        stream: usize,
        address: usize,
        bytes: usize,
        rounded: usize,
        is_ordinary: bool,
        is_region: bool,
    }

    /// A block in planned device memory, or memory that is pinned in place.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Place {
        address: usize,
        bytes: usize,
    }

    /// What is done before a request for planned memory is asked again, in this order, each at most once, but for peaks behind regions:
    /// events asked, wanted regions taken, peaks read. Or the end: it has no place, the plan has panicked, it has one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Step {
        Begin,
        Settle,
        Reserve,
        Peaks,
        Unserved,
        Retire,
        Served,
    }

    /// A request for planned memory: its bytes, not 0, also as PyTorch rounds them, and from where on a block is not split there.
    /// `borrows`: it takes what is idle, whoever wants that next. `needs`: the slot whose region is taken for it; -1: none; -2: any place.
    #[derive(Clone, Copy, Debug)]
    struct Ask {
        bytes: usize,
        rounded: usize,
        oversize_from: usize,
        borrows: bool,
        needs: i64,
        after: Step,
    }

    /// How long a block or a region is to PyTorch's allocator, also as it was asked for, and whether that would not split it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Length {
        bytes: usize,
        requested: usize,
        is_oversize: bool,
    }

    /// A region that lies in no plan any more: its number, and where it begins.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct IdleRegion {
        region: usize,
        base: usize,
        held: Length,
    }

    /// The length of a block that is freed, 0 if there is none; whether other streams still use it; and whether regions may go with it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct FreedBlock {
        bytes: usize,
        waits: bool,
        is_last: bool,
    }

    /// Why regions are given back: the cache is emptied, memory is short, or the plan is not used any more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum GiveBack {
        Cleared,
        Short,
        ForGood,
    }

    /// A block of a stream's plan. Not `live`: other streams still use it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct StreamPart {
        address: usize,
        bytes: usize,
        requested: usize,
        live: bool,
    }

    /// What thread caches have, which the engine counts as live: bytes, and requests that they served since the last flush.
    struct Caches {
        bytes: u64,
        served: u64,
    }

    /// What the engine adds to PyTorch's host statistics.
    struct Counters {
        segments: Counter,
        pinned_bytes: Counter,
        active_blocks: Counter,
        active_bytes: Counter,
    }

    // None of these panics into C++: the handle turns a panic into a retired engine.
    #[cfg(feature = "torch")]
    extern "Rust" {
        fn engine_enabled() -> bool;
        fn engine_report_settings();
        fn engine_threshold() -> usize;
        fn engine_guarded() -> bool;
        fn engine_segment_bytes() -> usize;
        fn engine_homes() -> usize;
        fn engine_home_of(device: i32) -> u32;
        // These two write the grant in place: returning it would copy what was just written in parts, which stalls.
        fn engine_request(bytes: usize, grant: &mut Grant) -> bool;
        fn engine_request_beside(size: usize, cached: usize, alike: usize, to: &mut Grant) -> bool;
        fn engine_request_planned(bytes: usize, grant: &mut Grant) -> bool;
        fn engine_slots() -> usize;
        fn engine_size_classes() -> u32;
        fn engine_is_planned(grant: &Grant) -> bool;
        fn engine_slot_at(address: usize, slot: &mut u32) -> bool;
        fn engine_reused(blocks: usize, bytes: usize);
        fn engine_cache(grant: &Grant);
        fn engine_defer(grant: &Grant);
        fn engine_release(grant: &Grant);
        fn engine_empty_cache();
        fn engine_close();
        fn engine_enter_child() -> bool;
        fn engine_made_child();
        fn engine_give_way(bytes: usize) -> bool;
        fn engine_counters() -> Counters;
        fn engine_reset_peaks();
        fn engine_reset_accumulated();
        fn engine_parts() -> Vec<Part>;
        fn engine_state_line() -> String;
        fn engine_refused_line(bytes: usize) -> String;
        fn engine_storage_dies(pin: u64, owner: usize) -> bool;
        fn engine_arm_record();
        fn engine_record_begin();
        fn engine_record_close();

        // What is recorded.
        fn record_is_on() -> bool;
        fn record_request(bytes: usize, is_private: bool, allocation: &mut u64) -> bool;
        fn record_free(allocation: u64, pending: usize);
        fn record_done(allocation: u64);
        fn record_use(allocation: u64, stream: u64);
        fn record_clear();
        fn wait_begins(in_request: bool);
        fn wait_ends();

        fn device_note(note: &Note) -> bool;
        fn device_uses(device: i8, address: usize, stream: usize);

        // Mistakes of programs. All but the first look at memory, or write it.
        type Guard;

        fn engine_guard() -> &'static Guard;
        fn with_tail(self: &Guard, size: usize) -> usize;
        unsafe fn hand_out(self: &Guard, address: usize, bytes: usize, size: usize);
        unsafe fn freed(self: &Guard, address: usize, bytes: usize);
        unsafe fn idle(self: &Guard, address: usize, bytes: usize);
        unsafe fn unpins(self: &Guard, address: usize, bytes: usize);
        unsafe fn check_all(self: &Guard);

        // Freed blocks that wait for events.
        type PendingQueues;

        fn engine_pending() -> &'static PendingQueues;
        fn push(self: &PendingQueues, stream: u64, event: usize, block: usize);
        fn streams(self: &PendingQueues) -> usize;
        fn begin(
            self: &PendingQueues,
            left: &mut usize,
            stream: &mut u64,
            event: &mut usize,
            block: &mut usize,
        ) -> bool;
        fn end(self: &PendingQueues, stream: u64, over: bool);

        // Planned device memory.
        type StreamPlan;

        fn device_planned() -> bool;
        fn device_records() -> bool;
        fn device_traces() -> bool;
        fn device_begins();
        fn device_absent(why: String);
        fn device_borrowed(device: i8, bytes: usize);
        fn device_gave_back(device: i8, bytes: usize);
        fn device_dropped(device: i8, bytes: usize);
        fn device_retired(device: i8);
        fn device_unserved();
        fn device_record_catch_up();
        fn device_record_close();
        fn device_longest() -> usize;
        fn device_threshold() -> usize;
        fn device_emptied();
        fn device_counted(device: i8) -> [Counter; 10];
        fn device_reset_peaks(device: i8);
        fn device_reset_accumulated(device: i8);
        fn device_reserved(device: i8) -> bool;
        fn device_idle(device: i8) -> usize;
        fn stream_plan(device: i8, number: u32, stream: usize) -> &'static StreamPlan;
        fn device_moves() -> u64;
        fn device_moved();
        fn device_moved_since(before: u64) -> bool;

        fn regions(self: &StreamPlan) -> usize;
        fn region_bytes(self: &StreamPlan, region: usize) -> usize;
        fn ask(self: &StreamPlan, request: &mut Ask, place: &mut Place) -> Step;
        fn free_block(self: &StreamPlan, address: usize) -> FreedBlock;
        fn requested(self: &StreamPlan, address: usize) -> usize;
        fn completes(self: &StreamPlan, address: usize) -> usize;
        fn uses(self: &StreamPlan, address: usize, stream: u64) -> bool;
        fn next_to_record(self: &StreamPlan, address: &mut usize, streams: &mut Vec<u64>) -> bool;
        fn recorded(self: &StreamPlan, address: usize, events: &[usize]);
        fn pending(self: &StreamPlan) -> &PendingQueues;
        fn event_over(self: &StreamPlan, address: usize) -> usize;
        fn done(self: &StreamPlan, address: usize);
        fn begin_reserve(self: &StreamPlan) -> bool;
        fn lacks(self: &StreamPlan, region: usize) -> bool;
        fn reserved(self: &StreamPlan, region: usize, base: usize, held: usize, is_oversize: bool);
        fn region_refused(self: &StreamPlan, device: i8, why: &str);
        fn too_much_longer(self: &StreamPlan, device: i8, bytes: usize) -> bool;
        fn end_reserve(self: &StreamPlan, all: bool) -> Vec<IdleRegion>;
        fn give_back(self: &StreamPlan, why: GiveBack) -> Vec<IdleRegion>;
        fn take_dropped(self: &StreamPlan) -> Vec<IdleRegion>;
        fn gone(self: &StreamPlan, held: Length);
        fn is_dropped(self: &StreamPlan) -> bool;
        fn reset_peaks(self: &StreamPlan);
        fn shown(self: &StreamPlan) -> Vec<StreamPart>;

        // What a device's planned memory counts.
        type Tally;

        fn device_tally(device: i8) -> &'static Tally;
        fn device_passes(bytes: usize);
        fn device_passed() -> i64;
        fn is_due(self: &Tally, more: usize) -> bool;
        fn read(self: &Tally, passed: i64, slack: &[i64; 3]);
        fn had(self: &Tally, in_use: i64, reserved: i64);
        fn has_pool(self: &Tally);
        fn forgive(self: &Tally, tries: &[u64; 3]);
        fn forgiven(self: &Tally) -> [u64; 3];
    }

    #[cfg(feature = "torch")]
    unsafe extern "C++" {
        include!("device/device_allocator.h");
        fn install_device_allocator();
        fn device_initialised() -> bool;
        fn device_begun() -> bool;

        include!("host_allocator.h");
        include!("in_place.h");
        fn memory_of_storage(storage: usize, shared: bool, pin: &mut u64) -> Result<Place>;
        fn hold_storage(storage: usize, pin: u64, address: usize) -> Result<()>;
        fn let_go(owner: usize);
        fn finish_devices() -> Result<bool>;
        fn note_in_place(address: usize, bytes: usize) -> Result<()>;
        fn device_count() -> i32;
        fn current_device() -> i32;
        fn shares_host_memory() -> bool;
        fn has_context() -> bool;
        fn adopt_context() -> bool;
        fn pin_region(bytes: usize, device: i32) -> Result<usize>;
        fn unpin_region(address: usize, bytes: usize) -> Result<()>;
        fn initialise(device: i32) -> Result<()>;
        fn pci_address(device: i32) -> Result<String>;
        fn register_mapped(address: usize, bytes: usize, read_only: bool, device: i32) -> Result<()>;
        fn check_mapped(address: usize) -> Result<()>;
        fn unregister_mapped(address: usize) -> Result<bool>;
        fn segment_pinned(address: usize, bytes: usize, microseconds: i64) -> Result<()>;
        fn segment_goes(address: usize, bytes: usize) -> Result<()>;
        fn count_unpin(microseconds: i64);
        fn reap_completed() -> Result<()>;
        fn reap_behind() -> Result<()>;
        fn empty_host_cache() -> Result<()>;
        fn flush_cached();
        fn caches() -> Caches;
        fn record(on: bool);
        fn torch_version() -> String;
    }
}
