//! Which requests wait for which pins, and for how long at most.

use super::*;

/// A handle in which a request has a block of 4 MiB, whose pin is reported to have taken so many
/// milliseconds, and a worker's pin of a segment is endless. The worker's pins are reported to take none.
fn beside_a_worker(milliseconds: usize) -> (Tested, Endless) {
    let handle = ahead(2);
    handle.warm_up(true);
    let whole = [(); 2].map(|()| handle.request(64 * MIB).unwrap());
    let filling = &numbers(handle).filling;
    filling.set(milliseconds * 1_000_000 / 4);
    handle.request(4 * MIB).unwrap();
    settled(handle);
    for grant in whole {
        handle.release(grant.block);
    }
    handle.empty_cache();
    assert_eq!(pinned(handle), [4]);
    filling.set(0);
    numbers(handle).asked.lock().unwrap().clear();
    (handle, pinning_ahead(handle))
}

#[test]
fn what_is_soon_over_is_waited_for() {
    let (handle, endless) = beside_a_worker(600_000);
    let misses = handle.stats().unwrap().misses;
    thread::scope(|scope| {
        let request = scope.spawn(|| handle.request(4 * MIB).unwrap());
        until("the request misses", || handle.stats().unwrap().misses > misses);
        drop(endless);
        let grant = request.join().unwrap();
        let served = asked(handle).iter().all(|mib| *mib == 64);
        assert!(served, "by nothing but the worker's: {:?}", asked(handle));
        handle.release(grant.block);
    });
}

#[test]
fn what_takes_longer_than_it_should_is_not() {
    let (handle, endless) = beside_a_worker(50);
    assert!(handle.request(4 * MIB).is_some());
    assert_eq!(asked(handle), [64, 4], "after half of that, its own");
    assert_eq!(numbers(handle).stopped.get(), 0);
    drop(endless);
    settled(handle);
    assert!(pinned(handle).contains(&64), "and the worker goes on");
}

#[test]
fn the_worker_stands_still_while_a_request_pins() {
    let handle = ahead(2);
    numbers(handle).in_the_driver.set(100 * MIB);
    let endless = pinning_ahead(handle);
    thread::scope(|scope| {
        let request = scope.spawn(|| handle.request(100 * MIB).unwrap());
        until("the request pins", || asked(handle) == [64, 100]);
        until("the worker stands still", || {
            let polls = || numbers(handle).polls.get();
            let before = polls();
            handle.cell.has_changed();
            thread::sleep(Duration::from_millis(50));
            polls() == before
        });
        endless.from(100 * MIB);
        handle.cell.has_changed();
        assert_eq!(pinned(handle), NONE);
        drop(endless);
        handle.release(request.join().unwrap().block);
    });
    settled(handle);
    assert_eq!(pinned(handle)[..1], [64]);
    assert_eq!(numbers(handle).stopped.get(), 0);
}
