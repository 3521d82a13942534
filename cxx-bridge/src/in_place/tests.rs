//! Pins in place of this process's own memory, with storages and a driver of mere lists.

#![allow(unsafe_code)]

mod world;

use super::*;
use world::Fake;

const BUDGET: usize = 1 << 30;
/// More than the most from which glibc maps each chunk.
const LARGE: usize = 34 << 20;
const WRITES: Asked = Asked {
    read_only: false,
    shared: false,
    processes: 1,
};

fn region_of(memory: &[u8]) -> Region {
    Region {
        base: memory.as_ptr().expose_provenance(),
        bytes: memory.len(),
    }
}

/// Whole pages, and the memory in which they lie.
fn pages(count: usize) -> (Vec<u8>, Region) {
    let page = fill::page_bytes();
    let memory = vec![7; (count + 1) * page];
    let base = memory.as_ptr().expose_provenance().next_multiple_of(page);
    let bytes = count * page;
    (memory, Region { base, bytes })
}

/// With these storages, numbered from 1.
fn fresh(storages: &[Region]) -> InPlace<Fake> {
    let of = InPlace::new(Fake::default());
    let numbered = (1..).zip(storages.iter().map(|it| (*it, 0)));
    of.world.storages.lock().unwrap().extend(numbered);
    of
}

fn lengths(of: &InPlace<Fake>) -> Vec<usize> {
    let registered = of.world.registered.lock().unwrap();
    registered.values().map(|it| it.0).collect()
}

fn is_as_new(of: &InPlace<Fake>) -> bool {
    let is_free = of.state.lock().numbers().is_empty();
    let counts = of.report() == json!({ "pins": 0, "bytes": 0 });
    is_free && counts && lengths(of).is_empty() && *of.world.budget.lock().unwrap() == BUDGET
}

#[test]
fn a_storage_is_registered_once_and_as_long_as_it_was_asked_for() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    let pin = of.pin(1, WRITES).unwrap();
    assert_eq!(of.pin(1, WRITES), Ok(pin));
    assert_eq!(lengths(&of), [region.bytes]);
    assert_eq!(of.report(), json!({ "pins": 1, "bytes": region.bytes }));
    assert_eq!(of.stats().active_bytes.current, region.bytes as u64);
    of.unpin_storage(1).unwrap();
    assert_eq!(lengths(&of), [region.bytes]);
    of.unpin_storage(1).unwrap();
    assert!(is_as_new(&of));
    assert!(of.unpin_storage(1).unwrap_err().contains("no pin"));
    assert_eq!((of.unpin(pin), of.dies(pin)), (Ok(false), true));
}

#[test]
fn pages_that_another_pin_has_are_refused_and_that_pin_stays_as_it_is() {
    let (_memory, region) = pages(8);
    let part = |from: usize, count: usize| {
        let page = fill::page_bytes();
        let base = region.base + from * page;
        let bytes = count * page;
        Region { base, bytes }
    };
    let of = fresh(&[
        part(2, 4),
        part(0, 3),
        part(3, 1),
        part(5, 2),
        part(0, 8),
        part(6, 2),
        part(0, 2),
    ]);
    of.pin(1, WRITES).unwrap();
    for storage in 2..=5 {
        let why = of.pin(storage, WRITES).unwrap_err();
        assert!(why.contains("another storage's pin"), "{storage}: {why}");
    }
    of.pin(6, WRITES).unwrap();
    of.pin(7, WRITES).unwrap();
    of.unpin_storage(6).unwrap();
    let page = fill::page_bytes();
    assert_eq!(lengths(&of), [2 * page, 4 * page]);
}

#[test]
fn memory_of_the_heap_is_pinned_where_its_pages_are_its_own() {
    let large = vec![1_u8; LARGE];
    let small = vec![1_u8; 5000];
    let of = fresh(&[
        region_of(&large),
        region_of(&small),
        region_of(&large[4096..]),
    ]);
    for storage in [2, 3] {
        let why = of.pin(storage, WRITES).unwrap_err();
        assert!(why.contains("other memory of the heap"), "{why}");
    }
    of.pin(1, WRITES).unwrap();
    assert!((LARGE..LARGE + 2 * fill::page_bytes()).contains(&lengths(&of)[0]));
}

#[test]
fn a_refusal_leaves_nothing() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    of.world.registers.store(false, Ordering::Relaxed);
    assert!(of.pin(1, WRITES).unwrap_err().contains("CUDA error"));
    assert!(is_as_new(&of));
    *of.world.budget.lock().unwrap() = 5;
    assert!(of.pin(1, WRITES).unwrap_err().contains("budget"));
    assert!(lengths(&of).is_empty() && *of.world.budget.lock().unwrap() == 5);
    *of.world.budget.lock().unwrap() = BUDGET;
    of.world.registers.store(true, Ordering::Relaxed);
    of.pin(1, WRITES).unwrap();
}

#[test]
fn a_read_only_pin_is_no_pin_to_write_to() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    let reads = Asked {
        read_only: true,
        ..WRITES
    };
    of.pin(1, reads).unwrap();
    assert!(of.pin(1, WRITES).unwrap_err().contains("read-only"));
    of.pin(1, reads).unwrap();
    assert!(of.world.registered.lock().unwrap()[&region.base].1);
}

#[test]
fn each_of_several_processes_counts_its_part_and_a_files_pages_count_twice() {
    use std::os::fd::AsRawFd as _;
    let page = fill::page_bytes();
    // In the build folder, which is no memory.
    let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    std::io::Write::write_all(&mut file, &vec![3; 8 * page]).unwrap();
    let map = |flags| {
        // SAFETY: a new mapping of an open file.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                8 * page,
                3,
                flags,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        Region {
            base: at.expose_provenance(),
            bytes: 8 * page,
        }
    };
    let (shared, private) = (map(libc::MAP_SHARED), map(libc::MAP_PRIVATE));
    let of = fresh(&[shared, private]);
    let counted = |storage, read_only, processes| {
        let asked = Asked {
            read_only,
            processes,
            ..WRITES
        };
        of.pin(storage, asked).unwrap();
        let counted = BUDGET - *of.world.budget.lock().unwrap();
        of.unpin_storage(storage).unwrap();
        (
            counted / page,
            of.world.missing.load(Ordering::Relaxed) / page,
        )
    };
    assert_eq!(counted(1, false, 1), (16, 0));
    assert_eq!(counted(1, true, 4), (4, 0));
    assert_eq!(counted(2, true, 1), (16, 0));
    assert_eq!(
        counted(2, false, 1),
        (8, 8),
        "copies that are not there yet"
    );
    for it in [shared, private] {
        // SAFETY: the mappings are those above, which nothing uses any more.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(it.base), it.bytes) };
    }
}

#[test]
fn pages_that_are_not_there_yet_are_said() {
    let page = fill::page_bytes();
    let bytes = 64 * page;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, 3, flags, -1, 0) };
    let base = at.expose_provenance();
    let of = fresh(&[Region { base, bytes }]);
    of.pin(1, WRITES).unwrap();
    assert_eq!(of.world.missing.load(Ordering::Relaxed), bytes);
    of.unpin_storage(1).unwrap();
    of.pin(1, WRITES).unwrap();
    assert_eq!(of.world.missing.load(Ordering::Relaxed), 0);
    // SAFETY: the mapping above, which nothing uses any more.
    unsafe { libc::munmap(at, bytes) };
}

#[test]
fn memory_in_use_or_still_registered_is_not_given_back() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    let pin = of.pin(1, WRITES).unwrap();
    let is_whole = || lengths(&of) == [region.bytes] && of.report()["pins"] == 1;
    *of.world.done.lock().unwrap() = None;
    assert!(of.unpin_storage(1).unwrap_err().contains("lost") && is_whole());
    assert!(!of.dies(pin) && is_whole());
    assert!(!of.impatient.load(Ordering::Relaxed), "an error is no wait");
    // After one that has waited in vain none waits long.
    of.impatient.store(true, Ordering::Relaxed);
    *of.world.done.lock().unwrap() = Some(false);
    let start = Instant::now();
    assert!(!of.dies(pin) && is_whole());
    assert!((PATIENCE[1]..PATIENCE[0] / 4).contains(&start.elapsed()));
    *of.world.done.lock().unwrap() = Some(true);
    of.world.unregisters.store(false, Ordering::Relaxed);
    assert!(!of.dies(pin) && is_whole());
    of.world.unregisters.store(true, Ordering::Relaxed);
    assert!(of.dies(pin) && is_as_new(&of));
}

#[test]
fn a_pin_ends_once_its_streams_are_done() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    of.pin(1, WRITES).unwrap();
    *of.world.done.lock().unwrap() = Some(false);
    thread::scope(|scope| {
        let ends = scope.spawn(|| of.unpin_storage(1));
        while of.world.asked.load(Ordering::Relaxed) < 5 {
            thread::yield_now();
        }
        assert!(!ends.is_finished() && lengths(&of) == [region.bytes]);
        *of.world.done.lock().unwrap() = Some(true);
        ends.join().unwrap().unwrap();
    });
    assert!(is_as_new(&of));
}

#[test]
fn threads_that_pin_one_storage_share_a_pin_and_others_do_not_wait() {
    let ((_one, region), (_other, apart)) = (pages(8), pages(2));
    let of = fresh(&[region, apart]);
    of.world.may_end.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        let pins: Vec<_> = [1, 1, 1, 2]
            .map(|storage| {
                scope.spawn({
                    let of = &of;
                    move || of.pin(storage, WRITES)
                })
            })
            .into();
        while of.state.lock().numbers().len() < 2 {
            thread::yield_now();
        }
        assert!(pins.iter().all(|it| !it.is_finished()));
        of.world.may_end.store(true, Ordering::Relaxed);
        let pins: Vec<u64> = pins
            .into_iter()
            .map(|it| it.join().unwrap().unwrap())
            .collect();
        assert!(pins[0] == pins[1] && pins[1] == pins[2] && pins[2] != pins[3]);
    });
    for storage in [1, 1, 2] {
        of.unpin_storage(storage).unwrap();
    }
    assert_eq!(lengths(&of), [region.bytes]);
    of.unpin_storage(1).unwrap();
    assert!(is_as_new(&of));
}

#[test]
fn the_end_unregisters_what_is_done_and_waits_for_pins_under_way() {
    let ((_one, region), (_other, apart)) = (pages(8), pages(2));
    let of = fresh(&[region, apart]);
    let pin = of.pin(1, WRITES).unwrap();
    of.world.may_end.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        let under_way = scope.spawn(|| of.pin(2, WRITES));
        while of.state.lock().numbers().len() < 2 {
            thread::yield_now();
        }
        let closes = scope.spawn(|| of.close());
        while !of.closed.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        assert!(!closes.is_finished());
        of.world.may_end.store(true, Ordering::Relaxed);
        closes.join().unwrap();
        under_way.join().unwrap().unwrap();
    });
    assert!(is_as_new(&of));
    assert!(of.dies(pin));
    assert!(of.pin(1, WRITES).unwrap_err().contains("the process ends"));
}

#[test]
fn a_child_takes_no_lock_and_unregisters_nothing() {
    let (_memory, region) = pages(8);
    let of = fresh(&[region]);
    let pin = of.pin(1, WRITES).unwrap();
    // As if another thread of the parent held the lock at the fork.
    let held = of.state.lock();
    let child = || {
        of.enter_child();
        assert!(of.dies(pin) && of.unpin(pin) == Ok(false) && of.report() == Value::Null);
        of.close();
        assert!(of.pin(1, WRITES).unwrap_err().contains("child"));
    };
    thread::scope(|scope| scope.spawn(child).join().unwrap());
    assert_eq!(lengths(&of), [region.bytes]);
    drop(held);
}
