//! The reader of PyTorch's memory snapshots, and of tables of the same events.

use std::collections::BTreeMap;

use pinbuddy_events::{Op, Whose};
use pinbuddy_snapshot::Snapshot;

/// Reads `bytes` as a snapshot: there are no more events than bytes, and each allocator's make sense in
/// their order.
pub fn run(bytes: &[u8]) {
    if Snapshot::is_table(bytes) {
        match Snapshot::read_table(bytes) {
            Ok(table) => (0..table.devices.len() as u32).for_each(|it| check(&table, Whose::Device(it), bytes.len())),
            Err(why) => assert!(!why.to_string().is_empty()),
        }
        return;
    }
    let snapshot = match Snapshot::read(bytes) {
        Ok(snapshot) => snapshot,
        Err(why) => {
            assert!(why.offset <= bytes.len() as u64, "{why}");
            assert!(!why.to_string().is_empty());
            return;
        }
    };
    assert!(snapshot.whose().is_some(), "a snapshot of nothing");
    check(&snapshot, Whose::Host, bytes.len());
    for device in 0..snapshot.devices.len() as u32 {
        check(&snapshot, Whose::Device(device), bytes.len());
    }
}

fn check(snapshot: &Snapshot, whose: Whose, most: usize) {
    // At least the four keys of each, each a reference of two bytes; a line of a table has as many fields and an end.
    assert!(snapshot.entries(whose).len() <= most / 8);
    // By id: whether it was freed.
    let mut known = BTreeMap::new();
    let (mut at, mut next) = (0, 0);
    for event in snapshot.events(whose) {
        assert!(event.at >= at, "time goes back");
        at = event.at;
        match event.op {
            Op::Request { id, bytes, .. } => {
                assert!(id == next && bytes > 0);
                next += 1;
                known.insert(id, false);
            }
            Op::Free { id, .. } => assert_eq!(known.insert(id, true), Some(false), "freed twice"),
            Op::Safe { id } => assert_eq!(known.remove(&id), Some(true), "safe, not freed"),
            Op::SegmentAlloc { .. } | Op::SegmentFree { .. } | Op::Iteration => {}
            other => panic!("{other:?} is in no snapshot"),
        }
    }
}
