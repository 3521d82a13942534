//! Pins that are stopped or paused while they are under way, end before the driver is asked, or leave memory that it keeps.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::super::Foreground;
use super::super::machine::tests::made_up;
use super::tests::{DEVICE, Fake, areas, chain, chain_on, is_mapped, pin};
use super::*;
use crate::config::MIB;
use crate::sync::Dial;

/// Goes on until it was asked so often; may refuse registration; may take time to answer.
#[derive(Debug)]
struct Until {
    left: Dial<usize>,
    registers: bool,
    takes: Duration,
    stopped: Mutex<Option<Instant>>,
}

impl Until {
    fn asked(times: usize) -> Self {
        Self { left: Dial::at(times), registers: true, takes: Duration::ZERO, stopped: Mutex::default() }
    }

    fn registered() -> Self {
        Self { registers: false, ..Self::asked(usize::MAX) }
    }
}

impl Control for Until {
    fn go_on(&self) -> bool {
        lock::assert_none_held("asking whether to go on");
        thread::sleep(self.takes);
        let goes_on = self.left.spend();
        if !goes_on {
            let mut stopped = self.stopped.lock().unwrap();
            stopped.get_or_insert_with(Instant::now);
        }
        goes_on
    }

    fn may_register(&self, bytes: usize) -> bool {
        assert!(bytes > 0);
        self.registers && self.go_on()
    }
}

/// Asserts that nothing is left of a pin.
fn assert_nothing_is_left(chain: &Chain<Fake>, bytes: usize) {
    assert_eq!(areas(bytes), 0, "still mapped");
    assert!(chain.regions.lock().is_empty());
    assert_eq!(chain.maker.areas_taken(), 0);
    assert!(chain.driver.is_as_new(), "{:?}", chain.driver);
    assert!(!chain.fallen.load(Ordering::Relaxed));
    assert!(chain.said.has_said_nothing(), "{:?}", chain.said);
}

// Of lengths that no other test's areas have.
const ODD: usize = 7 * 4096;

#[test]
fn a_stop_while_a_region_is_filled_leaves_nothing_behind() {
    for (n, asked) in [0, 1, 5].into_iter().enumerate() {
        let bytes = 2048 * MIB + ODD + n * 4096;
        let chain = chain(&[]);
        let until = Until::asked(asked);
        let stopped = chain.pin(bytes, DEVICE, Source::Ordinary, &until);
        let reacted = until.stopped.lock().unwrap().unwrap().elapsed();
        assert_eq!(stopped, Err(Unpinned::Stopped));
        assert_nothing_is_left(&chain, bytes);
        // A slice takes milliseconds and the region seconds; this machine may be busy.
        assert!(reacted < Duration::from_millis(500), "{reacted:?}");
    }
}

#[test]
fn a_stop_before_the_driver_is_asked_leaves_nothing_behind() {
    let bytes = 8 * MIB + ODD;
    for way in ["auto", "cuda"] {
        let chain = chain(&[("BUDDY_BACKING", way)]);
        let stopped = chain.pin(bytes, DEVICE, Source::Ordinary, &Until::registered());
        assert_eq!(stopped, Err(Unpinned::Stopped));
        assert_nothing_is_left(&chain, bytes);
    }
}

#[test]
fn what_a_driver_says_that_is_gone_is_no_refusal() {
    let bytes = 6 * MIB + ODD;
    for (way, asked) in [("auto", 4), ("cuda", 1)] {
        let chain = chain(&[("BUDDY_BACKING", way)]);
        chain.driver.is_gone();
        // The process begins to end while the driver is asked.
        let stopped = chain.pin(bytes, DEVICE, Source::Ordinary, &Until::asked(asked));
        assert_eq!(stopped, Err(Unpinned::Stopped), "{way}");
        assert_nothing_is_left(&chain, bytes);
    }
}

#[test]
fn waits_delay_a_pin_and_are_no_part_of_its_pace() {
    let chain = chain(&[]);
    let bytes = 12 * MIB + ODD;
    let takes = Duration::from_millis(40);
    let until = Until { takes, ..Until::asked(usize::MAX) };
    let start = Instant::now();
    let pinned = chain.pin(bytes, DEVICE, Source::Ordinary, &until).unwrap();
    let taken = start.elapsed();
    assert!(taken >= 3 * takes, "{taken:?}");
    let worked = pinned.filling + pinned.registering;
    assert!(worked + 3 * takes <= taken, "{pinned:?} of {taken:?}");
    let base = pinned.base;
    chain.unpin(Region { base, bytes }).unwrap();
}

#[test]
fn areas_are_left_to_the_program_and_nothing_is_decided_by_that() {
    let (machine, _folder) = made_up(&[("proc/sys/vm/max_map_count", "12\n")]);
    let chain = chain_on(&machine, &[]);
    let two = [(); 2].map(|()| pin(&chain, MIB));
    let bytes = MIB + ODD;
    let refused = chain.pin(bytes, DEVICE, Source::Ordinary, &Foreground);
    let Err(Unpinned::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("6 of this process's 12 memory areas"), "{why}");
    assert_eq!(chain.driver.allocated(), 0);
    assert_eq!(areas(bytes), 0);
    for region in two {
        chain.unpin(region).unwrap();
    }
    // A pin that fails or is stopped keeps none.
    chain.driver.registers(false);
    chain.unpin(pin(&chain, MIB)).unwrap();
    assert_eq!(chain.maker.areas_taken(), 0);
}

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
