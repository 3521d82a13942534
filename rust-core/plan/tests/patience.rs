//! Searches that are asked to stop before they have a plan.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pinbuddy_plan::Options;
use pinbuddy_plan::device::{DeviceRecord, Kind};
use pinbuddy_plan::file::device::DevicePlan;

use crate::programs::Random;

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
