//! What is registered before the blocks.

use super::tests::{chain, is_mapped, pin};
use super::*;

#[test]
fn no_registration_begins_in_a_region() {
    let chain = chain(&[]);
    let regions = [MIB, 4 * MIB].map(|bytes| Region {
        base: pin(&chain, bytes),
        bytes,
    });
    let registered = chain.driver.registered.lock().unwrap().clone();
    for Region { base, bytes } in regions {
        let inside = base..base + bytes;
        assert!(!registered.iter().any(|it| inside.contains(&it.base)));
    }
    for region in regions {
        chain.unpin(region).unwrap();
    }
    assert!(chain.driver.registered.lock().unwrap().is_empty());
}

#[test]
fn blocks_up_to_a_piece_lie_in_one() {
    let chain = chain(&[("BUDDY_REGISTER_CHUNK_MB", "1")]);
    let bytes = 4 * MIB;
    let base = pin(&chain, bytes);
    let registered = chain.driver.registered.lock().unwrap().clone();
    let pieces: Vec<_> = registered
        .iter()
        .map(|it| (it.base - base, it.bytes))
        .collect();
    assert_eq!(pieces, [0, 1, 2, 3].map(|at| (at * MIB, MIB)));
    chain.unpin(Region { base, bytes }).unwrap();
    assert!(chain.driver.registered.lock().unwrap().is_empty());
}

#[test]
fn where_the_driver_takes_one_mapping_at_a_time_the_region_is_registered_alone() {
    let chain = chain(&[]);
    chain
        .driver
        .takes_one_mapping
        .store(true, Ordering::Relaxed);
    let bytes = 2 * MIB;
    let base = pin(&chain, bytes);
    let region = Region { base, bytes };
    assert_eq!(*chain.driver.registered.lock().unwrap(), [region]);
    assert_eq!(chain.driver.allocated(), 0);
    chain.unpin(region).unwrap();
    assert!(!is_mapped(base) && chain.driver.registered.lock().unwrap().is_empty());
}
