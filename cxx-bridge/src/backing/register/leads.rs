//! What is registered before the blocks.

use super::tests::{chain, is_mapped, pin};
use super::*;

#[test]
fn no_registration_begins_where_a_block_of_a_usual_size_does() {
    for pieces in ["0", "1"] {
        let chain = chain(&[("BUDDY_REGISTER_CHUNK_MB", pieces)]);
        let bases = [MIB, 4 * MIB].map(|bytes| (pin(&chain, bytes), bytes));
        let registered = chain.driver.registered.lock().unwrap().clone();
        for (base, bytes) in bases {
            let begins = |at: usize| registered.iter().any(|it| it.base == at);
            assert!((0..bytes).step_by(MIB / 2).all(|at| !begins(base + at)));
        }
        for (base, bytes) in bases {
            chain.unpin(Region { base, bytes }).unwrap();
        }
        assert!(chain.driver.registered.lock().unwrap().is_empty());
    }
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
