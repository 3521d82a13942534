//! Memory that nobody uses goes back by itself, and comes back.
//!
//! Which regions go is tested in the provisioner; here, that they are unpinned, a plan's too, and by a thread.

use pinbuddy_core::WarmUp;

use super::planned::{iterate, layout};
use super::*;

fn planned(warm_up: WarmUp, idle_s: &str) -> Tested {
    planned::with(&layout(), warm_up, &[("BUDDY_IDLE_S", idle_s)])
}

fn returned(handle: Tested) -> usize {
    handle.report()["engine"]["returned_bytes"].as_u64().unwrap() as usize / MIB
}

#[test]
fn what_is_idle_goes_back_at_once_or_never() {
    for (idle_s, left) in [("0", 0), ("-1", 1), ("60", 1)] {
        let handle = with(&[("BUDDY_IDLE_S", idle_s), ("BUDDY_WARMUP", "off")]);
        let block = handle.request(8 * MIB).unwrap().block;
        thread::sleep(Duration::from_millis(200));
        assert_eq!(pinned(handle), [8], "a live block");
        handle.release(block);
        if left == 0 {
            until("the thread unpins", || pinned(handle).is_empty());
            settled(handle);
            assert_eq!(returned(handle), 8);
            let again = handle.request(8 * MIB).expect("pinned anew").block;
            handle.defer(again);
            numbers(handle).completed.lock().unwrap().push((handle, again));
            until("what streams are done with is idle, too", || pinned(handle).is_empty());
        } else {
            thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(pinned(handle).len(), left, "{idle_s}");
        handle.close();
    }
}

#[test]
fn a_plan_goes_back_and_one_request_brings_all_of_it() {
    for (warm_up, waits) in [(WarmUp::Sync, true), (WarmUp::Background, false)] {
        let handle = planned(warm_up, "0");
        until("all is pinned", || {
            if let Some(grant) = handle.request_planned(0, 32 * MIB) {
                handle.release(grant.block);
            }
            handle.report()["plan"]["hits"] != 0
        });
        until("all of it goes", || pinned(handle).is_empty());
        assert!(returned(handle) >= 96);
        let served = handle.request_planned(0, 32 * MIB);
        assert!(served.is_some() || !waits);
        until("both regions come", || asked(handle).len() >= 4);
        handle.close();
    }
}

#[test]
fn a_plan_that_runs_or_has_not_begun_stays() {
    let handle = planned(WarmUp::Sync, "1");
    handle.warm_up(true);
    handle.return_idle();
    thread::sleep(Duration::from_millis(1100));
    handle.return_idle();
    assert_eq!(pinned(handle), [32, 64], "it is ready");
    iterate(handle);
    let live = handle.request_planned(0, 32 * MIB).unwrap();
    handle.return_idle();
    assert_eq!(pinned(handle), [32, 64]);
    until("the idle region goes", || {
        handle.return_idle();
        pinned(handle) == [64]
    });
    let next = handle.request_planned(0, 32 * MIB).unwrap();
    until("the other comes before it is needed", || pinned(handle) == [32, 64]);
    [live, next].iter().for_each(|it| handle.release(it.block));
    handle.close();
}

#[test]
fn a_child_of_a_process_that_looks_is_off_and_unpins_nothing() {
    let handle = with(&[("BUDDY_IDLE_S", "0"), ("BUDDY_WARMUP", "off")]);
    handle.request(8 * MIB).unwrap();
    assert!(handle.enter_child());
    let before = pinned(handle);
    handle.return_idle();
    assert_eq!(pinned(handle), before);
}

#[test]
fn the_end_does_not_wait_for_the_next_look() {
    let handle = with(&[("BUDDY_IDLE_S", "3600"), ("BUDDY_WARMUP", "off")]);
    handle.request(8 * MIB).unwrap();
    let began = Instant::now();
    handle.close();
    assert!(began.elapsed() < Duration::from_secs(5));
    handle.return_idle();
    assert_eq!(pinned(handle), [8]);
}
