//! Pins that fail, and whose memory the driver does not give back at once.

use super::super::Foreground;
use super::super::Memory as _;
use super::tests::{DEVICE, chain, is_mapped};
use super::*;
use crate::config::MIB;

#[test]
fn what_stays_registered_stays_mapped_until_it_can_be_unregistered() {
    let chain = chain(&[]);
    chain
        .driver
        .sees_it_elsewhere
        .store(true, Ordering::Relaxed);
    chain
        .driver
        .refuses_to_unregister
        .store(true, Ordering::Relaxed);
    let pinned = chain.pin(2 * MIB, DEVICE, Source::Ordinary, &Foreground);
    let base = pinned.unwrap().base;
    let registered = chain.driver.registered.lock().unwrap()[0];
    assert!(is_mapped(registered.base) && registered.base != base);
    assert_eq!(chain.driver.allocated(), 1);
    // It goes as soon as the driver lets it, and is tried until then.
    chain.unpin_rests();
    assert!(is_mapped(registered.base));
    chain
        .driver
        .refuses_to_unregister
        .store(false, Ordering::Relaxed);
    chain.unpin_rests();
    assert!(!is_mapped(registered.base));
    assert!(chain.driver.registered.lock().unwrap().is_empty());
}
