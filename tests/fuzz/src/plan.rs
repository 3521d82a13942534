//! The readers of plan files: of pinned memory, and of device memory.
//!
//! Changed bytes rarely have the right checksum. So a text that is refused for that alone is read once more with the
//! sum that the reader wants: what lies behind the sum is tried as well.

use pinbuddy_plan::Plan;
use pinbuddy_plan::file::Error;
use pinbuddy_plan::file::device::DevicePlan;

/// Reads `bytes` as a plan: what was read holds its invariants, and is written and read again, the same;
/// errors say something.
pub fn run(bytes: &[u8]) {
    let Some(plan) = read(bytes, Plan::read) else {
        return;
    };
    plan.check().unwrap();
    let mut written = Vec::new();
    plan.write(&mut written).unwrap();
    assert_eq!(Plan::read(&crate::text(&written)).unwrap(), plan);
}

/// The same for plans of device memory; besides, no stream has two.
pub fn device(bytes: &[u8]) {
    let Some(plans) = read(bytes, DevicePlan::read) else {
        return;
    };
    let mut streams: Vec<_> = plans.plans.iter().map(|it| it.0).collect();
    streams.sort_unstable();
    assert!(streams.windows(2).all(|it| it[0] != it[1]), "{streams:?}");
    plans.plans.iter().for_each(|it| it.1.check().unwrap());
    let regions = plans.plans.iter().flat_map(|it| &it.1.regions);
    assert_eq!(plans.reserved(), regions.sum::<u64>());
    let mut written = Vec::new();
    plans.write(&mut written).unwrap();
    assert_eq!(DevicePlan::read(&crate::text(&written)).unwrap(), plans);
}

/// What `reader` makes of the bytes, with right sums in the place of wrong ones.
fn read<T>(bytes: &[u8], reader: fn(&str) -> Result<T, Error>) -> Option<T> {
    let mut text = crate::text(bytes);
    // A file has a sum for each plan in it, and one of all; more than some need not be mended.
    for _ in 0..8 {
        let why = match reader(&text) {
            Ok(read) => return Some(read),
            Err(why) => why,
        };
        assert!(!why.to_string().is_empty());
        let Error::Checksum { expected: Some(expected), found } = why else {
            return None;
        };
        let mended = text.replace(&format!("\"checksum\":{expected}"), &format!("\"checksum\":{found}"));
        if mended == text {
            return None;
        }
        text = mended;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_a_wrong_sum_is_read() {
        let text = include_str!("../corpus/device_plan/two_streams");
        let before = DevicePlan::read(text).unwrap();
        let changed = text.replace("65536", "131072");
        assert!(DevicePlan::read(&changed).is_err(), "the sum is of it");
        let after = read(changed.as_bytes(), DevicePlan::read).unwrap();
        assert!(after.reserved() > before.reserved());
    }
}
