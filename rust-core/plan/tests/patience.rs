//! Searches that are asked to stop before they have a plan, and when they stop by themselves; a plan that is made of a run on a full
//! device reserves less than the run did, whatever it would have with more room.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pinbuddy_events::Op;
use pinbuddy_plan::device::{DeviceRecord, Kind};
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_plan::{Options, Record, plan};

use crate::programs::{Random, record};

/// A loop of two requests that fit into no segment of stock's together, as a device's.
fn device_loop(behind: Option<Kind>) -> DevicePlan {
    let mut record = DeviceRecord::new(u32::MAX);
    if let Some(kind) = behind {
        record.behind(kind);
    }
    for id in (0..1 << 16).step_by(2) {
        for (id, mib) in [(id, 11), (id + 1, 13)] {
            record.request((0, 0), id, mib << 20);
        }
        record.over(0, id);
        record.over(0, id + 1);
        record.iteration();
    }
    record.plan(&Options::default(), &|| true)
}

#[test]
fn a_long_record_of_a_device_is_not_replayed_on_once_time_is_up_but_for_a_process() {
    assert!(device_loop(None).plans.is_empty());
    assert!(!device_loop(Some(Kind::Torch)).plans.is_empty());
}

/// How often it is asked whether there is time, for a record of single blocks of these sizes, which the first one has room for: once
/// for each 16,384 acts of a replay.
fn asked(sizes: impl Iterator<Item = u64>) -> usize {
    let mut record = DeviceRecord::new(u32::MAX);
    for (id, mib) in (0..).zip(std::iter::once(24).chain(sizes)) {
        record.request((0, 0), id, mib << 20);
        record.over(0, id);
    }
    let asked = AtomicUsize::new(0);
    let stop = || {
        asked.fetch_add(1, Relaxed);
        false
    };
    assert!(record.plan(&Options::default(), &stop).plans.is_empty());
    asked.into_inner()
}

/// Of blocks that come by chance there are eight other orders.
#[test]
fn other_orders_are_replayed_only_for_a_plan_that_gains() {
    let mut random = Random::new(1);
    let drawn = asked((0..1 << 17).map(|_| 12 + 4 * random.below(4)));
    let by_turns = asked((0..1 << 17).map(|it| 12 + 4 * (it % 4)));
    assert!(drawn <= by_turns, "{drawn} of {by_turns}");
}

/// Steps that offload activations: what another stream used goes when they end, and one block stays for two more steps.
fn offloading() -> Record {
    const SIZES: [u64; 10] =
        [1_433_088, 1_433_088, 5_732_352, 5_732_352, 2_359_296, 1_433_088, 2_359_296, 5_732_352, 5_732_352, 2_359_296];
    let mut events = Vec::new();
    for step in 0..30 {
        let first = step * 11;
        events.extend((first..).zip(SIZES).map(|(id, bytes)| Op::request(id, bytes)));
        events.extend([8, 7, 3, 2].map(|it| Op::free(first + it)));
        events.push(Op::request(first + 10, 6_000_000));
        events.extend((step >= 2).then(|| Op::free(first - 12)));
        events.extend([0, 9, 5, 6, 4, 1].map(|it| Op::free(first + it)));
    }
    record(&events)
}

#[test]
fn a_search_ends_once_a_plan_of_pinned_memory_is_good_enough() {
    const MOST: usize = 100_000;
    let (record, asked) = (offloading(), AtomicUsize::new(0));
    let made = plan(&record, &Options::default(), &|| asked.fetch_add(1, Relaxed) > MOST);
    let asked = asked.into_inner();
    println!("{} of {} bytes, {asked} questions", made.reserved(), record.peak());
    assert!(
        asked < MOST && made.reserved() <= record.peak() / 1000 * 1005,
        "{} of {}, {asked}",
        made.reserved(),
        record.peak()
    );
}

/// What a plan reserves, in MiB, of a program for which PyTorch's allocator would have 160 with room enough, and has had `most`: with
/// 30 given back and taken again, and the cache emptied there, or not.
fn reserved(most: u64, empties: bool) -> u64 {
    let mut record = DeviceRecord::new(u32::MAX);
    record.took(0, most << 20);
    for step in 0..31 {
        if step == 20 {
            record.gave(0, 30 << 20);
            if empties {
                record.emptied();
            }
            record.took(0, 30 << 20);
        }
        let sizes: &[u64] = if step < 30 { &[30, 16, 24] } else { &[90] };
        for (id, mib) in (0..).zip(sizes) {
            assert!(record.request((0, 0), id, mib << 20));
        }
        (0..3).for_each(|id| record.over(0, id));
    }
    record.plan(&Options::default(), &|| false).reserved() >> 20
}

#[test]
fn a_plan_of_a_run_on_a_full_device_reserves_less_and_there_is_none_of_a_device_that_only_a_pool_uses() {
    assert_eq!([(100, false), (90, false), (90, true)].map(|it| reserved(it.0, it.1)), [90, 0, 90]);
    let mut record = DeviceRecord::new(u32::MAX);
    record.took(1, 1 << 20);
    assert!(record.plan(&Options::default(), &|| false).plans.is_empty());
}
