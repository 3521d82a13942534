//! Pins that fail, and whose memory the driver does not give back at once.

use super::tests::{chain, is_mapped, pin};
use super::*;
use crate::config::MIB;

#[test]
fn what_stays_registered_stays_mapped_until_it_can_be_unregistered() {
    let chain = chain(&[]);
    let driver = &chain.driver;
    driver.sees_it_elsewhere.set(true);
    driver.refuses_to_unregister.set(true);
    let Region { base, .. } = pin(&chain, 2 * MIB);
    let registered = driver.registered.lock().unwrap()[0];
    assert!(is_mapped(registered.base) && registered.base != base);
    assert_eq!(driver.allocated(), 1);
    // It goes as soon as the driver lets it, and is tried until then.
    chain.unpin_rests();
    assert!(is_mapped(registered.base));
    driver.refuses_to_unregister.set(false);
    chain.unpin_rests();
    assert!(!is_mapped(registered.base));
    assert!(driver.registered.lock().unwrap().is_empty());
}
