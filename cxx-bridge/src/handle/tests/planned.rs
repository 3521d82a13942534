//! Requests that a plan has places for: which are served there, and what becomes of its regions.
//!
//! Which slot serves which request is tested with the slots; here, that memory is there for it.

use pinbuddy_core::{Growth, Settings, WarmUp};
use pinbuddy_slots::{Lane, Layout, Slot, Slots};

use super::*;

/// A handle with this plan, that pins nothing else ahead.
pub(super) fn on(layout: &Layout, warm_up: WarmUp, max_mb: usize) -> Tested {
    with(layout, warm_up, &[("BUDDY_MAX_MB", &max_mb.to_string())])
}

/// The same with these settings.
pub(crate) fn with(layout: &Layout, warm_up: WarmUp, variables: &[(&str, &str)]) -> Tested {
    beside(0, layout, warm_up, variables)
}

/// The same with so many regions without slots.
pub(super) fn beside(count: usize, layout: &Layout, warm_up: WarmUp, variables: &[(&str, &str)]) -> Tested {
    let variables = [&[("BUDDY_THRESHOLD_MB", "0")], variables].concat();
    let (config, warnings) = read(&variables);
    assert!(warnings.is_empty(), "{warnings:?}");
    let settings = Settings { count: Some(count), growth: Growth::Exact, warm_up, ..config.of_the_provisioner() };
    let slots = Slots::new(layout).unwrap();
    let world: &'static Numbers = Box::leak(Box::new(Numbers::new(1 << 50)));
    let plan = Some((settings, slots));
    let handle = Handle::new(config, plan, world, Box::new(world), Box::new(world));
    Box::leak(Box::new(handle))
}

/// Regions of 64 and of 32 MiB, each with two slots of half its length, asked for in this order by one thread.
pub(super) fn layout() -> Layout {
    let slot = |mib: usize, region, at: usize| Slot { bytes: mib * MIB, region, offset: at * MIB };
    Layout {
        regions: vec![64 * MIB, 32 * MIB],
        slots: vec![slot(32, 0, 0), slot(32, 0, 32), slot(16, 1, 0), slot(16, 1, 16)],
        lanes: vec![Lane { period: vec![0, 1, 2, 3], ..Lane::default() }],
    }
}

pub(super) fn planned() -> Tested {
    on(&layout(), WarmUp::Sync, 1 << 20)
}

/// One iteration of it, all of which is served.
pub(super) fn iterate(handle: Tested) {
    for mib in [32, 32, 16, 16] {
        let grant = handle.request_planned(0, mib * MIB).unwrap();
        handle.release(grant.block);
    }
}

/// The plan's counters: hits, misses, unplanned and borrowed.
fn counts(handle: Tested) -> [u64; 4] {
    let plan = &handle.report()["plan"];
    ["hits", "misses", "unplanned", "borrowed"].map(|name| plan[name].as_u64().unwrap())
}

fn active(handle: Tested) -> usize {
    handle.stats().unwrap().active_bytes.current as usize
}

#[test]
fn requests_find_their_places_again_and_regions_are_pinned_once() {
    let handle = planned();
    assert_eq!(pinned(handle), NONE, "nothing is pinned before it is needed");
    let mut before = Vec::new();
    for round in 0..3 {
        let grants = [32, 32, 16, 16].map(|mib| handle.request_planned(0, mib * MIB - 5).unwrap());
        assert_eq!(asked(handle), [64, 32], "in the plan's order");
        assert_eq!(active(handle), 96 * MIB);
        let addresses = grants.map(|it| it.address).to_vec();
        assert_eq!(grants[1].address, grants[0].address + 32 * MIB);
        assert!(round == 0 || addresses == before);
        before = addresses;
        for (at, grant) in (0..).zip(grants) {
            assert_eq!(handle.slot_at(grant.address), Some(at));
            handle.release(grant.block);
            assert_eq!(handle.slot_at(grant.address), None);
        }
    }
    assert_eq!(counts(handle), [12, 0, 0, 0]);
    assert_eq!(active(handle), 0);
}

#[test]
fn blocks_whose_events_are_complete_make_room_before_anything_is_lent() {
    let handle = planned();
    let whole = [32, 32, 16, 16].map(|mib| handle.request_planned(0, mib * MIB).unwrap());
    handle.defer(whole[2].block);
    let completed = vec![(handle, whole[2].block)];
    *numbers(handle).completed.lock().unwrap() = completed;
    let lent = handle.request(10 * MIB).unwrap();
    assert_eq!(lent.address, whole[2].address);
    assert_eq!(asked(handle), [64, 32]);
}

/// All of the plan is in use, of which streams have one block; a mebibyte's pin is reported to have taken so many milliseconds.
fn streams_have_one(milliseconds: usize) -> (Tested, Grant) {
    let handle = planned();
    numbers(handle).filling.set(milliseconds * 1_000_000);
    let whole = [32, 32, 16, 16].map(|mib| handle.request_planned(0, mib * MIB).unwrap());
    handle.defer(whole[2].block);
    (handle, whole[2])
}

#[test]
fn a_request_rather_waits_for_a_stream_than_pins_beside_a_plan() {
    let (handle, pending) = streams_have_one(600_000);
    thread::scope(|scope| {
        let request = scope.spawn(|| handle.request(10 * MIB).unwrap());
        until("the request waits", || numbers(handle).waits_begun.get() > 1);
        thread::sleep(Duration::from_millis(2));
        numbers(handle).completed.lock().unwrap().push((handle, pending.block));
        assert_eq!(request.join().unwrap().address, pending.address);
    });
    assert_eq!(asked(handle), [64, 32]);
    assert!(handle.request(4 * MIB).is_some());
    assert_eq!(asked(handle), [64, 32, 4], "no stream has any, so nobody waits");
}

#[test]
fn a_request_that_waits_for_streams_in_vain_pins_once_that_would_have_taken_as_long() {
    let (handle, pending) = streams_have_one(2);
    let began = Instant::now();
    assert!(handle.request(10 * MIB).is_some());
    assert!(began.elapsed() >= Duration::from_millis(20));
    assert_eq!(asked(handle), [64, 32, 10]);
    numbers(handle).filling.set(600_000 * 1_000_000);
    handle.release(pending.block);
    assert!(handle.request(16 * MIB).is_some(), "what has come meanwhile");
    assert_eq!(asked(handle), [64, 32, 10]);
}

#[test]
fn a_clear_unpins_what_is_idle_and_the_request_that_needs_it_pins_it_again() {
    let handle = planned();
    handle.warm_up(true);
    assert_eq!(pinned(handle), [32, 64]);
    let live = handle.request_planned(0, 32 * MIB).unwrap();
    handle.empty_cache();
    assert_eq!(pinned(handle), [64], "a live block keeps its region");
    assert_eq!(handle.slot_at(live.address), Some(0));
    let other = handle.request_planned(0, 32 * MIB).unwrap();
    assert_eq!(other.address, live.address + 32 * MIB);
    assert_eq!(asked(handle), [64, 32], "the other region is not needed");
    handle.defer(live.block);
    handle.release(other.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), [64], "so does a pending one");
    handle.release(live.block);
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
    assert_eq!(handle.stats().unwrap().pinned_bytes.current, 0);
    assert!(handle.request_planned(0, 16 * MIB).is_some());
    assert_eq!(pinned(handle), [32]);
    handle.warm_up(true);
    assert_eq!(pinned(handle), [32, 64]);
    assert_eq!(counts(handle)[1], 0);
}

#[test]
fn what_cannot_be_pinned_is_served_as_without_a_plan() {
    let handle = planned();
    let memory = numbers(handle);
    memory.largest.set(40 * MIB);
    // The first region is refused, and the second not tried.
    assert_eq!(handle.request_planned(0, 32 * MIB), None);
    assert_eq!(asked(handle), [64]);
    let grant = handle.request(32 * MIB).unwrap();
    assert_eq!(asked(handle), [64, 32], "and not again for each request");
    assert_eq!(handle.request_planned(0, 32 * MIB), None);
    assert_eq!(counts(handle), [0, 2, 0, 0]);
    assert_eq!(handle.report()["plan"]["pinned"], false);
    handle.release(grant.block);
    memory.largest.set(usize::MAX);
    handle.empty_cache();
    assert!(handle.request_planned(0, 16 * MIB).is_some());
    assert_eq!(pinned(handle), [32], "what the request needs");
    handle.warm_up(true);
    assert_eq!(pinned(handle), [32, 64]);
    assert_eq!(handle.report()["plan"]["pinned"], true);
}

#[test]
fn more_than_the_budget_is_refused_and_the_rest_serves() {
    let handle = on(&layout(), WarmUp::Sync, 80);
    for _ in 0..2 {
        assert!(handle.request_planned(0, 32 * MIB).is_some());
        assert_eq!(pinned(handle), [64]);
    }
    assert_eq!(handle.request_planned(0, 16 * MIB), None);
    assert!(handle.request(16 * MIB).is_some(), "of its own");
    assert_eq!(pinned(handle), [16, 64]);
}

#[test]
fn other_threads_wait_for_the_regions() {
    let handle = planned();
    let [first, second] = [0, 1].map(|thread| move || handle.request_planned(thread, 32 * MIB));
    let served = while_pinning(handle, MIB, &[64], &[&first, &second], || ());
    // Who comes first once the regions are there has the only lane.
    assert_ne!(served[0].is_some(), served[1].is_some(), "there is no second lane");
    assert_eq!(asked(handle), [64, 32]);
}

#[test]
fn in_the_background_nobody_waits_and_a_clear_stops_nothing() {
    let handle = on(&layout(), WarmUp::Background, 1 << 20);
    let endless = endless(handle, MIB);
    assert_eq!(handle.request_planned(0, 32 * MIB), None);
    until("it pins", || asked(handle) == [64]);
    handle.empty_cache();
    drop(endless);
    until("it is pinned", || handle.report()["plan"]["pinned"] == true);
    assert!(handle.request_planned(0, 32 * MIB).is_some());
    assert_eq!(counts(handle), [1, 1, 0, 0]);
}

/// All that was pinned is returned.
pub(super) fn returned() -> Tested {
    let handle = planned();
    handle.warm_up(true);
    handle.empty_cache();
    assert_eq!((asked(handle), pinned(handle)), (vec![64, 32], vec![]));
    handle
}

#[test]
fn who_waits_for_a_returned_region_does_not_pin_the_others() {
    let handle = returned();
    // The other one has no lane.
    let [first, other] = [(0, 32), (1, 7)].map(|(thread, mib)| move || handle.request_planned(thread, mib * MIB));
    let served = while_pinning(handle, MIB, &[64, 32, 64], &[&first, &other], || {
        thread::sleep(Duration::from_millis(20));
    });
    assert!(served[0].is_some());
    assert_eq!(served[1], None);
    assert_eq!(pinned(handle), [64]);
    assert_eq!(handle.report()["plan"]["pinned"], false);
}

#[test]
fn what_is_returned_while_another_region_is_refused_can_be_pinned_again() {
    let mut layout = layout();
    layout.regions.swap(0, 1);
    for slot in &mut layout.slots {
        slot.region = 1 - slot.region;
    }
    let handle = on(&layout, WarmUp::Sync, 1 << 20);
    let served = while_pinning(handle, 64 * MIB, &[32, 64], &[&|| handle.request_planned(0, 32 * MIB)], || {
        handle.empty_cache();
        numbers(handle).largest.set(40 * MIB);
    });
    assert_eq!(served, [None]);
    assert!(handle.request_planned(0, 16 * MIB).is_some());
    assert_eq!(pinned(handle), [32]);
}
