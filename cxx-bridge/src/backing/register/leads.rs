//! What is registered before the blocks.

use super::tests::{chain, is_mapped, pin};
use super::*;
use crate::config::MIB;

#[test]
fn each_region_lies_in_one_registration_that_begins_before_it() {
    let chain = chain(&[("BUDDY_BACKING", "pages")]);
    let regions = [4096, MIB, 4 * MIB + 4096, 96 * MIB].map(|bytes| pin(&chain, bytes));
    let registered = || chain.driver.registered.lock().unwrap().clone();
    for Region { base, bytes } in regions {
        let holds = |it: &&Region| it.base < base && base + bytes <= it.base + it.bytes;
        assert_eq!(registered().iter().filter(holds).count(), 1);
        let inside = base..base + bytes;
        assert!(!registered().iter().any(|it| inside.contains(&it.base)));
    }
    assert_eq!(registered().len(), regions.len());
    for region in regions {
        chain.unpin(region).unwrap();
    }
    assert!(registered().is_empty());
}

#[test]
fn where_the_driver_takes_one_mapping_at_a_time_the_region_is_registered_alone() {
    let chain = chain(&[]);
    let driver = &chain.driver;
    driver.takes_one_mapping.set(true);
    let region = pin(&chain, 2 * MIB);
    assert_eq!(*chain.driver.registered.lock().unwrap(), [region]);
    assert_eq!(chain.driver.allocated(), 0);
    chain.unpin(region).unwrap();
    assert!(!is_mapped(region.base) && chain.driver.registered.lock().unwrap().is_empty());
}
