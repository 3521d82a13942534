//! The handle's threads in orders that shuttle chooses: requests, the worker, a clear and the end.
//!
//! Each program runs in as many interleavings as `PINBUDDY_INTERLEAVINGS` says. A wait ends there only
//! when somebody wakes the sleeper, so that one who is forgotten is a deadlock, which shuttle reports
//! with the schedule that leads to it. No time passes: who sleeps until a time is woken like others.

mod device;
mod idle;
mod pending;
mod planned;
mod ring;

use std::env;

use pinbuddy_core::WarmUp;
use pinbuddy_slots::{Lane, Layout, Slot};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

use crate::handle::tests::numbers::Numbers;
use crate::handle::tests::{self, numbers};
use crate::handle::{Grant, Handle};

const MIB: usize = 1 << 20;

/// Half of the program's interleavings are at random, half with few switches at chosen places.
fn explore(program: fn()) {
    let asked = env::var("PINBUDDY_INTERLEAVINGS").ok();
    let tried: usize = asked.and_then(|it| it.parse().ok()).unwrap_or(4000);
    // Requests of a plan need more than shuttle's 32 KiB.
    let mut config = shuttle::Config::new();
    config.stack_size = 128 << 10;
    let random = RandomScheduler::new(tried / 2);
    shuttle::Runner::new(random, config.clone()).run(program);
    shuttle::Runner::new(PctScheduler::new(3, tried / 2), config).run(program);
    println!("interleavings: {}", tried / 2 * 2);
}

/// A handle of this module's programs.
#[derive(Clone, Copy)]
struct Tested {
    handle: &'static Handle<&'static Numbers>,
}

impl Tested {
    fn with(variables: &[(&str, &str)]) -> Self {
        // A thread that waits for a time would wait for ever here.
        let variables = [variables, &[("BUDDY_IDLE_S", "-1")]].concat();
        Self::of(tests::with(&variables))
    }

    fn of(handle: &'static Handle<&'static Numbers>) -> Self {
        let it = Self { handle };
        for takes in [&it.world().filling, &it.world().registering] {
            takes.set(1_000_000);
        }
        it
    }

    fn world(self) -> &'static Numbers {
        numbers(self.handle)
    }

    /// With a plan of two regions: one thread asks for 40 and 8 MiB, the other for 40, which is the same place.
    fn planned(warm_up: WarmUp) -> Self {
        Self::planned_with(warm_up, "-1")
    }

    /// The same, whose memory goes back after so many seconds.
    fn planned_with(warm_up: WarmUp, idle_s: &str) -> Self {
        let slot = |mib: usize, region| Slot { bytes: mib * MIB, region, offset: 0 };
        let lane = |period: &[u32]| Lane { period: period.to_vec(), ..Lane::default() };
        let layout = Layout {
            regions: vec![40 * MIB, 8 * MIB],
            slots: vec![slot(40, 0), slot(8, 1), slot(40, 0)],
            lanes: vec![lane(&[0, 1]), lane(&[2])],
        };
        let variables = [("BUDDY_IDLE_S", idle_s)];
        Self::of(tests::planned::with(&layout, warm_up, &variables))
    }

    /// Nobody else has any of it.
    fn take(self, mib: usize) -> Option<Grant> {
        let grant = self.handle.request(mib * MIB)?;
        self.took(grant)
    }

    /// The same, for the thread of this number: the plan's place, or else the engine's.
    fn take_planned(self, thread: u32, mib: usize) -> Option<Grant> {
        match self.handle.request_planned(thread, mib * MIB) {
            Some(grant) => self.took(grant),
            None => self.take(mib),
        }
    }

    fn took(self, grant: Grant) -> Option<Grant> {
        let pinned = self.world().pinned.lock().unwrap();
        let mut blocks = self.world().blocks.lock().unwrap();
        let end = grant.address + grant.block.bytes;
        let before = blocks.range(..end).next_back();
        assert!(before.is_none_or(|(start, bytes)| start + bytes <= grant.address), "two have {grant:?}");
        let mut regions = pinned.iter().map(|it| it.base..it.base + it.bytes);
        assert!(regions.any(|it| it.start <= grant.address && end <= it.end), "{grant:?} is not pinned");
        blocks.insert(grant.address, grant.block.bytes);
        Some(grant)
    }

    fn give(self, grant: Grant) {
        self.world().blocks.lock().unwrap().remove(&grant.address);
        self.handle.release(grant.block);
    }

    fn planned_pairs(self, thread: u32, sizes: &'static [usize]) -> thread::JoinHandle<()> {
        thread::spawn(move || {
            for &mib in sizes {
                // After the end nothing is pinned any more.
                if let Some(grant) = self.take_planned(thread, mib) {
                    thread::yield_now();
                    self.give(grant);
                }
            }
        })
    }

    fn pair(self, mib: usize) {
        let grant = self.take(mib).expect("there is room");
        thread::yield_now();
        self.give(grant);
    }

    /// The process ends: nothing is being pinned any more, and nothing will be.
    fn close(self) {
        self.handle.close();
        let under_way = self.world().under_way.get();
        assert_eq!(under_way, 0, "pins that go on after the end");
        self.world().closed.set(true);
    }

    /// The lengths of what is pinned.
    fn pinned(self) -> Vec<usize> {
        let pinned = self.world().pinned.lock().unwrap();
        pinned.iter().map(|it| it.bytes).collect()
    }

    /// When all have ended: what is pinned is what the engine says, and a clear leaves nothing.
    fn settle(self) {
        self.handle.warm_up(true);
        self.handle.empty_cache();
        assert!(self.world().blocks.lock().unwrap().is_empty());
        let stats = self.handle.stats().expect("the engine is on");
        let pinned: usize = self.pinned().into_iter().sum();
        assert_eq!(stats.pinned_bytes.current, pinned as u64);
        assert_eq!(pinned, 0, "idle memory after a clear");
        assert_eq!(self.world().claimed.get(), 0);
    }
}

fn all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn requests_beside_a_warm_up_and_a_clear() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_COUNT", "2")]);
        let threads = vec![
            thread::spawn(move || {
                it.pair(8);
                it.pair(40);
            }),
            thread::spawn(move || it.pair(48)),
            thread::spawn(move || it.handle.empty_cache()),
        ];
        all(threads);
        it.settle();
    });
}

#[test]
fn requests_that_all_have_to_pin() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_WARMUP", "off")]);
        let ask = |mib| thread::spawn(move || it.pair(mib));
        all(vec![ask(60), ask(60), ask(100), ask(8)]);
        it.settle();
    });
}

#[test]
fn requests_that_wait_for_all_segments() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_COUNT", "2"), ("BUDDY_WARMUP", "sync")]);
        let ask = |mib| thread::spawn(move || it.pair(mib));
        all(vec![ask(8), ask(60), ask(8)]);
        assert_eq!(it.pinned(), [64 * MIB; 2], "nobody pins for itself");
        it.settle();
    });
}

#[test]
fn two_that_wait_for_a_warm_up_and_one_that_clears() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_COUNT", "2")]);
        let wait = || {
            thread::spawn(move || {
                it.handle.warm_up(true);
            })
        };
        let clear = thread::spawn(move || it.handle.empty_cache());
        all(vec![wait(), wait(), clear]);
        it.settle();
    });
}

/// Else PyTorch would report that memory is short while the worker returns some.
#[test]
fn pytorchs_own_pin_waits_for_what_the_worker_unpins() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_COUNT", "2")]);
        // The worker unpins what it pinned meanwhile.
        it.handle.warm_up(false);
        (0..4).for_each(|_| thread::yield_now());
        it.handle.empty_cache();
        let unpinning = || it.world().unpinning.lock().unwrap().clone();
        let mut under_way = unpinning();
        for _ in 0..20 {
            if !under_way.is_empty() {
                break;
            }
            thread::yield_now();
            under_way = unpinning();
        }
        let some = it.handle.give_way(MIB);
        assert!(some || under_way.is_empty(), "nothing was returned");
        assert!(unpinning().is_disjoint(&under_way), "it goes on without them");
        it.settle();
    });
}

#[test]
fn the_end_while_a_request_and_the_worker_pin() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_COUNT", "3")]);
        let ask = |mib| {
            thread::spawn(move || {
                // What comes after the end is left to upstream.
                if let Some(grant) = it.take(mib) {
                    it.give(grant);
                }
            })
        };
        let threads = vec![ask(8), ask(100), thread::spawn(move || it.close())];
        all(threads);
    });
}
