//! One test at a time writes: the recording is the process's.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::super::Kind;
use super::*;
use crate::thread_number;
use pinbuddy_events::{Op, Whose};

static ON: Mutex<bool> = Mutex::new(false);

/// A recording, with nothing in the rings.
pub(in crate::record) fn recording(session: u16) -> (MutexGuard<'static, ()>, Rings) {
    let alone = thread_number::ALONE.lock();
    let alone = alone.unwrap_or_else(PoisonError::into_inner);
    let rings = Rings { switch: |on| *ON.lock().unwrap() = on };
    rings.record(session);
    found(&rings);
    (alone, rings)
}

/// All that rings hold, with the numbers of their threads.
pub(in crate::record) fn found(rings: &Rings) -> Vec<(u32, Entry)> {
    let mut all = Vec::new();
    for ring in 0..rings.rings() {
        let mut entries = Vec::new();
        let Drained { thread, .. } = rings.drain(ring, &mut entries);
        all.extend(entries.into_iter().map(|it| (thread, it)));
    }
    all
}

pub(in crate::record) fn request(bytes: u64, stream: u32, private: bool) -> Kind {
    let (id, thread) = (0, 0);
    Kind::Event(Op::Request { id, bytes, thread, stream, private })
}

#[test]
fn all_that_a_thread_records_is_read() {
    let (_alone, rings) = recording(9);
    assert!(*ON.lock().unwrap() && record_is_on());
    let (mut first, mut private) = (0, 0);
    assert!(record_request(5, false, &mut first));
    assert!(record_request(usize::MAX >> 4, true, &mut private));
    record_use(first, u64::MAX);
    record_free(first, 2);
    record_done(first);
    record_clear();
    record_iteration();
    // Of an earlier recording.
    record_free(8 << 48 | 1, 0);
    let host = Whose::Host;
    let mask = (1 << 60) - 1;
    let expected = [
        (first, host, request(5, 0, false)),
        (private, host, request(mask, 0, true)),
        (first, host, Kind::Use { stream: mask }),
        (first, host, Kind::Free { events: 2 }),
        (first, host, Kind::Done),
        (9 << 48, host, Kind::Event(Op::Clear)),
        (9 << 48, host, Kind::Event(Op::Iteration)),
    ];
    let all = found(&rings);
    assert_eq!(all.len(), expected.len());
    for ((thread, entry), (allocation, whose, kind)) in all.iter().zip(expected) {
        assert_eq!((entry.allocation, entry.whose, entry.kind), (Allocation(allocation), whose, kind));
        assert_eq!((*thread, entry.allocation.session()), (thread_number::own(), 9));
    }
    assert!(all.is_sorted_by_key(|(_, it)| it.ticks));
    rings.record(0);
    record_free(first, 0);
    record_clear();
    assert!(!record_request(5, false, &mut first) && found(&rings).is_empty());
    assert!(!*ON.lock().unwrap() && !record_is_on());
}

#[test]
fn a_request_is_followed_by_what_it_waited_and_waits_within_each_other_count_once() {
    let (_alone, rings) = recording(3);
    let took = |entry: &Entry| match entry.kind {
        Kind::Event(Op::Wait { took, .. }) => took,
        ref other => panic!("{other:?}"),
    };
    let waits = |in_request| {
        wait_begins(in_request);
        wait_begins(!in_request);
        thread::sleep(Duration::from_millis(2));
        wait_ends();
        wait_ends();
    };
    waits(true);
    assert_eq!(found(&rings), [], "the request's entry comes first");
    let mut allocation = 0;
    assert!(record_request(5, false, &mut allocation));
    let all = found(&rings);
    assert_eq!((all.len(), all[1].1.allocation), (2, Allocation(allocation)));
    assert!(took(&all[1].1) >= 2_000_000);
    waits(false);
    let all = found(&rings);
    assert_eq!((all.len(), all[0].1.allocation), (1, Allocation(3 << 48)));
    assert!(took(&all[0].1) >= 2_000_000);
    rings.record(0);
}

#[test]
fn threads_one_after_the_other_have_one_ring_and_threads_at_once_their_own() {
    let (_alone, rings) = recording(4);
    let rounds = if cfg!(miri) { 3 } else { 50 };
    let work = || {
        let mut allocation = 0;
        assert!(record_request(5, false, &mut allocation));
        record_free(allocation, 0);
        (thread_number::own(), allocation)
    };
    let (number, _) = thread::spawn(work).join().unwrap();
    let before = rings.rings();
    for _ in 0..rounds {
        assert_eq!(thread::spawn(work).join().unwrap().0, number);
    }
    assert_eq!(rings.rings(), before, "nobody has drained, and it was not needed");
    let all = found(&rings);
    assert_eq!(all.len(), 2 * (rounds + 1));
    assert!(all.iter().all(|it| it.0 == number));
    let both = move || (work(), thread::spawn(work).join().unwrap());
    let ((outer, first), (inner, second)) = thread::spawn(both).join().unwrap();
    assert!(outer != inner && first != second);
    let numbers = found(&rings).into_iter().map(|it| it.0);
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.dedup();
    numbers.sort_unstable();
    let mut expected = [outer, inner];
    expected.sort_unstable();
    assert_eq!(numbers, expected);
    rings.record(0);
}

#[test]
fn what_a_destructor_does_after_its_threads_end_is_lost_and_holds_no_ring() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            let kept = record_request(5, false, &mut 0);
            KEPT.store(1 + u16::from(kept), Ordering::SeqCst);
        }
    }
    static KEPT: AtomicU16 = AtomicU16::new(0);
    // Made first, it goes last.
    thread_local!(static LATE: Late = const { Late });
    let (_alone, rings) = recording(5);
    let has_ring = thread::spawn(|| LATE.with(|_| record_request(5, false, &mut 0)));
    assert!(has_ring.join().unwrap());
    assert_eq!(KEPT.load(Ordering::SeqCst), 1);
    assert_eq!((found(&rings).len(), rings.lost().pinned), (1, 1));
    rings.record(0);
}
