//! A process with little memory is recorded to its end.

use pinbuddy_events::{Event, Op};
use pinbuddy_plan::file::MadeFor;

use super::super::ToRecord;
use super::super::record::{MOST_EVENTS, Recording};
use crate::alone::{self, limit, used};
use crate::record::Sink;

/// In the child: where the plan is written to.
const VARIABLE: &str = "PINBUDDY_TEST_PLAN";

#[test]
fn a_process_with_little_memory_is_recorded_to_its_end_and_has_no_plan() {
    has_no_plan("a_process_with_little_memory_is_recorded_to_its_end_and_has_no_plan", |it| {
        recorded(Recording::new(it));
    });
}

#[test]
fn so_is_its_device_memory() {
    has_no_plan("so_is_its_device_memory", |it| device_recorded(it, true));
}

#[test]
fn so_is_what_the_allocator_notes() {
    has_no_plan("so_is_what_the_allocator_notes", |it| {
        device_recorded(it, false);
    });
}

/// 80 MiB of address space are room for a plan of the first requests, but for no thread beside it: where one was started, it had no
/// heap of its own, each small list of it took a page, and it ended the process.
#[test]
fn a_plan_is_made_in_a_thread_only_where_its_heap_has_room() {
    let test = "a_plan_is_made_in_a_thread_only_where_its_heap_has_room";
    has_no_plan_below(test, "RLIMIT_AS (ulimit -v)", |it| {
        let recording = crate::device::Recording::new(it);
        limit(libc::RLIMIT_AS, used("VmSize:") + (80 << 20));
        for address in 0..300_000 {
            if recording.allocated(0, 0, address, 1 << 20, 1 << 20) {
                recording.catch_up();
            }
            if let Some(before) = address.checked_sub(30) {
                recording.freed(0, before);
                recording.over(0, before);
            }
            // A program does more than to ask.
            if address % 100 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(500));
            }
        }
        recording.close();
    });
}

/// The test of this name runs `recorded` in a child, which ends well, and without a plan.
fn has_no_plan(test: &str, recorded: fn(ToRecord)) {
    has_no_plan_below(test, "RLIMIT_DATA (ulimit -d)", recorded);
}

fn has_no_plan_below(test: &str, limit: &str, recorded: fn(ToRecord)) {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return recorded(ToRecord::new(path.into(), MadeFor::default()));
    }
    let folder = tempfile::tempdir().unwrap();
    let said = alone::run(&format!("plan::room::tests::{test}"), VARIABLE, folder.path().join("run.plan"));
    assert_eq!(said.matches("the plan could not be written to").count(), 1, "{said}");
    assert!(said.contains(&format!("{limit} leaves")), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Notes are taken into the record, or nobody has time for that before the end.
fn device_recorded(asked: ToRecord, are_taken_in: bool) {
    let recording = crate::device::Recording::new(asked);
    // Neither record fits.
    limit(libc::RLIMIT_DATA, used("VmData:") + (12 << 20));
    for address in 0..MOST_EVENTS as usize {
        if recording.allocated(0, 0, address, 1 << 20, 1 << 20) && are_taken_in {
            recording.catch_up();
        }
    }
    recording.close();
}

/// More requests than there is memory for.
fn recorded(mut recording: Recording) {
    // Neither record fits.
    limit(libc::RLIMIT_DATA, used("VmData:") + (12 << 20));
    let mut taken = 0;
    for id in 1..=u64::from(MOST_EVENTS) / 2 {
        for op in [Op::request(id, 1 << 20), Op::free(id)] {
            if recording.wants_more() {
                recording.event(Event::host(id, op));
                taken += 1;
            }
        }
        if id % 1000 == 0 {
            recording.pause();
        }
    }
    assert!((100_000..MOST_EVENTS).contains(&taken), "{taken}");
    recording.end();
}
