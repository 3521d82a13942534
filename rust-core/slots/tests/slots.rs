//! Slots against a model that knows bytes only, with plans that are wrong; and lanes that stray.

use std::collections::BTreeMap;

use pinbuddy_slots::{Borrowed, GRANULE, Lane, Layout, Lent, Slot, Slots};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::layouts::{BASE, learning, pinned, row, slot};

prop_compose! {
    /// Any layout: slots lie where they like. Some plans are of a run that comes once.
    fn layouts()(
        places in vec((1..20_usize, 0..2_u32, 0..100_usize), 1..40),
        lanes in vec((vec(0..40_u32, 0..20), prop_oneof![2 => vec(0..40_u32, 0..40), 1 => Just(Vec::new())]), 0..4),
    ) -> Layout {
        let slot = |&(granules, region, at): &(usize, u32, usize)| Slot { region, ..slot(granules, at) };
        let slots: Vec<Slot> = places.iter().map(slot).collect();
        let most = slots.len() as u32;
        let steps = |steps: &[u32]| steps.iter().map(|slot| slot % most).collect();
        let clears: Vec<u32> = (0..most).step_by(2).collect();
        let lane = |(prologue, period): &(Vec<u32>, Vec<u32>)| Lane {
            prologue: steps(prologue), period: steps(period), turns: most % 4, clears: clears.clone(),
        };
        Layout { regions: vec![GRANULE * 120; 2], lanes: lanes.iter().map(lane).collect(), slots }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Request { thread: u32, granules: usize },
    Borrow { granules: usize },
    Lend { thread: u32, granules: usize },
    Free { which: usize },
    Iteration { thread: u32 },
    Ended { thread: u32 },
    Clear,
    PinAgain,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (0..6_u32, 1..20_usize).prop_map(|(thread, granules)| Act::Request { thread, granules }),
        2 => (1..40_usize).prop_map(|granules| Act::Borrow { granules }),
        2 => (0..6_u32, 1..40_usize).prop_map(|(thread, granules)| Act::Lend { thread, granules }),
        6 => any::<usize>().prop_map(|which| Act::Free { which }),
        1 => (0..6_u32).prop_map(|thread| Act::Iteration { thread }),
        1 => (0..6_u32).prop_map(|thread| Act::Ended { thread }),
        1 => Just(Act::Clear),
        1 => Just(Act::PinAgain),
    ];
    vec(act, 0..400)
}

#[derive(Clone, Copy, Debug)]
enum Held {
    Slot(u32),
    Borrowed(Borrowed),
}

/// What is live, by address: the end, and who has it.
#[derive(Default)]
struct Model(BTreeMap<usize, (usize, Held)>);

impl Model {
    fn take(&mut self, address: usize, bytes: usize, held: Held) {
        let end = address + bytes;
        if let Some((&other, &(other_end, _))) = self.0.range(..end).next_back() {
            assert!(other_end <= address, "{other:#x}..{other_end:#x} is live at {address:#x}");
        }
        self.0.insert(address, (end, held));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_plan_makes_blocks_overlap(layout in layouts(), acts in acts(), learns: bool) {
        let mut slots = if learns { learning(&layout) } else { pinned(&layout) };
        let mut model = Model::default();
        let mut gone: Vec<usize> = Vec::new();
        for act in acts {
            match act {
                Act::Request { thread, granules } => {
                    let bytes = granules * GRANULE - 7;
                    if let Some(taken) = slots.request(thread, bytes) {
                        let slot = layout.slots[taken.slot as usize];
                        let base = BASE * (slot.region as usize + 1);
                        prop_assert_eq!(slot.bytes, granules * GRANULE);
                        prop_assert_eq!(taken.address, base + slot.offset);
                        prop_assert!(!gone.contains(&(slot.region as usize)));
                        prop_assert_eq!(slots.at(taken.address), Some(taken.slot));
                        model.take(taken.address, slot.bytes, Held::Slot(taken.slot));
                    }
                }
                Act::Borrow { granules } => {
                    if let Some(it) = slots.borrow(granules * GRANULE) {
                        let region = it.address / BASE - 1;
                        prop_assert!(it.address % BASE + it.bytes <= layout.regions[region]);
                        prop_assert!(!gone.contains(&region));
                        model.take(it.address, it.bytes, Held::Borrowed(it));
                    }
                }
                Act::Lend { thread, granules } => match slots.lend(thread, granules * GRANULE) {
                    Some(Lent::Slot(it)) => {
                        let bytes = slots.bytes_of(it.slot);
                        prop_assert!(bytes >= granules * GRANULE);
                        model.take(it.address, bytes, Held::Slot(it.slot));
                    }
                    Some(Lent::Place(it)) => {
                        let region = it.address / BASE - 1;
                        prop_assert!(it.address % BASE + it.bytes <= layout.regions[region]);
                        model.take(it.address, it.bytes, Held::Borrowed(it));
                    }
                    Some(Lent::Needs(slot, region)) => {
                        prop_assert_eq!(slot.and_then(|it| slots.serve_needed(it)), None);
                        prop_assert!(gone.contains(&region));
                        gone.retain(|&it| it != region);
                        slots.pinned(region, BASE * (region + 1));
                        if let Some(slot) = slot {
                            let before = slots.counts();
                            let it = slots.serve_needed(slot).unwrap();
                            let after = slots.counts();
                            prop_assert_eq!(before.misses + before.unplanned, after.misses + after.unplanned + 1);
                            model.take(it.address, slots.bytes_of(slot), Held::Slot(slot));
                        } else {
                            let it = slots.lend_any(granules * GRANULE).unwrap();
                            model.take(it.address, it.bytes, Held::Borrowed(it));
                        }
                    }
                    None => {}
                },
                Act::Free { which } if !model.0.is_empty() => {
                    let address = *model.0.keys().nth(which % model.0.len()).unwrap();
                    let (_, held) = model.0.remove(&address).unwrap();
                    match held {
                        Held::Slot(slot) => {
                            prop_assert!(slots.release(slot));
                            prop_assert!(!slots.release(slot), "twice");
                        }
                        Held::Borrowed(it) => {
                            prop_assert!(slots.give_back(it.address));
                            prop_assert!(!slots.give_back(it.address), "twice");
                        }
                    }
                }
                Act::Free { .. } => {}
                Act::Iteration { thread } => slots.iteration(thread),
                Act::Ended { thread } => slots.thread_ended(thread),
                Act::Clear => {
                    let idle = slots.idle_bytes();
                    let mut taken = if slots.foresees_a_clear() {
                        slots.take_unwanted()
                    } else {
                        vec![]
                    };
                    taken.extend(slots.take_idle());
                    let bytes: usize = taken.iter().map(|it| it.1.len()).sum();
                    prop_assert_eq!((bytes, slots.idle_bytes()), (idle, 0));
                    for (region, range) in taken {
                        let inside = model.0.range(range).count();
                        prop_assert_eq!(inside, 0);
                        gone.push(region);
                    }
                }
                Act::PinAgain => {
                    let missing: Vec<_> = slots.missing().collect();
                    prop_assert_eq!(missing.len(), gone.len());
                    for (region, _) in missing {
                        slots.pinned(region, BASE * (region + 1));
                    }
                    gone.clear();
                }
            }
            let shown: usize = slots.regions().iter().map(|(_, parts)| parts.len()).sum();
            prop_assert_eq!(shown, model.0.len());
        }
    }
}

/// Numbers that differ from seed to seed.
fn random(seed: &mut u64) -> usize {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 33) as usize
}

#[test]
fn requests_that_differ_at_random_cost_little() {
    for kinds in [3, 8, 32] {
        let mut seed = 0x9E37_79B9_7F4A_7C15 ^ kinds as u64;
        let sizes: Vec<usize> = (0..200).map(|_| 1 + random(&mut seed) % kinds).collect();
        let mut slots = pinned(&row(&sizes));
        let (mut asked, mut hits) = (0, 0);
        for _ in 0..50 {
            let mut held = Vec::new();
            for &size in &sizes {
                let size = match random(&mut seed) % 60 {
                    // Another size, one more, or one less: 5 % together.
                    0 => 1 + random(&mut seed) % kinds,
                    1 => {
                        asked += 1;
                        let more = slots.request(0, (1 + random(&mut seed) % kinds) * GRANULE);
                        held.extend(more.map(|it| it.slot));
                        size
                    }
                    2 => continue,
                    _ => size,
                };
                asked += 1;
                if let Some(taken) = slots.request(0, size * GRANULE) {
                    hits += 1;
                    held.push(taken.slot);
                }
            }
            for slot in held {
                assert!(slots.release(slot));
            }
        }
        println!("{kinds} sizes: {:.1} % planned", 100.0 * f64::from(hits) / f64::from(asked));
        assert!(hits * 10 >= asked * 9, "{hits} of {asked} with {kinds} sizes");
    }
}

#[test]
fn an_iteration_mark_puts_the_lane_back() {
    let sizes = [5, 6, 5, 6, 5, 6, 5, 6, 5, 6, 5, 6];
    let mut slots = pinned(&row(&sizes));
    let three = |slots: &mut Slots| [0, 1, 2].map(|at| slots.request(0, sizes[at] * GRANULE));
    let first = three(&mut slots);
    assert!(first.iter().flatten().all(|it| slots.release(it.slot)));
    slots.iteration(0);
    assert_eq!(first, three(&mut slots));
    assert_eq!(slots.counts().resyncs, 1);
}

#[test]
fn what_the_plan_leaves_idle_is_lent_and_comes_back() {
    let mut slots = pinned(&row(&[4, 2, 8]));
    let taken = slots.request(0, 4 * GRANULE).unwrap();
    assert_eq!(taken.address, BASE);
    let lent = slots.borrow(2 * GRANULE - 5).unwrap();
    assert_eq!((lent.address, lent.bytes), (BASE + 4 * GRANULE, 2 * GRANULE));
    assert_eq!(slots.request(0, 2 * GRANULE), None, "its place is lent");
    assert_eq!(slots.counts().misses, 1);
    assert_eq!(slots.borrow(9 * GRANULE), None);
    assert!(slots.give_back(lent.address));
    assert!(slots.borrow(10 * GRANULE).is_some());
    assert_eq!(slots.borrow(usize::MAX), None);
    assert_eq!(slots.request(0, usize::MAX), None);
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let wrong: [fn(&mut Layout); 5] = [
        |it| it.slots[1].bytes = 5,
        |it| it.slots[1].bytes = 0,
        |it| it.slots[1].offset = usize::MAX - 4095,
        |it| it.slots[0].region = 1,
        |it| it.lanes[0].period[1] = 2,
    ];
    for change in wrong {
        let mut layout = row(&[1, 2]);
        assert!(Slots::new(&layout).is_ok());
        change(&mut layout);
        assert!(Slots::new(&layout).is_err(), "{layout:?}");
    }
}
