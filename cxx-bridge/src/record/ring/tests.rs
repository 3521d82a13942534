//! Small enough for Miri, which finds an entry that is read while it is written.

use std::thread;

use super::*;

const ENTRIES: usize = 64;

fn entry(number: u64) -> Raw {
    Raw { ticks: number, allocation: !number, what: (number % 8) << 60 | number }
}

fn drained(ring: &Ring<ENTRIES>) -> (Vec<Raw>, u32, Lost) {
    let mut entries = Vec::new();
    let (thread, lost) = ring.drain(|it| entries.push(it));
    (entries, thread, lost)
}

#[test]
fn entries_are_read_as_they_were_written_and_in_their_order() {
    const ALL: u64 = if cfg!(miri) { 500 } else { 200_000 };
    let ring = Ring::<ENTRIES>::new(0).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let own = ring.claim(7).unwrap();
            for number in 0..ALL {
                while !own.push(entry(number), 0) {
                    thread::yield_now();
                }
            }
        });
        let mut next = 0;
        while next < ALL {
            let (entries, thread, _) = drained(&ring);
            for found in &entries {
                assert_eq!(*found, entry(next));
                next += 1;
            }
            assert!(entries.is_empty() || thread == 7);
            thread::yield_now();
        }
    });
    assert!(drained(&ring).0.is_empty());
}

#[test]
fn requests_leave_room_for_ends_and_what_finds_none_is_counted_once() {
    let ring = Ring::<ENTRIES>::new(0).unwrap();
    let own = ring.claim(0).unwrap();
    let reserve = Owner::<ENTRIES>::RESERVE;
    let fit = |spare| (0..).take_while(|&number| own.push(entry(number), spare)).count();
    assert_eq!(fit(reserve), ENTRIES - reserve);
    assert_eq!(fit(0), reserve, "ends have what requests left");
    let device = Raw { what: u64::MAX, ..entry(0) };
    assert!(!own.push(device, 0) && !own.push(device, 0));
    let (entries, _, lost) = drained(&ring);
    assert_eq!(entries.len(), ENTRIES);
    let (pinned, device) = (2, 2);
    assert_eq!(lost, Lost { pinned, device });
    assert_eq!(drained(&ring).2, Lost::default());
    assert!(own.push(entry(0), reserve), "there is room again");
}

#[test]
fn a_ring_that_was_left_goes_to_the_same_number_at_once_and_to_others_once_it_is_read() {
    let ring = Ring::<ENTRIES>::new(5).unwrap();
    let first = ring.claim(3).unwrap();
    assert!(ring.claim(3).is_none(), "it has an owner");
    assert!(first.push(entry(1), 0));
    first.wait(9);
    assert_eq!(first.number(), 5 << 40 | 1);
    first.leave();
    assert!(ring.claim(4).is_none(), "its entries are of thread 3");
    let second = ring.claim(3).unwrap();
    assert_eq!(second.take_waited(), 0, "that was another thread's wait");
    assert!(second.push(entry(2), 0));
    assert_eq!(second.number(), 5 << 40 | 2, "no other allocation has it");
    second.leave();
    assert_eq!(drained(&ring).0, [entry(1), entry(2)]);
    assert!(ring.claim(4).is_none(), "thread 3's number may be on its way still");
    assert!(drained(&ring).0.is_empty());
    let third = ring.claim(4).unwrap();
    assert!(third.push(entry(3), 0));
    assert_eq!(drained(&ring), (vec![entry(3)], 4, Lost::default()));
}
