//! Memory with several homes: requests get that of their own device, and pins go there.

use pinbuddy_core::WarmUp;
use pinbuddy_live::NodeUse;

use super::*;
use crate::backing::Device;
use numbers::CURRENT;

const NEAR: Home = Home(0);
const FAR: Home = Home(1);

/// With four devices, two a home, and so much to pin.
fn two_homes(budget: usize, variables: &[(&str, &str)]) -> Tested {
    let mut numbers = Numbers::new(budget);
    numbers.homes = 2;
    on(numbers, variables)
}

/// Where a block lies.
fn home_at(handle: Tested, grant: Grant) -> Home {
    let provisioner = handle.cell.provisioner().unwrap();
    let mut segments = provisioner.engine().segments();
    segments.find(|it| it.id == grant.block.segment).unwrap().home
}

/// For which devices regions were pinned.
fn devices(handle: Tested) -> Vec<i32> {
    numbers(handle).devices.lock().unwrap().clone()
}

const OFF: [(&str, &str); 1] = [("BUDDY_WARMUP", "off")];

#[test]
fn a_request_pins_on_the_node_of_its_device_and_finds_it_there_again() {
    let handle = two_homes(1 << 50, &OFF);
    assert_eq!(handle.homes(), 2);
    let homes = [0, 1, 2, 3].map(|device| handle.home_of(Device(device)));
    assert_eq!(homes, [NEAR, NEAR, FAR, FAR]);
    for round in 0..3 {
        for (home, device) in [(NEAR, 0), (FAR, 2)] {
            let grant = handle.request_at(40 * MIB, home).unwrap();
            assert_eq!(home_at(handle, grant), home);
            handle.release(grant.block);
            let first = handle.request_at(8 * MIB, home).unwrap();
            let beside = handle.request_beside(8 * MIB, home, Cached::default()).unwrap();
            assert_eq!(home_at(handle, beside), home);
            handle.release(first.block);
            handle.release(beside.block);
            if round == 0 {
                assert_eq!(devices(handle).last(), Some(&device));
            }
        }
    }
    assert_eq!(devices(handle), [0, 2], "each was pinned once");
    handle.empty_cache();
    assert_eq!(pinned(handle), NONE);
}

/// The thread that calls has its device from the program, and the worker that pins has none of its own.
#[test]
fn a_warm_up_is_for_the_device_of_who_calls_for_it() {
    let handle = two_homes(1 << 50, &[("BUDDY_BLOCK_COUNT", "2")]);
    CURRENT.set(3);
    assert!(handle.warm_up(true));
    assert_eq!(devices(handle), [2, 2]);
    let far = handle.request_at(40 * MIB, FAR).unwrap();
    assert_eq!((home_at(handle, far), devices(handle).len()), (FAR, 2));
    CURRENT.set(0);
}

#[test]
fn each_nodes_memory_is_summed_up_for_a_trace() {
    let handle = two_homes(1 << 50, &OFF);
    assert_eq!(handle.nodes(), Some(Vec::new()));
    let near = handle.request_at(70 * MIB, NEAR).unwrap();
    let far = [8, 4].map(|it| handle.request_at(it * MIB, FAR).unwrap());
    handle.release(near.block);
    let of = |it: NodeUse| (it.node, it.pinned as usize / MIB, it.used as usize / MIB);
    let found: Vec<_> = handle.nodes().unwrap().into_iter().map(of).collect();
    assert_eq!(found, [(0, 70, 0), (1, 64, 12)]);
    for it in far {
        handle.release(it.block);
    }
    handle.empty_cache();
    assert_eq!(handle.nodes(), Some(Vec::new()));
}

#[test]
fn of_one_home_nobody_asks() {
    let handle = with(&OFF);
    CURRENT.set(3);
    let grant = handle.request(40 * MIB).unwrap();
    assert_eq!((handle.homes(), home_at(handle, grant)), (1, NEAR));
    assert_eq!(handle.nodes(), Some(Vec::new()));
    assert_eq!(handle.home_of(Device(3)), NEAR);
    assert_eq!(devices(handle), [3]);
    CURRENT.set(0);
}

/// The thread that pins has no device of its own.
#[test]
fn a_plans_regions_lie_at_the_device_of_who_begins_to_pin_them() {
    let handle = planned::on(&planned::layout(), WarmUp::Background, 1 << 10);
    CURRENT.set(3);
    assert!(handle.warm_up(false));
    until("all of it is pinned", || devices(handle).len() == 2);
    assert_eq!((devices(handle), handle.homes()), (vec![3, 3], 1));
    CURRENT.set(0);
}
