//! Each model against known answers, and audited after each step of random programs.

use proptest::prelude::*;

use super::buddy_181094::Buddy181094;
use super::pinbuddy::{Pinbuddy, Settings};
use super::stock::Stock;
use super::*;
use crate::{GIB, MIB};
use pinbuddy_core::{Growth, WarmUp};

/// Bytes pinned over bytes requested, after `count` requests of `bytes` that are kept.
fn kept(policy: &mut impl Policy, bytes: u64, count: u32) -> f64 {
    for block in 0..count {
        policy.allocate(0, block, bytes);
    }
    policy.audit().unwrap();
    policy.pins().peak as f64 / (bytes * u64::from(count)) as f64
}

fn stock() -> Stock {
    Stock::default()
}

fn tuned() -> Stock {
    Stock::rounding_up_to(MIB)
}

const ODD: u64 = 259 * MIB / 2;

/// As counted by `host_memory_stats` of PyTorch 2.15.
#[test]
fn stock_pins_what_pytorch_was_seen_to_pin() {
    let rounded = |ratio: f64| (ratio * 100.0).round() / 100.0;
    assert_eq!(rounded(kept(&mut stock(), ODD, 40)), 1.98);
    let two = (2.083 * GIB as f64) as u64;
    assert_eq!(rounded(kept(&mut stock(), two, 3)), 1.92);
    assert_eq!(kept(&mut tuned(), ODD, 40), 1.0);
    assert_eq!(kept(&mut tuned(), two, 3), 1.0);
}

#[test]
fn stock_takes_the_last_freed_block_of_its_list_that_is_long_enough() {
    let mut stock = tuned();
    // All three of one list, from above 4 MiB to 8 MiB.
    for (block, mib) in [(0, 7), (1, 6), (2, 5)] {
        assert!(stock.allocate(0, block, mib * MIB));
    }
    (0..3).for_each(|block| stock.free(block, &[]));
    assert!(!stock.allocate(0, 3, 6 * MIB), "6 of 7, 6, 5");
    assert!(!stock.allocate(0, 4, 6 * MIB), "7 of 7, 5");
    assert!(stock.allocate(0, 5, 6 * MIB), "5 is too short");
    assert!(stock.allocate(0, 6, 4 * MIB), "5 is in another list");
    stock.audit().unwrap();
    assert_eq!((stock.pins().pins, stock.pins().bytes), (5, 28 * MIB));
}

#[test]
fn stock_unpins_what_is_cached() {
    let mut stock = stock();
    for block in 0..3 {
        stock.allocate(0, block, 3 * MIB);
    }
    stock.free(0, &[]);
    stock.free(1, &[(0, 50)]);
    stock.clear(49);
    assert_eq!((stock.pins().unpins, stock.pins().bytes), (1, 8 * MIB));
    stock.clear(50);
    assert_eq!((stock.pins().unpins, stock.pins().bytes), (2, 4 * MIB));
    assert_eq!(stock.pins().peak, 12 * MIB);
}

#[test]
fn the_proposal_pins_everything_first_and_halves_blocks() {
    let mut buddy = Buddy181094::default();
    // A request below its threshold pins everything, too.
    assert!(buddy.allocate(0, 0, 100));
    assert_eq!((buddy.pins().pins, buddy.pins().bytes), (9, 8 * GIB + 128));
    // Four of 256 MiB in each GiB: the 33rd is stock's.
    for block in 1..=32 {
        assert!(!buddy.allocate(0, block, ODD), "{block}");
    }
    assert!(buddy.allocate(0, 33, ODD));
    assert_eq!(buddy.pins().bytes, 8 * GIB + 128 + 256 * MIB);
    buddy.audit().unwrap();
    // And longer than a block too.
    assert!(buddy.allocate(0, 34, GIB + 1));
    assert_eq!(buddy.pins().bytes, 10 * GIB + 128 + 256 * MIB);
}

#[test]
fn the_proposal_merges_buddies_and_unpins_whole_blocks() {
    let mut buddy = Buddy181094::default();
    for block in 0..4 {
        buddy.allocate(0, block, 100 * MIB);
    }
    buddy.clear(0);
    assert_eq!(buddy.pins().bytes, GIB, "seven were whole");
    for block in [1, 2, 0] {
        buddy.free(block, &[]);
    }
    buddy.audit().unwrap();
    // 0 and 1 have merged, 2 waits for 3.
    assert!(!buddy.allocate(0, 5, 250 * MIB));
    buddy.free(5, &[]);
    buddy.free(3, &[(0, 10)]);
    assert!(buddy.allocate(9, 6, GIB), "3 is still used");
    assert!(!buddy.allocate(10, 7, GIB), "all one again");
    buddy.audit().unwrap();
}

fn exact() -> Settings {
    Settings::default().exact()
}

#[test]
fn pinbuddy_pins_what_it_was_told_behind_the_first_request() {
    let told = Settings {
        block_count: Some(8),
        ..Settings::default()
    };
    let mut pinbuddy = Pinbuddy::new(told);
    assert!(pinbuddy.allocate(0, 0, 64 * MIB));
    pinbuddy.allocate(1, 1, 64 * MIB);
    // The request's own region counts as a part of the eight.
    assert_eq!(pinbuddy.pins().bytes, 7 * GIB + 64 * MIB);
    for block in 2..=64 {
        assert!(!pinbuddy.allocate(2, block, 100 * MIB));
    }
    pinbuddy.audit().unwrap();
    let sync = Settings {
        warm_up: WarmUp::Sync,
        ..Settings::default()
    };
    let mut pinbuddy = Pinbuddy::new(sync);
    assert!(pinbuddy.allocate(0, 0, 64 * MIB));
    assert_eq!(pinbuddy.pins().bytes, 8 * GIB);
}

#[test]
fn pinbuddy_pins_ahead_as_demand_shows() {
    let mut pinbuddy = Pinbuddy::new(Settings::default());
    let mut pinned = Vec::new();
    for block in 0..40 {
        pinbuddy.allocate(u64::from(block), block, 64 * MIB);
        pinned.push(pinbuddy.pins().bytes / MIB);
    }
    pinbuddy.audit().unwrap();
    assert_eq!(pinned[0], 64, "one request alone is no demand");
    for (live, pinned) in (1..).zip(pinned) {
        assert!(pinned <= 64 * live * 2 && pinned <= 64 * live * 5 / 4 + 1024);
    }
    assert!(pinbuddy.pins().pins <= 20, "{:?}", pinbuddy.pins());
}

#[test]
fn pinbuddy_leaves_small_requests_to_stock_and_grows() {
    let off = Settings {
        warm_up: WarmUp::Off,
        ..Settings::default()
    };
    let mut pinbuddy = Pinbuddy::new(off);
    assert!(pinbuddy.allocate(0, 0, 3 * MIB));
    assert_eq!(pinbuddy.pins().bytes, 4 * MIB, "rounded up");
    assert!(pinbuddy.allocate(0, 1, 4 * MIB));
    assert_eq!(pinbuddy.pins().bytes, 8 * MIB, "what was asked for");
    assert!(pinbuddy.allocate(0, 2, GIB + 1));
    assert_eq!(
        pinbuddy.pins().bytes,
        GIB + 8 * MIB + 4096,
        "and one of its own"
    );
    assert_eq!(kept(&mut Pinbuddy::new(exact()), ODD, 40), 1.0);
}

#[test]
fn pinbuddy_unpins_what_is_idle_and_has_it_again_when_demand_shows() {
    let told = Settings {
        block_count: Some(2),
        ..Settings::default()
    };
    let mut pinbuddy = Pinbuddy::new(told);
    pinbuddy.allocate(0, 0, 100 * MIB);
    pinbuddy.free(0, &[(3, 5)]);
    pinbuddy.clear(4);
    assert_eq!(pinbuddy.pins().bytes, 100 * MIB, "a stream uses it");
    pinbuddy.clear(5);
    assert_eq!(pinbuddy.pins().bytes, 0);
    assert!(pinbuddy.allocate(5, 0, 100 * MIB));
    pinbuddy.clear(6);
    assert_eq!(pinbuddy.pins().bytes, 100 * MIB, "one request is no demand");
    for block in 1..9 {
        pinbuddy.allocate(7, block, 100 * MIB);
    }
    pinbuddy.allocate(8, 9, 100 * MIB);
    let pinned = pinbuddy.pins().bytes;
    assert!((GIB..=2 * GIB + GIB / 2).contains(&pinned), "{pinned}");
    pinbuddy.audit().unwrap();
}

#[test]
fn what_a_request_pinned_by_itself_is_a_part_of_the_warm_up() {
    let told = Settings {
        block_count: Some(8),
        ..Settings::default()
    };
    let mut pinbuddy = Pinbuddy::new(told);
    assert!(pinbuddy.allocate(0, 0, GIB));
    pinbuddy.allocate(1, 1, GIB);
    assert_eq!(pinbuddy.pins().bytes, 8 * GIB);
}

fn settings() -> impl Strategy<Value = Settings> {
    (
        1..8_u64,
        prop::option::of(0..4_u64),
        0..3_u64,
        prop_oneof![
            Just(WarmUp::Background),
            Just(WarmUp::Sync),
            Just(WarmUp::Off)
        ],
        prop_oneof![Just(Growth::Segment), Just(Growth::Exact)],
    )
        .prop_map(|(block, count, threshold, warm_up, growth)| Settings {
            block_bytes: block * 4 * MIB,
            block_count: count,
            threshold_bytes: threshold * MIB,
            warm_up,
            growth,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_model_agrees_with_itself_after_every_step(
        settings in settings(),
        steps in prop::collection::vec((0..12_u32, 1..20 * MIB, 0..3_u32, 0..40_u64), 1..120),
    ) {
        let policies: [Box<dyn Policy>; 4] = [
            Box::new(stock()),
            Box::new(tuned()),
            Box::new(Buddy181094::default()),
            Box::new(Pinbuddy::new(settings)),
        ];
        for mut policy in policies {
            let mut live = [0; 12];
            for (at, &(block, bytes, stream, delay)) in (0..).zip(&steps) {
                let place = &mut live[block as usize];
                if *place == 0 {
                    policy.allocate(at, block, bytes);
                    *place = bytes;
                } else if delay < 20 {
                    policy.free(block, &[]);
                    *place = 0;
                } else if delay < 38 {
                    policy.free(block, &[(stream, at + delay), (stream + 1, at + 7)]);
                    *place = 0;
                } else {
                    policy.clear(at);
                }
                prop_assert_eq!(policy.audit(), Ok(()));
                let (pins, sum) = (policy.pins(), live.iter().sum::<u64>());
                prop_assert!(pins.bytes >= sum && pins.peak >= pins.bytes);
            }
        }
    }
}
