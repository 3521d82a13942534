//! Pins in place of this process's own memory, with a driver of mere lists.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

#[derive(Debug)]
struct Fake {
    /// By start: length, and whether it is read-only.
    registered: Mutex<BTreeMap<usize, (usize, bool)>>,
    /// How many more registrations succeed.
    registrations_left: AtomicUsize,
    budget: Mutex<usize>,
    crosses: AtomicBool,
    waited: Mutex<Vec<u64>>,
    /// Registering takes until it is true.
    may_end: AtomicBool,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            registered: Mutex::default(),
            registrations_left: AtomicUsize::new(usize::MAX),
            budget: Mutex::new(1 << 30),
            crosses: AtomicBool::new(true),
            waited: Mutex::default(),
            may_end: AtomicBool::new(true),
        }
    }
}

impl World for Fake {
    fn take(&self, bytes: usize) -> Result<(), String> {
        let mut budget = self.budget.lock().unwrap();
        *budget = budget
            .checked_sub(bytes)
            .ok_or("within the budget of 1 GiB")?;
        Ok(())
    }

    fn put(&self, bytes: usize) {
        *self.budget.lock().unwrap() += bytes;
    }

    fn threads(&self) -> usize {
        2
    }

    fn register(&self, pages: Region, read_only: bool) -> Result<(), String> {
        lock::assert_none_held("registering");
        while !self.may_end.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let spend = |left: usize| left.checked_sub(1);
        self.registrations_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend)
            .map_err(|_| "CUDA error: operation not permitted")?;
        let mut registered = self.registered.lock().unwrap();
        let end = pages.base + pages.bytes;
        let free = registered
            .range(..end)
            .next_back()
            .is_none_or(|(start, (length, _))| start + length <= pages.base);
        if !free {
            return Err(
                "CUDA error: part or all of the requested memory range is already mapped"
                    .to_owned(),
            );
        }
        registered.insert(pages.base, (pages.bytes, read_only));
        Ok(())
    }

    fn unregister(&self, pages: Region) -> Result<(), String> {
        let gone = self.registered.lock().unwrap().remove(&pages.base);
        assert_eq!(
            gone.map(|(bytes, _)| bytes),
            Some(pages.bytes),
            "once, and as it was registered"
        );
        Ok(())
    }

    fn crosses(&self, _border: usize) -> Result<(), String> {
        self.crosses
            .load(Ordering::Relaxed)
            .then_some(())
            .ok_or_else(|| "CUDA error: invalid argument".to_owned())
    }

    fn wait(&self, pins: &[u64]) {
        lock::assert_none_held("waiting");
        self.waited.lock().unwrap().extend(pins);
    }
}

/// Pages of this process's memory.
struct Memory(Vec<u8>);

impl Memory {
    fn of(pages: usize) -> Self {
        Self(vec![7; (pages + 1) * PAGE])
    }

    /// So many bytes from an offset of the first page.
    fn part(&self, offset: usize, bytes: usize) -> Region {
        let base = self.0.as_ptr().addr().next_multiple_of(PAGE) + offset;
        Region { base, bytes }
    }
}

fn fresh(chunk: usize) -> InPlace<Fake> {
    InPlace::new(Fake::default(), chunk)
}

fn lengths(of: &InPlace<Fake>) -> Vec<usize> {
    let registered = of.world.registered.lock().unwrap();
    registered.values().map(|(bytes, _)| bytes / PAGE).collect()
}

fn is_as_new(of: &InPlace<Fake>) -> bool {
    let full = *of.world.budget.lock().unwrap() == 1 << 30;
    full && lengths(of).is_empty()
        && of.state.lock().busy.is_empty()
        && of.stats().pinned_bytes.current == 0
}

#[test]
fn views_and_parts_are_registered_once_and_as_long_as_one_is_pinned() {
    let (memory, of) = (Memory::of(16), fresh(0));
    let whole = of.pin(memory.part(100, 8 * PAGE), false).unwrap();
    let part = of.pin(memory.part(2 * PAGE + 5, PAGE), false).unwrap();
    let beyond = of
        .pin(memory.part(8 * PAGE + 200, 2 * PAGE), false)
        .unwrap();
    assert_eq!(
        lengths(&of),
        [9, 2],
        "the first page of the last is registered already"
    );
    let stats = of.stats();
    assert_eq!(
        (
            stats.pinned_bytes.current,
            stats.segments.current,
            stats.active_blocks.current
        ),
        (11 * PAGE as u64, 2, 3)
    );
    of.unpin(whole);
    assert_eq!(lengths(&of), [2, 1, 2]);
    assert_eq!(
        *of.world.waited.lock().unwrap(),
        [whole, part, beyond],
        "others' work, too, before their pages are registered anew"
    );
    of.unpin(whole);
    of.unpin(part);
    of.unpin(beyond);
    assert!(is_as_new(&of));
}

#[test]
fn a_refusal_half_way_leaves_nothing() {
    for left in 0..4 {
        let (memory, of) = (Memory::of(8), fresh(2 * PAGE));
        of.world.registrations_left.store(left, Ordering::Relaxed);
        let why = of.pin(memory.part(0, 8 * PAGE), false).unwrap_err();
        assert!(why.contains("not permitted") && is_as_new(&of), "{why}");
    }
    let (memory, of) = (Memory::of(8), fresh(2 * PAGE));
    *of.world.budget.lock().unwrap() = 5 * PAGE;
    let why = of.pin(memory.part(0, 8 * PAGE), false).unwrap_err();
    assert!(why.contains("budget") && lengths(&of).is_empty());
    assert_eq!(*of.world.budget.lock().unwrap(), 5 * PAGE);
}

#[test]
fn a_border_that_copies_do_not_cross_is_refused() {
    let (memory, of) = (Memory::of(8), fresh(0));
    let first = of.pin(memory.part(0, PAGE + 1), false).unwrap();
    of.world.crosses.store(false, Ordering::Relaxed);
    let why = of.pin(memory.part(PAGE + 1, 2 * PAGE), false).unwrap_err();
    assert!(
        why.contains("as one tensor") && lengths(&of) == [2],
        "{why}"
    );
    of.pin(memory.part(4 * PAGE, PAGE), false).unwrap();
    of.unpin(first);
    assert_eq!(lengths(&of), [1]);
}

#[test]
fn what_cannot_be_written_is_read_only_and_pins_of_both_kinds_do_not_mix() {
    let (memory, of) = (Memory::of(8), fresh(0));
    let reads = of.pin(memory.part(0, 4 * PAGE), true).unwrap();
    let why = of.pin(memory.part(PAGE, PAGE), false).unwrap_err();
    assert!(why.contains("read-only already"), "{why}");
    of.pin(memory.part(PAGE, PAGE), true).unwrap();
    of.unpin(reads);
    assert_eq!(lengths(&of), [1]);
    let registered = of.world.registered.lock().unwrap();
    assert!(registered.values().all(|(_, read_only)| *read_only));
}

#[test]
fn memory_that_is_not_mapped_is_refused() {
    let of = fresh(0);
    let why = of
        .pin(
            Region {
                base: 1 << 20,
                bytes: PAGE,
            },
            false,
        )
        .unwrap_err();
    assert!(
        why.contains("expected mapped memory") && is_as_new(&of),
        "{why}"
    );
}

#[test]
fn a_lost_part_is_no_pinned_memory() {
    let (memory, of) = (Memory::of(8), fresh(0));
    let whole = of.pin(memory.part(0, 4 * PAGE), false).unwrap();
    let part = of.pin(memory.part(0, PAGE), false).unwrap();
    of.world.registrations_left.store(0, Ordering::Relaxed);
    of.unpin(whole);
    assert!(lengths(&of).is_empty() && of.stats().pinned_bytes.current == 0);
    of.unpin(part);
    assert!(is_as_new(&of));
}

#[test]
fn the_end_unregisters_everything_and_a_child_nothing() {
    let (memory, of) = (Memory::of(8), fresh(0));
    let pin = of.pin(memory.part(0, 4 * PAGE), false).unwrap();
    of.close();
    assert!(lengths(&of).is_empty() && *of.world.waited.lock().unwrap() == [pin]);
    of.unpin(pin);
    assert!(
        of.pin(memory.part(0, PAGE), false)
            .unwrap_err()
            .contains("ends")
    );

    let of = fresh(0);
    let pin = of.pin(memory.part(0, 4 * PAGE), false).unwrap();
    // As if another thread of the parent held the lock at the fork.
    let held = of.state.lock();
    let child = || {
        of.enter_child();
        of.unpin(pin);
        of.close();
        let refused = of.pin(memory.part(4 * PAGE, PAGE), false);
        assert!(refused.unwrap_err().contains("child") && of.report() == Value::Null);
    };
    thread::scope(|scope| scope.spawn(child).join().unwrap());
    assert_eq!(lengths(&of), [4]);
    drop(held);
}

#[test]
fn calls_that_reach_the_same_pages_take_turns_and_others_do_not_wait() {
    let (memory, of) = (Memory::of(16), fresh(0));
    of.world.may_end.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        let first = scope.spawn(|| of.pin(memory.part(0, 4 * PAGE), false));
        while of.state.lock().busy.is_empty() {
            thread::yield_now();
        }
        let second = scope.spawn(|| of.pin(memory.part(3 * PAGE, 4 * PAGE), false));
        let apart = scope.spawn(|| of.pin(memory.part(9 * PAGE, PAGE), false));
        while of.state.lock().busy.len() < 2 {
            thread::yield_now();
        }
        assert!(!second.is_finished());
        of.world.may_end.store(true, Ordering::Relaxed);
        for thread in [first, second, apart] {
            thread.join().unwrap().unwrap();
        }
    });
    assert_eq!(lengths(&of), [4, 3, 1]);
}
