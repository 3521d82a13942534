//! The handle's threads in orders that shuttle chooses: requests, the worker, a clear and the end.
//!
//! Each program runs in as many interleavings as `PINBUDDY_INTERLEAVINGS` says. A wait ends there only
//! when somebody wakes the sleeper, so that one who is forgotten is a deadlock, which shuttle reports
//! with the schedule that leads to it. No time passes: who sleeps until a time is woken like others.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::sync::Mutex;
use std::time::Duration;

use pinbuddy_bridge::backing::{Completions, Control, Device, Memory, Pinned, Source, Unpinned};
use pinbuddy_bridge::budget::{Budget, Capacity, Standing};
use pinbuddy_bridge::config::Config;
use pinbuddy_bridge::handle::{Grant, Handle};
use pinbuddy_core::{Growth, Region, Settings, WarmUp};
use pinbuddy_slots::{Lane, Layout, Slot, Slots};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

#[path = "races/device.rs"]
mod device;
#[path = "races/idle.rs"]
mod idle;
#[path = "races/pending.rs"]
mod pending;
#[path = "races/planned.rs"]
mod planned;
#[path = "races/ring.rs"]
mod ring;

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

/// What is pinned: numbers, and nothing behind them. `std`'s lock, which is never held where shuttle
/// may switch.
#[derive(Debug, Default)]
struct World(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pinned: BTreeMap<usize, usize>,
    /// Blocks that somebody has.
    blocks: BTreeMap<usize, usize>,
    next: usize,
    unpinning: BTreeSet<usize>,
    under_way: usize,
    closed: bool,
}

impl World {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }
}

impl Memory for &'static World {
    fn available(&self) -> bool {
        true
    }

    fn device(&self) -> Device {
        Device(0)
    }

    fn pin(
        &self,
        bytes: usize,
        _device: Device,
        _source: Source,
        control: &dyn Control,
    ) -> Result<Pinned, Unpinned> {
        // As before each call of the driver: one that begins when the process has ended makes none.
        if !control.go_on() {
            return Err(Unpinned::Stopped);
        }
        self.with(|it| it.under_way += 1);
        let mut stopped = false;
        for _ in 0..2 {
            thread::yield_now();
            stopped |= !control.go_on();
        }
        self.with(|it| {
            it.under_way -= 1;
            if stopped {
                return Err(Unpinned::Stopped);
            }
            assert!(!it.closed, "a pin ends after the end");
            it.next += 1 << 40;
            it.pinned.insert(it.next, bytes);
            Ok(Pinned {
                base: it.next,
                filling: Duration::from_micros(bytes as u64 / 1000),
                registering: Duration::from_micros(bytes as u64 / 1000),
            })
        })
    }

    fn unpin(&self, region: Region) -> Result<Source, String> {
        self.with(|it| it.unpinning.insert(region.base));
        thread::yield_now();
        self.with(|it| {
            it.unpinning.remove(&region.base);
            let was = it.pinned.remove(&region.base);
            assert_eq!(was, Some(region.bytes), "unpinned twice, or never pinned");
            let end = region.base + region.bytes;
            let lost = it.blocks.range(region.base..end).next();
            assert_eq!(lost, None, "unpinned while somebody has a block of it");
        });
        Ok(Source::Ordinary)
    }
}

impl Capacity for &'static World {
    fn budget(&self, _max_mb: Option<usize>, _taken: usize) -> Budget {
        Budget {
            bytes: 1 << 40,
            why: "of the test".to_owned(),
        }
    }

    fn has_room(&self, _bytes: usize) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        Standing::default()
    }

    fn free(&self) -> Option<usize> {
        None
    }

    fn claim(&self, _bytes: usize) {}
    fn unclaim(&self, _bytes: usize) {}
}

impl Completions for &'static World {
    fn reap(&self) {}
}

/// A handle, and what is behind it.
#[derive(Clone, Copy)]
struct Tested {
    handle: &'static Handle<&'static World>,
    world: &'static World,
}

impl Tested {
    fn with(variables: &'static [(&str, &str)]) -> Self {
        let lookup = |name: &str| {
            let found = variables.iter().find(|it| it.0 == name);
            // A thread that waits for a time would wait for ever here.
            let never = (name == "BUDDY_IDLE_S").then_some("-1");
            found.map(|it| it.1).or(never).map(Into::into)
        };
        let (config, warnings) = Config::read(lookup);
        assert!(warnings.is_empty(), "{warnings:?}");
        let world: &'static World = Box::leak(Box::default());
        let handle = Handle::new(config, None, world, Box::new(world), Box::new(world));
        let handle = Box::leak(Box::new(handle));
        Self { handle, world }
    }

    /// With a plan of two regions: one thread asks for 40 and 8 MiB, the other for 40, which is the same place.
    fn planned(warm_up: WarmUp) -> Self {
        Self::planned_with(warm_up, "-1")
    }

    /// The same, whose memory goes back after so many seconds.
    fn planned_with(warm_up: WarmUp, idle_s: &'static str) -> Self {
        let slot = |mib: usize, region| Slot {
            bytes: mib * MIB,
            region,
            offset: 0,
        };
        let lane = |period: &[u32]| Lane {
            period: period.to_vec(),
            ..Lane::default()
        };
        let layout = Layout {
            regions: vec![40 * MIB, 8 * MIB],
            slots: vec![slot(40, 0), slot(8, 1), slot(40, 0)],
            lanes: vec![lane(&[0, 1]), lane(&[2])],
        };
        let (config, _) = Config::read(|name| (name == "BUDDY_IDLE_S").then(|| idle_s.into()));
        let settings = Settings {
            count: Some(0),
            growth: Growth::Exact,
            warm_up,
            ..config.of_the_provisioner()
        };
        let slots = Slots::new(&layout).unwrap();
        let world: &'static World = Box::leak(Box::default());
        let plan = Some((settings, slots));
        let handle = Handle::new(config, plan, world, Box::new(world), Box::new(world));
        let handle = Box::leak(Box::new(handle));
        Self { handle, world }
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
        self.world.with(|it| {
            let end = grant.address + grant.block.bytes;
            let before = it.blocks.range(..end).next_back();
            assert!(
                before.is_none_or(|(start, bytes)| start + bytes <= grant.address),
                "two have {grant:?}"
            );
            let region = it.pinned.range(..=grant.address).next_back();
            assert!(
                region.is_some_and(|(start, bytes)| start + bytes >= end),
                "{grant:?} is not pinned"
            );
            it.blocks.insert(grant.address, grant.block.bytes);
        });
        Some(grant)
    }

    fn give(self, grant: Grant) {
        self.world.with(|it| it.blocks.remove(&grant.address));
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
        self.world.with(|it| {
            assert_eq!(it.under_way, 0, "pins that go on after the end");
            it.closed = true;
        });
    }

    /// When all have ended: what is pinned is what the engine says, and a clear leaves nothing.
    fn settle(self) {
        self.handle.warm_up(true);
        self.handle.empty_cache();
        self.world.with(|it| assert!(it.blocks.is_empty()));
        let stats = self.handle.stats().expect("the engine is on");
        let pinned = self.world.with(|it| it.pinned.values().sum::<usize>());
        assert_eq!(stats.pinned_bytes.current, pinned as u64);
        assert_eq!(pinned, 0, "idle memory after a clear");
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
        let it = Tested::with(&[("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_BLOCK_COUNT", "2")]);
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
        let it = Tested::with(&[("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_WARMUP", "off")]);
        let ask = |mib| thread::spawn(move || it.pair(mib));
        all(vec![ask(60), ask(60), ask(100), ask(8)]);
        it.settle();
    });
}

#[test]
fn requests_that_wait_for_all_segments() {
    explore(|| {
        let it = Tested::with(&[
            ("BUDDY_BLOCK_SIZE_MB", "64"),
            ("BUDDY_BLOCK_COUNT", "2"),
            ("BUDDY_WARMUP", "sync"),
        ]);
        let ask = |mib| thread::spawn(move || it.pair(mib));
        all(vec![ask(8), ask(60), ask(8)]);
        let pinned: Vec<usize> = it.world.with(|it| it.pinned.values().copied().collect());
        assert_eq!(pinned, [64 * MIB; 2], "nobody pins for itself");
        it.settle();
    });
}

#[test]
fn two_that_wait_for_a_warm_up_and_one_that_clears() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_BLOCK_COUNT", "2")]);
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
        let it = Tested::with(&[("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_BLOCK_COUNT", "2")]);
        // The worker unpins what it pinned meanwhile.
        it.handle.warm_up(false);
        (0..4).for_each(|_| thread::yield_now());
        it.handle.empty_cache();
        let unpinning = || it.world.with(|it| it.unpinning.clone());
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
        assert!(
            unpinning().is_disjoint(&under_way),
            "it goes on without them"
        );
        it.settle();
    });
}

#[test]
fn the_end_while_a_request_and_the_worker_pin() {
    explore(|| {
        let it = Tested::with(&[("BUDDY_BLOCK_SIZE_MB", "64"), ("BUDDY_BLOCK_COUNT", "3")]);
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
