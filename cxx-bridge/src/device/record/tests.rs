//! What is noted under the allocator's lock reaches the record, and plans are begun where they may be.

use std::path::PathBuf;

use super::*;

const MIB: usize = 1 << 20;

/// A recording whose plan is to lie in this file, in a folder that is removed with the first.
fn recording() -> (tempfile::TempDir, PathBuf, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.json");
    let recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
    (folder, path, recording)
}

/// Two streams of a device and one of another, whose address is the same.
fn record(recording: &Recording, steps: usize) {
    for _ in 0..steps {
        // Of a pool, whose requests no plan serves.
        recording.over(0, 0x9000);
        // Two sizes, one after the other, of which PyTorch has a segment each.
        for (device, stream, mib) in [(0, 0x10, 12), (0, 0, 14), (1, 0x10, 16)] {
            for mib in [mib, mib + 10] {
                let address = 0x1000 * mib;
                let bytes = mib * MIB;
                recording.allocated(device, stream, address, bytes, bytes);
                recording.over(device, address);
            }
        }
        recording.iteration();
    }
}

#[test]
fn streams_are_numbered_by_their_first_requests() {
    let (_folder, path, recording) = recording();
    record(&recording, 20);
    recording.close();
    let plans = DevicePlan::read(&fs::read_to_string(path).unwrap()).unwrap();
    let mut found: Vec<_> =
        plans.plans.iter().map(|(it, plan)| ((it.device, it.number), plan.reserved() as usize / MIB)).collect();
    found.sort_unstable();
    assert_eq!(found, [((0, 0), 22), ((0, 1), 24), ((1, 0), 26)]);
}

#[test]
fn what_another_stream_uses_may_be_over_later() {
    let handed_on = |used_by: Option<usize>| {
        let (_folder, path, recording) = recording();
        let sizes = [6, 6].into_iter().chain([24, 6].repeat(20));
        for (at, mib) in sizes.enumerate() {
            recording.allocated(0, 0, 0x1000, mib * MIB, mib * MIB);
            if let Some(stream) = used_by.filter(|_| at == 0) {
                recording.used(0, stream, 0x1000);
            }
            recording.freed(0, 0x1000);
            recording.over(0, 0x1000);
        }
        recording.close();
        let plans = DevicePlan::read(&fs::read_to_string(path).unwrap()).unwrap();
        let (_, plan) = &plans.plans[0];
        let [first, second] = [0, 1].map(|at| plan.slots[plan.lanes[0].prologue[at] as usize]);
        first.offset == second.offset
    };
    // Its own stream is no other.
    assert_eq!([None, Some(0), Some(7)].map(handed_on), [true, true, false]);
}

#[test]
fn a_child_records_unless_its_parent_has() {
    for begins in [true, false] {
        let (_folder, path, recording) = recording();
        if begins {
            record(&recording, 20);
        }
        recording.enter_child();
        record(&recording, 20);
        let recorded = {
            let mut state = recording.state.lock();
            state.absorb(&recording.notes);
            state.record.len()
        };
        assert_eq!(recorded, 120);
        recording.close();
        assert_eq!(path.exists(), !begins);
    }
}

#[test]
fn under_the_allocators_lock_nothing_is_planned_and_nobody_waits_for_it() {
    let (_folder, _, recording) = recording();
    let mut due = 0;
    std::thread::scope(|scope| {
        // As a planner's thread does while it copies the record.
        let copying = recording.state.lock();
        let (told, all) = std::sync::mpsc::channel();
        let recording = &recording;
        scope.spawn(move || {
            let requests = 0..300;
            let due = requests.filter(|_| {
                recording.over(0, 0x1000);
                recording.allocated(0, 0, 0x1000, 12 * MIB, 12 * MIB)
            });
            told.send(due.count()).unwrap();
        });
        let answer = all.recv_timeout(Duration::from_secs(5));
        assert!(!copying.planner.is_at_work());
        // Before anything is asserted that may fail: the thread waits for it.
        drop(copying);
        due = answer.unwrap_or(0);
    });
    assert_eq!(due, 300 - 255, "from the first plan's requests on");
    recording.catch_up();
    while recording.state.lock().planner.is_at_work() {
        std::thread::yield_now();
    }
    let state = recording.state.lock();
    assert_eq!(state.planner.due_at(), 600);
    assert!(!recording.notes.lock().is_due());
}

#[test]
fn once_a_program_goes_on_after_a_failure_its_plan_goes() {
    let (_folder, path, recording) = recording();
    let plans = || {
        recording.catch_up();
        while recording.state.lock().planner.is_at_work() {
            std::thread::yield_now();
        }
        let plans = DevicePlan::read(&fs::read_to_string(&path).unwrap()).unwrap();
        plans.plans.len()
    };
    record(&recording, 50);
    assert_eq!(plans(), 3);
    recording.failed();
    assert_eq!(plans(), 3, "it may end here");
    recording.emptied();
    assert!(!recording.allocated(0, 0, 0x10, 512, 512));
    assert!(recording.allocated(0, 0, 0x20, MIB, MIB));
    assert_eq!(plans(), 0, "long before the next plan is due");
    assert!(!recording.allocated(0, 0, 0x30, MIB, MIB));
}

#[test]
fn a_failure_is_noted_until_somebody_has_taken_it_in_and_also_when_the_record_is_full() {
    let to_record = ToRecord::new("/proc/never written".into(), MadeFor::default());
    let recording = Recording::new(to_record);
    (0..10).for_each(|_| recording.failed());
    (0..10).for_each(|_| recording.emptied());
    assert_eq!(recording.notes.lock().list.len(), 2, "each once");
    // Both threads are told, whoever catches up.
    assert!(recording.allocated(0, 0, 0x10, MIB, MIB));
    assert!(recording.allocated(0, 0, 0x20, MIB, MIB));
    recording.catch_up();
    assert!(recording.state.lock().record.searches());
    assert!(!recording.allocated(0, 0, 0x30, MIB, MIB));
    let to_record = ToRecord::new("/proc/never written".into(), MadeFor::default());
    let full = Recording::new(to_record);
    full.notes.lock().is_full = true;
    full.failed();
    full.catch_up();
    assert!(full.state.lock().record.searches());
}

#[test]
fn the_file_says_that_a_program_searches_if_it_asks_for_much() {
    let (_folder, path, recording) = recording();
    recording.failed();
    recording.emptied();
    record(&recording, 1000);
    recording.close();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("pinbuddy-no-plan") && text.contains("the program went on"), "{text}");
}

#[test]
fn notes_do_not_pile_up() {
    let to_record = ToRecord::new("/proc/never written".into(), MadeFor::default());
    let recording = Recording::new(to_record);
    let is_due = (0..MOST_NOTES).map(|at| recording.allocated(0, 0, at, 512, 512));
    assert_eq!(is_due.filter(|it| *it).count(), 1);
    recording.catch_up();
    assert!(recording.notes.lock().list.is_empty());
    let mut state = recording.state.lock();
    state.record = DeviceRecord::new(0);
    state.absorb(&recording.notes);
    drop(state);
    recording.over(0, 1);
    assert!(recording.notes.lock().list.is_empty(), "the record is full");
}

#[test]
fn a_run_of_many_requests_of_which_none_comes_again_is_not_recorded_twice() {
    use crate::config::Config;
    use crate::plan::Choice;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.plan");
    let run = crate::plan::this_run("2.15.0", THRESHOLDS[0]);
    let recording = Recording::new(ToRecord::new(path.clone(), run));
    for number in 0..4096 {
        let bytes = MIB + 4096 * number;
        recording.allocated(0, 0, 0x1000, bytes, bytes);
        recording.over(0, 0x1000);
    }
    recording.close();
    let choose = |update: bool| {
        let update = update.then_some("1");
        let named = |name: &str| update.filter(|_| name == "BUDDY_PLAN_UPDATE").map(Into::into);
        let (config, _) = Config::read(named);
        crate::device::choose(path.to_str(), &config, "2.15.0")
    };
    let (choice, _, said) = choose(false);
    assert!(matches!(choice, Choice::Nothing), "{choice:?}");
    assert!(said.unwrap().contains("of 4096 requests too few came again"));
    let (choice, _, said) = choose(true);
    assert!(matches!(choice, Choice::Record(_)) && said.is_none());
}
