//! A second run of `checkpoint`, which empties its cache in its loop and behind it: what is pinned.

use std::collections::HashMap;

use pinbuddy_events::Op;
use pinbuddy_plan::file::GRANULE;
use pinbuddy_plan::{Options, plan};
use pinbuddy_replay::workload::Workload;
use pinbuddy_slots::Slots;

use crate::programs::record;

/// What a run asks for. A block may be used again as soon as it is freed: streams are done by then.
fn events(steps: u32) -> Vec<Op> {
    let workload = Workload::named("checkpoint").unwrap();
    let matters = |op: &Op| matches!(op, Op::Request { .. } | Op::Free { .. } | Op::Clear);
    let all = workload.events(1, steps).map(|it| it.op.on_thread(0));
    all.filter(matters).collect()
}

/// A run with slots: pins after the warm-up, and of each clear the bytes that live and those that stay pinned.
fn second_run(events: &[Op], mut slots: Slots) -> (u32, Vec<(u64, u64)>) {
    let pin = |slots: &mut Slots, region: usize| slots.pinned(region, (region + 1) << 40);
    (0..slots.lengths().len()).for_each(|region| pin(&mut slots, region));
    let (mut live, mut clears, mut pins) = (HashMap::new(), Vec::new(), 0);
    for event in events {
        match *event {
            Op::Request { id, bytes, .. } => {
                let mut taken = slots.request(0, bytes as usize);
                if taken.is_none() {
                    let (slot, region) = slots.take_needed(bytes as usize).unwrap();
                    pin(&mut slots, region);
                    pins += 1;
                    taken = slots.serve_needed(slot);
                }
                live.insert(id, (taken.unwrap().slot, bytes.next_multiple_of(GRANULE)));
            }
            Op::Free { id, .. } => assert!(slots.release(live.remove(&id).unwrap().0)),
            Op::Clear => {
                drop(if slots.foresees_a_clear() { slots.take_unwanted() } else { slots.take_idle() });
                let missing: usize = slots.missing().map(|it| it.1).sum();
                let pinned = slots.lengths().iter().sum::<usize>() - missing;
                let bytes = live.values().map(|it| it.1).sum();
                clears.push((bytes, pinned as u64));
            }
            _ => {}
        }
    }
    (pins, clears)
}

#[test]
fn nothing_is_pinned_after_the_warm_up_and_a_last_clear_returns_all_that_is_idle() {
    // Steps of the run that is recorded, and of the other: as many, more, fewer, and an end while a state is staged.
    for (recorded, steps) in [(25, 25), (25, 55), (40, 30), (25, 52)] {
        let record = record(&events(recorded));
        let plan = plan(&record, &Options::default(), &|| false);
        // Batches that lie apart cost a megabyte.
        assert!(plan.reserved() <= record.peak() + record.peak() / 1000);
        let slots = Slots::new(&plan.layout(plan.regions.len())).unwrap();
        let events = events(steps);
        let (pins, clears) = second_run(&events, slots);
        assert_eq!(pins, 0, "{recorded}, {steps}");
        let &(live, pinned) = clears.last().unwrap();
        assert_eq!(live == 512 << 10, steps != 52);
        let is_little = pinned <= live + live / 1000;
        assert!(is_little, "{recorded}, {steps}: {pinned} for {live}");
    }
}
