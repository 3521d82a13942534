//! Requests, growth, and what happens when something is broken.

use super::*;

#[test]
fn below_the_threshold_nothing_is_served_and_nothing_pinned() {
    let handle = sync(4);
    assert_eq!(handle.request(4 * MIB - 1), None);
    assert_eq!(pinned(handle), NONE);
    assert!(handle.request(4 * MIB).is_some());
}

#[test]
fn nothing_fits_and_a_whole_segment_is_pinned() {
    let handle = off();
    handle.request(60 * MIB).unwrap();
    assert_eq!(pinned(handle), [64]);
    handle.request(60 * MIB).unwrap();
    assert_eq!(pinned(handle), [64, 64]);
    assert!(handle.request(4 * MIB).is_some());
    assert_eq!(pinned(handle), [64, 64], "what is left over serves others");
}

#[test]
fn nothing_fits_and_exactly_the_request_is_pinned_where_that_is_asked_for() {
    let handle = with(&[("BUDDY_WARMUP", "off"), ("BUDDY_GROWTH", "exact")]);
    handle.request(5 * MIB).unwrap();
    let grant = handle.request(33 * MIB + 1).unwrap();
    assert_eq!(pinned(handle), [5, 33], "and a granule");
    handle.release(grant.block);
    handle.request(20 * MIB).unwrap();
    assert_eq!(
        pinned(handle),
        [5, 33],
        "such a region is split as any other"
    );
}

#[test]
fn a_request_above_a_segment_gets_a_region_that_is_kept_for_its_like() {
    let handle = off();
    let grant = handle.request(129 * MIB + 1).unwrap();
    assert_eq!(grant.block.bytes, 129 * MIB + 4096);
    assert_eq!(pinned(handle), [129], "and a granule: no power of two");
    handle.release(grant.block);
    let similar = handle.request(118 * MIB).unwrap();
    assert_eq!(pinned(handle), [129], "a tenth may be to spare");
    handle.release(similar.block);
    handle.request(100 * MIB).unwrap();
    assert_eq!(pinned(handle), [129, 100], "but not with a third");
}

#[test]
fn a_segment_of_odd_size_serves_a_request_as_long_as_itself() {
    let handle = with(&[
        ("BUDDY_WARMUP", "off"),
        ("BUDDY_BLOCK_SIZE_MB", "5"),
        ("BUDDY_GROWTH", "exact"),
    ]);
    assert!(handle.request(5 * MIB).is_some());
    handle.backing.left.store(0, Ordering::Relaxed);
    assert_eq!(handle.request(5 * MIB), None);
    assert!(!is_retired(handle));
    assert_eq!(pinned(handle), [5]);
}

#[test]
fn a_panic_retires_the_engine_and_goes_no_further() {
    let handle = sync(1);
    let live = handle.request(8 * MIB).unwrap();
    handle.backing.panics.store(true, Ordering::Relaxed);
    assert_eq!(handle.request(100 * MIB), None);
    assert!(is_retired(handle));
    assert_eq!(
        handle.request(8 * MIB),
        None,
        "everything is upstream's now"
    );
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(
        pinned(handle),
        [64],
        "a live block's memory is never unpinned after that"
    );
    assert!(!handle.is_on() && !handle.warm_up(true));
    assert_eq!(handle.state_line(), "pinbuddy: the engine is retired");
}

#[test]
fn a_panic_under_the_lock_leaves_live_blocks_alone() {
    let handle = sync(1);
    let live = handle.request(8 * MIB).unwrap();
    handle.break_down();
    assert_eq!(handle.request(8 * MIB), None);
    assert!(is_retired(handle));
    handle.defer(live.block);
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), [64]);
    assert!(handle.stats().is_none() && handle.parts().is_empty());
}

#[test]
fn a_panic_in_the_background_retires_the_engine_too() {
    let handle = with(&[]);
    handle.backing.panics.store(true, Ordering::Relaxed);
    handle.warm_up(true);
    assert!(is_retired(handle));
}

#[test]
fn beside_kept_blocks_nothing_is_pinned_and_no_idle_segment_is_cut() {
    let handle = sync(2);
    let kept = Kept {
        blocks: 1,
        bytes: 8 * MIB as u64,
        ..Kept::default()
    };
    assert_eq!(handle.request_beside(8 * MIB, &Kept::default()), None);
    let first = handle.request(8 * MIB).unwrap();
    // The user frees it, and it is kept: what is live at once stays one block.
    let second = handle.request_beside(40 * MIB, &kept).unwrap();
    assert_eq!(second.block.segment, first.block.segment);
    assert_eq!(handle.request_beside(40 * MIB, &kept), None);
    let stats = handle.stats().unwrap();
    assert_eq!(stats.live_bytes.peak, 40 * MIB as u64);
    assert_eq!((stats.hits, stats.misses), (2, 1));
    assert_eq!(pinned(handle), [64, 64]);
}

#[test]
fn a_block_is_kept_once_its_events_are_complete() {
    let handle = sync(1);
    let grant = handle.request(8 * MIB).unwrap();
    handle.defer(grant.block);
    handle.keep(grant.block);
    handle.settle(&Kept {
        blocks: 1,
        bytes: 8 * MIB as u64,
        ..Kept::default()
    });
    handle.release(grant.block);
    let stats = handle.stats().unwrap();
    assert_eq!(stats.live_bytes.allocated, stats.live_bytes.freed);
    assert_eq!(stats.pending_blocks.current, 0);
    assert!(handle.is_on());
    let live = handle.request(8 * MIB).unwrap();
    handle.keep(live.block);
    assert!(is_retired(handle), "it was not pending");
}

#[test]
fn misuse_retires_the_engine_instead_of_corrupting_it() {
    let handle = sync(1);
    let grant = handle.request(8 * MIB).unwrap();
    handle.release(grant.block);
    handle.release(grant.block);
    assert!(is_retired(handle));
}

#[test]
fn a_forked_child_serves_nothing_and_takes_no_lock() {
    let handle = with(&[("BUDDY_WARMUP", "sync")]);
    let grant = handle.request(8 * MIB).unwrap();
    // As if another thread of the parent's held both locks at the fork.
    let _held = handle.engine.lock();
    let _turn = handle.warm_up.begin(crate::warmup::Task::Growth);
    handle.forked();
    assert_eq!(handle.request(8 * MIB), None);
    handle.release(grant.block);
    handle.empty_cache();
    handle.close();
    assert!(!handle.is_on() && !handle.warm_up(true) && handle.stats().is_none());
    assert_eq!(handle.report()["state"], "forked");
    assert_eq!(pinned(handle).len(), 4, "the pins are the parent's");
}

#[test]
fn a_child_of_a_parent_that_used_nothing_has_an_engine() {
    let handle = sync(1);
    assert!(!handle.forked());
    assert!(handle.is_on() && handle.request(8 * MIB).is_some());
    assert!(handle.forked());
    assert!(!handle.is_on());
}

/// Sixteen threads, each block freed by another thread than it was made by, with clearing and
/// reading beside them.
#[test]
fn many_threads_never_share_a_block() {
    let handle = sync(2);
    let (sender, receiver) = std::sync::mpsc::channel::<Grant>();
    let receiver = Mutex::new(receiver);
    let owned: Mutex<std::collections::BTreeMap<usize, usize>> = Mutex::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|maker| {
                let (sender, owned) = (sender.clone(), &owned);
                scope.spawn(move || {
                    for round in 0..200 {
                        let bytes = (4 + (maker * 7 + round) % 23) * MIB;
                        let grant = handle.request(bytes).unwrap();
                        let (from, to) = (grant.address, grant.address + grant.block.bytes);
                        let mut owned = owned.lock().unwrap();
                        let before = owned.range(..to).next_back();
                        assert!(before.is_none_or(|(_, end)| *end <= from), "overlap");
                        owned.insert(from, to);
                        drop(owned);
                        sender.send(grant).unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let Ok(grant) = receiver.lock().unwrap().recv() else {
                        break;
                    };
                    owned.lock().unwrap().remove(&grant.address);
                    handle.release(grant.block);
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                handle.empty_cache();
                let stats = handle.stats().unwrap();
                let parts = stats.live_bytes.current + stats.pending_bytes.current;
                assert_eq!(parts + stats.idle_bytes, stats.pinned_bytes.current);
                handle.parts();
            }
        });
        for maker in makers {
            maker.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(!is_retired(handle));
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE, "all of it came back");
    assert_eq!(handle.purse().left(), 1 << 50);
}

#[test]
fn every_pinned_byte_is_in_one_part() {
    let handle = sync(2);
    let first = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    let last = handle.request(8 * MIB).unwrap();
    handle.defer(freed.block);
    handle.release(first.block);
    let parts = handle.parts();
    let sum = |which: fn(&super::super::Part) -> bool| -> usize {
        parts.iter().filter(|it| which(it)).map(|it| it.bytes).sum()
    };
    assert_eq!(sum(|it| it.live), 8 * MIB);
    assert_eq!(sum(|it| it.pending), 16 * MIB);
    assert_eq!(sum(|_| true), 2 * SEGMENT);
    let live = parts.iter().find(|it| it.live).unwrap();
    assert_eq!(live.address, last.address);
}

#[test]
fn the_report_is_what_people_read() {
    let handle = sync(1);
    let kept = handle.request(8 * MIB).unwrap();
    let freed = handle.request(16 * MIB).unwrap();
    handle.defer(freed.block);
    insta::assert_snapshot!(serde_json::to_string_pretty(&handle.report()).unwrap());
    insta::assert_snapshot!(
        "segments",
        serde_json::to_string_pretty(&handle.segments()).unwrap()
    );
    assert_eq!(
        handle.state_line(),
        "pinbuddy: 64 MiB pinned (8 MiB live, 16 MiB pending, 40 MiB idle, the longest free run \
         40 MiB); segments: 1; budget: 1048576 GiB; warm-up: done"
    );
    handle.release(kept.block);
    handle.release(freed.block);
}
