//! Defects that are put there on purpose: a program that ends well with one of them fails the test.
//!
//! Each leaves the state that wrong code would leave. The checks are those of every program: one that does as planned gets
//! each request's own place, no two blocks share memory, and nothing is left in the end.

use std::panic::catch_unwind;

use crate::{GRANULE, Lane, Layout, Slot, Slots, Taken};

type Break = fn(&mut Slots, u32);

/// What goes wrong, whenever a slot was granted and whenever it was released, and what is said of it.
const DEFECTS: [(&str, Break, Break, &str); 3] = [
    ("a stale cursor", |slots, _| slots.corrupt_cursor(), |_, _| {}, "not its planned place"),
    ("a granted slot that is not marked", Slots::corrupt_to_free, |_, _| {}, "somebody has it"),
    ("a released slot that stays marked", |_, _| {}, Slots::corrupt_to_taken, "not given back"),
];

/// Four slots in two places: the third and the fourth are where the first two were.
fn layout() -> Layout {
    let slot = |place: usize| Slot { bytes: GRANULE, region: 0, offset: place * GRANULE };
    Layout {
        regions: vec![2 * GRANULE],
        slots: vec![slot(0), slot(1), slot(0), slot(1)],
        lanes: vec![Lane { prologue: vec![0, 1, 2, 3], ..Lane::default() }],
    }
}

/// A program: as planned it has two blocks at a time; one that `hoards` frees none before its end.
fn run(hoards: bool, granted: Break, released: Break) {
    let mut slots = Slots::new(&layout()).unwrap();
    slots.pinned(0, 1 << 30);
    let mut live: Vec<Taken> = Vec::new();
    for turn in 0..4 {
        let taken = slots.request(0, GRANULE);
        if let Some(taken) = taken {
            let other = live.iter().find(|it| it.address == taken.address);
            assert_eq!(other, None, "somebody has it");
            live.push(taken);
            granted(&mut slots, taken.slot);
        }
        if !hoards {
            let slot = taken.map(|it| it.slot);
            assert_eq!(slot, Some(turn), "not its planned place");
        }
        if turn == 3 || turn == 1 && !hoards {
            for Taken { slot, .. } in live.drain(..) {
                assert!(slots.release(slot), "nobody has {slot}");
                if turn == 3 {
                    released(&mut slots, slot);
                }
            }
        }
    }
    assert_eq!(slots.take_idle().len(), 1, "not given back");
}

/// What is said of a program with this defect, if anything.
fn found(granted: Break, released: Break) -> Option<String> {
    let ended = catch_unwind(|| [true, false].map(|hoards| run(hoards, granted, released)));
    ended.err().map(|why| *why.downcast().unwrap())
}

#[test]
fn each_defect_is_found() {
    assert_eq!(found(|_, _| {}, |_, _| {}), None, "without a defect");
    for (name, granted, released, said) in DEFECTS {
        let why = found(granted, released);
        assert!(why.as_ref().is_some_and(|it| it.contains(said)), "{name}: {why:?}");
    }
}
