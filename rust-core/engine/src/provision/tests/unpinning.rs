//! Who unpins idle memory, and when it makes way.

use super::*;
use crate::units::Home;

#[test]
fn what_cannot_be_had_takes_nothing_away() {
    let mut caller = Caller::with_idle(64 * MIB);
    assert!(caller.it.give_way(16 << 40, Some(20 * GIB)).is_empty());
    let gone = caller.it.give_way(10 * GIB, Some(10 * GIB));
    assert_eq!(gone.len(), 1, "this might be had");
}

#[test]
fn a_request_above_the_budget_has_idle_memory_make_way() {
    let mut caller = Caller::with_idle(512 * MIB);
    caller.left = 100 * MIB;
    let mut want = Want::new(550 * MIB);
    let own = permit(caller.first_step(&mut want));
    assert_eq!(
        (own.bytes, own.unpin.len()),
        (612 * MIB, 1),
        "with room for growth, since the last region was too short"
    );
    caller.it.refused(own.id, Refusal::Driver);
    want.refused(Refusal::Driver, own.bytes);
    caller.left = 612 * MIB;
    let less = permit(caller.step(&mut want));
    assert_eq!((less.bytes, less.unpin.len()), (550 * MIB, 0));
    // And where all of it is not enough, upstream has the room.
    let mut caller = Caller::with_idle(512 * MIB);
    caller.left = 0;
    let mut want = Want::new(900 * MIB);
    match caller.first_step(&mut want) {
        Step::PassThrough { unpin, why } => {
            assert_eq!((unpin.len(), why), (1, Some(Refusal::Budget)));
        }
        other => panic!("{other:?}"),
    }
}

/// Else the budget would be used up while the worker unpins, and upstream would pin beyond it.
#[test]
fn a_request_unpins_what_it_replaces_where_the_budget_is_nearly_used_up() {
    for (left, unpins) in [(3000, 1), (8000, 0)] {
        let mut caller = Caller::with_idle(1030 * MIB);
        caller.left = left * MIB;
        let own = permit(caller.first_step(&mut Want::new(1040 * MIB)));
        assert_eq!(own.unpin.len(), unpins, "{left} MiB are left");
    }
}

/// The driver waits for running kernels before it unpins, so a request would. Requests up to a quarter of a segment.
#[test]
fn a_worker_that_keeps_up_unpins_for_all_requests() {
    let mut caller = Caller::new(Settings { segment_bytes: 256 * MIB, ..settings() });
    for mib in 16..=64 {
        let mut blocks = Vec::new();
        for _ in 0..6 {
            let mut want = Want::new(mib * MIB);
            match caller.first_step(&mut want) {
                Step::Pin(permit) => {
                    assert_eq!(permit.unpin.len(), 0);
                    blocks.extend(caller.pinned(&permit));
                }
                Step::PassThrough { unpin, .. } => assert_eq!(unpin.len(), 0),
                Step::Block(block) => blocks.push(block),
                other => panic!("{other:?}"),
            }
            caller.work();
        }
        blocks.into_iter().for_each(|it| caller.release(it));
    }
    let pinned: usize = caller.pins.iter().sum();
    let held = caller.it.engine().pinned_bytes();
    assert!(pinned * MIB > held, "nothing had to go: {pinned} MiB were pinned");
}

#[test]
fn what_the_worker_is_unpinning_counts_for_who_needs_memory() {
    let mut caller = Caller::new(Settings { count: Some(1), ..settings() });
    caller.it.urge(Home(0));
    assert!(caller.it.hire());
    let ahead = caller.pin_ahead();
    caller.it.clear();
    caller.pinned(&ahead);
    let Work::Unpin(idle) = caller.it.work(caller.now, caller.left) else {
        panic!("it was cleared meanwhile");
    };
    assert_eq!(caller.it.unpinning(), GIB);
    assert!(caller.it.give_way(2 * GIB, Some(GIB)).is_empty());
    assert_eq!(idle.len(), 1);
    caller.it.unpinned();
    assert_eq!(caller.it.unpinning(), 0);
}
