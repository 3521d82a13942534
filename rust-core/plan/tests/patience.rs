//! Searches that are asked to stop before they have a plan.

use pinbuddy_plan::Options;
use pinbuddy_plan::device::{DeviceRecord, Kind};
use pinbuddy_plan::file::device::DevicePlan;

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
