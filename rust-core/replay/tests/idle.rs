//! Programs with idle phases, in simulated time: what goes back by itself, and what that costs.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use pinbuddy_core::{Growth, Idle, Settings, WarmUp};
use pinbuddy_replay::MIB;
use pinbuddy_replay::world::{Machine, Nanos, World};

const SECOND: Nanos = 1_000_000_000;
const BLOCKS: u32 = 64;
const BLOCK: u64 = 48 * MIB;

/// 0.6 s a GiB, as with pages of 4 KiB.
const SLOW: Machine = Machine {
    fill: 400_000,
    register: 200_000,
    unpin: 100_000,
    behind: 3,
    budget: u64::MAX,
};

fn settings(idle: Option<(u64, bool)>) -> Settings {
    Settings {
        segment_bytes: 1 << 30,
        threshold_bytes: 4 << 20,
        growth: Growth::Segment,
        warm_up: WarmUp::Background,
        count: None,
        idle: idle.map(|(after, sparing)| Idle {
            after: Duration::from_secs(after),
            sparing,
        }),
    }
}

/// What a program waited for its requests, the time it took, and the least that was pinned between two phases.
struct Outcome {
    waited: Nanos,
    took: Nanos,
    least: u64,
}

/// Each period a phase with 3 GiB live at once, which a checkpoint or an evaluation needs.
fn run(idle: Option<(u64, bool)>, period: Nanos, phases: u64) -> Outcome {
    let mut world = World::new(settings(idle), SLOW, 1);
    let (mut waited, mut least) = (0, u64::MAX);
    for phase in 1..=phases {
        for block in 0..BLOCKS {
            world.request(0, block, BLOCK);
            while world.advance(Nanos::MAX - 1).is_none() {}
            let served = world.served(0);
            waited += served.at - served.asked;
        }
        (0..BLOCKS).for_each(|block| world.free(block, &[]));
        let end = phase * period;
        while world.next_event() <= end {
            world.advance(end);
        }
        world.advance(end);
        world.audit().unwrap();
        least = least.min(world.pins().bytes);
    }
    let took = world.now();
    Outcome {
        waited,
        took,
        least,
    }
}

#[test]
fn by_default_the_worst_period_costs_at_most_a_hundredth() {
    for seconds in [30, 61, 75, 120, 300, 600, 1800] {
        let period = seconds * SECOND;
        let phases = 4 * 3600 / seconds;
        let [without, with] = [None, Some((60, true))].map(|idle| run(idle, period, phases));
        let more = with.waited.saturating_sub(without.waited);
        println!(
            "every {seconds} s: {:.2} s more of {} s, {} MiB at least",
            more as f64 / SECOND as f64,
            with.took / SECOND,
            with.least / MIB
        );
        assert!(more * 100 <= with.took, "{seconds} s: {more} ns more");
        if seconds < 60 {
            assert_eq!(more, 0, "it never went");
        }
        if seconds > 600 {
            assert!(with.least < without.least / 10, "{seconds} s");
        }
    }
}

#[test]
fn a_time_that_was_set_returns_all_of_it() {
    let [set, never] = [Some((10, false)), None].map(|idle| run(idle, 30 * SECOND, 5));
    assert_eq!(set.least, 0);
    assert!(never.least >= u64::from(BLOCKS) * BLOCK);
    assert!(set.waited > never.waited, "each phase pins anew");
}
