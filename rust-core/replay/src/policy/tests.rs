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

fn tuned() -> Stock {
    Stock::rounding_up_to(MIB)
}

const ODD: u64 = 259 * MIB / 2;

/// As counted by `host_memory_stats` of PyTorch 2.15.
#[test]
fn stock_pins_what_pytorch_was_seen_to_pin() {
    let rounded = |ratio: f64| (ratio * 100.0).round() / 100.0;
    assert_eq!(rounded(kept(&mut Stock::default(), ODD, 40)), 1.98);
    let two = (2.083 * GIB as f64) as u64;
    assert_eq!(rounded(kept(&mut Stock::default(), two, 3)), 1.92);
    assert_eq!(kept(&mut tuned(), ODD, 40), 1.0);
    assert_eq!(kept(&mut tuned(), two, 3), 1.0);
}

/// A number of bytes, such as `20M`, `8G+128` or `50`.
fn bytes(text: &str) -> u64 {
    let number = |text: &str| text.parse::<u64>().unwrap();
    let one = |text: &str| match (text.strip_suffix('M'), text.strip_suffix('G')) {
        (Some(mib), _) => number(mib) * MIB,
        (_, Some(gib)) => number(gib) * GIB,
        _ => number(text),
    };
    text.split('+').map(one).sum()
}

/// The policy after these steps, audited at the end: `!0:7M` is block 0 of 7 MiB, for which the driver is asked, `+` the same
/// without, `-0` its free, `-0:50` the same until a stream has reached time 50, `t5` the time from now on, `c` a clear; `=8M` says
/// what is pinned.
fn played<P: Policy>(mut policy: P, script: &str) -> P {
    let mut at = 0;
    for word in script.split_whitespace() {
        let (what, rest) = word.split_at(1);
        let (first, second) = rest.split_once(':').unwrap_or((rest, ""));
        let block = || first.parse::<u32>().unwrap();
        match what {
            "!" | "+" => {
                let missed = policy.allocate(at, block(), bytes(second));
                assert_eq!(missed, what == "!", "{word} in {script}");
            }
            "-" if second.is_empty() => policy.free(block(), &[]),
            "-" => policy.free(block(), &[(0, bytes(second))]),
            "t" => at = bytes(first),
            "c" => policy.clear(at),
            _ => assert_eq!(policy.pins().bytes, bytes(first), "{word} in {script}"),
        }
    }
    policy.audit().unwrap();
    policy
}

/// A request of this length for each of these blocks.
fn each(blocks: std::ops::Range<u32>, what: &str) -> String {
    blocks.map(|it| what.replace('N', &it.to_string())).collect()
}

#[test]
fn stock_takes_the_last_freed_block_of_its_list_that_is_long_enough_and_unpins_what_is_cached() {
    // All three of one list, from above 4 MiB to 8 MiB: 6 of 7, 6, 5; then 7 of 7, 5; 5 is too short; and in another list.
    let script = "!0:7M !1:6M !2:5M -0 -1 -2 +3:6M +4:6M !5:6M !6:4M =28M";
    assert_eq!(played(tuned(), script).pins().pins, 5);
    let pins = played(Stock::default(), "!0:3M !1:3M !2:3M -0 -1:50 t49 c =8M t50 c =4M").pins();
    assert_eq!((pins.unpins, pins.peak), (2, 12 * MIB));
}

#[test]
fn the_proposal_pins_everything_first_halves_blocks_merges_buddies_and_unpins_whole_blocks() {
    // A request below its threshold pins everything, too. Four of 256 MiB in each GiB: the 33rd is stock's, and so is what is
    // longer than a block.
    let halves = each(1..33, "+N:135790592 ");
    let script = format!("!0:100 =8G+128 {halves} !33:135790592 =8G+128+256M !34:1G+1 =10G+128+256M");
    assert_eq!(bytes("135790592"), ODD);
    assert_eq!(played(Buddy181094::default(), &script).pins().pins, 11);
    // Seven were whole. 0 and 1 have merged, 2 waits for 3, which is still used; then it is all one again.
    let script = "!0:100M +1:100M +2:100M +3:100M c =1G -1 -2 -0 +5:250M -5 -3:10 t9 !6:1G t10 +7:1G";
    played(Buddy181094::default(), script);
}

fn warming_up(warm_up: WarmUp) -> Settings {
    Settings { warm_up, ..Settings::default() }
}

fn told(blocks: u64) -> Pinbuddy {
    Pinbuddy::new(Settings { block_count: Some(blocks), ..Settings::default() })
}

#[test]
fn pinbuddy_pins_what_it_was_told_behind_the_first_request() {
    // The request's own region counts as a part of the eight.
    let rest = each(2..65, "+N:100M ");
    let script = format!("!0:64M t1 +1:64M =7G+64M t2 {rest}");
    played(told(8), &script);
    played(told(8), "!0:1G t1 +1:1G =8G");
    played(Pinbuddy::new(warming_up(WarmUp::Sync)), "!0:64M =8G");
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
    // Rounded up; what was asked for; and one of its own.
    let script = "!0:3M =4M !1:4M =8M !2:1G+1 =1G+8M+4096";
    played(Pinbuddy::new(warming_up(WarmUp::Off)), script);
    assert_eq!(kept(&mut Pinbuddy::new(Settings::default().exact()), ODD, 40), 1.0);
}

#[test]
fn pinbuddy_unpins_what_is_idle_and_has_it_again_when_demand_shows() {
    // A stream uses it until 5; one request is no demand.
    let script = "!0:100M -0:5 t4 c =100M t5 c =0 !0:100M t6 c =100M t7";
    let mut pinbuddy = played(told(2), script);
    for block in 1..10 {
        pinbuddy.allocate(7 + u64::from(block / 9), block, 100 * MIB);
    }
    let pinned = pinbuddy.pins().bytes;
    assert!((GIB..=2 * GIB + GIB / 2).contains(&pinned), "{pinned}");
    pinbuddy.audit().unwrap();
}

prop_compose! {
    fn settings()(
        block in 1..8_u64,
        block_count in prop::option::of(0..4_u64),
        threshold in 0..3_u64,
        warm_up in prop_oneof![Just(WarmUp::Background), Just(WarmUp::Sync), Just(WarmUp::Off)],
        growth in prop_oneof![Just(Growth::Segment), Just(Growth::Exact)],
    ) -> Settings {
        Settings { block_bytes: block * 4 * MIB, block_count, threshold_bytes: threshold * MIB, warm_up, growth }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_model_agrees_with_itself_after_every_step(
        settings in settings(),
        steps in prop::collection::vec((0..12_u32, 1..20 * MIB, 0..3_u32, 0..40_u64), 1..120),
    ) {
        let policies: [Box<dyn Policy>; 4] = [
            Box::new(Stock::default()),
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
