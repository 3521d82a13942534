//! Programs with idle phases, in simulated time: what goes back by itself, and what that costs.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use pinbuddy_replay::MIB;
use pinbuddy_replay::policy::pinbuddy::Settings;
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

/// What a program waited for its requests, and the least that was pinned between two phases.
struct Outcome {
    waited: Nanos,
    least: u64,
}

/// Each period a phase with 3 GiB live at once, which a checkpoint or an evaluation needs.
fn run(idle: Option<u64>, period: Nanos, phases: u64) -> Outcome {
    let mut settings = Settings::default().core();
    settings.idle = idle.map(Duration::from_secs);
    let mut world = World::new(settings, SLOW, 1);
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
    Outcome { waited, least }
}

#[test]
fn all_of_it_goes_after_the_idle_time_and_comes_back() {
    let [set, never] = [Some(10), None].map(|idle| run(idle, 30 * SECOND, 5));
    assert_eq!(set.least, 0);
    assert!(never.least >= u64::from(BLOCKS) * BLOCK);
    assert!(set.waited > never.waited, "each phase pins anew");
}
