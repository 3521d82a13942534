//! A plan that is made of a run on a full device reserves less than the run did, whatever it would have with more room.

use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;

const MIB: u64 = 1 << 20;

/// What a plan reserves, in MiB, of a program for which PyTorch's allocator would have 160 with room enough, and has had `most`: with
/// 30 given back and taken again, and the cache emptied there, or not.
fn planned(most: u64, empties: bool) -> u64 {
    let mut record = DeviceRecord::new(u32::MAX);
    record.took(0, most * MIB);
    for step in 0..31 {
        if step == 20 {
            record.gave(0, 30 * MIB);
            if empties {
                record.emptied();
            }
            record.took(0, 30 * MIB);
        }
        let sizes: &[u64] = if step < 30 { &[30, 16, 24] } else { &[90] };
        for (id, mib) in (0..).zip(sizes) {
            assert!(record.request((0, 0), id, mib * MIB));
        }
        (0..3).for_each(|id| record.over(0, id));
    }
    record.plan(&Options::default(), &|| false).reserved() / MIB
}

#[test]
fn less_than_the_run_did() {
    assert_eq!(planned(100, false), 90);
    assert_eq!(planned(90, false), 0);
    assert_eq!(planned(90, true), 90);
}

#[test]
fn a_device_that_only_a_pool_uses_has_no_plan() {
    let mut record = DeviceRecord::new(u32::MAX);
    record.took(1, MIB);
    assert!(record.plan(&Options::default(), &|| false).plans.is_empty());
}
