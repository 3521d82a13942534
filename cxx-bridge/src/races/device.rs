//! Planned device memory: threads that ask, free and wait for events on one stream, beside one that empties the cache.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::device::stream::{Ask, GiveBack, IdleRegion, Step, StreamPlan};
use shuttle::thread;

use super::{MIB, all, explore};

const OTHER: u64 = 7;
const ANOTHER: u64 = 8;

/// A stream's plan, and what PyTorch's allocator has: regions by address, each once. `std`'s lock, never held across a switch.
struct Tested {
    plan: StreamPlan,
    regions: Mutex<BTreeSet<usize>>,
    /// Blocks that somebody uses.
    blocks: Mutex<BTreeSet<usize>>,
    next: Mutex<usize>,
    /// Of one thread at a time, as C++ has it.
    recording: shuttle::sync::Mutex<()>,
}

impl Tested {
    fn new() -> Self {
        Self {
            plan: StreamPlan::of_two([4 * MIB; 2], 0),
            regions: Mutex::default(),
            blocks: Mutex::default(),
            next: Mutex::new(1 << 30),
            recording: shuttle::sync::Mutex::default(),
        }
    }

    fn give_back(&self, idle: &[IdleRegion]) {
        for it in idle {
            thread::yield_now();
            let was = self.regions.lock().unwrap().remove(&it.base);
            assert!(was, "a region was given back twice");
        }
    }

    fn reserve(&self) {
        if !self.plan.begin_reserve() {
            return;
        }
        for region in (0..2).filter(|&it| self.plan.lacks(it)) {
            thread::yield_now();
            let base = {
                let mut next = self.next.lock().unwrap();
                *next += 1 << 30;
                *next
            };
            self.regions.lock().unwrap().insert(base);
            self.plan.reserved(region, base, 4 * MIB, false);
        }
        let idle = self.plan.end_reserve(true);
        self.give_back(&idle);
    }

    fn record(&self) {
        let _turn = self.recording.lock().unwrap();
        while let Some((address, streams)) = self.plan.to_record() {
            thread::yield_now();
            self.plan.recorded(address, &vec![1; streams.len()]);
        }
    }

    /// All events are complete.
    fn settle(&self) {
        self.record();
        let queues = self.plan.pending();
        let mut left = queues.streams();
        let (mut stream, mut event, mut block) = (0, 0, 0);
        while queues.begin(&mut left, &mut stream, &mut event, &mut block) {
            thread::yield_now();
            queues.end(stream, true);
            if self.plan.event_over(block) > 0 {
                self.leave(block);
                self.plan.done(block);
            }
        }
        let idle = self.plan.take_dropped();
        self.give_back(&idle);
    }

    /// Nobody uses the block any more.
    fn leave(&self, block: usize) {
        assert!(self.blocks.lock().unwrap().remove(&block), "a block was left twice");
    }

    fn pair(&self, is_used: bool) {
        let mut ask = Ask {
            bytes: 4 * MIB,
            rounded: 4 * MIB,
            oversize_from: usize::MAX,
            borrows: false,
            needs: -1,
            after: Step::Begin,
        };
        let mut after = Step::Begin;
        let given = loop {
            match self.plan.request(&mut ask, after) {
                Ok(given) => break given,
                Err(step) => after = step,
            }
            match after {
                Step::Settle => self.settle(),
                Step::Reserve => self.reserve(),
                Step::Peaks => {}
                Step::Retire => panic!("the plan has panicked"),
                _ => return,
            }
        };
        let is_there = || self.regions.lock().unwrap().contains(&given.address);
        assert!(is_there(), "a block outside of all regions");
        let is_new = self.blocks.lock().unwrap().insert(given.address);
        assert!(is_new, "a block was handed out twice");
        if is_used {
            assert!(self.plan.uses(given.address, OTHER) && self.plan.uses(given.address, ANOTHER));
        }
        thread::yield_now();
        assert!(is_there(), "a region went with a block in it");
        if !is_used {
            self.leave(given.address);
        }
        let freed = self.plan.free(given.address).expect("a live block");
        assert_eq!(freed.waits, is_used);
        if freed.waits {
            self.record();
        }
        if freed.is_last {
            self.give_back(&self.plan.take_dropped());
        }
    }
}

/// At the end nothing is left, whatever was given back when.
fn beside(why: GiveBack) {
    let it = Arc::new(Tested::new());
    let asks = |uses: [bool; 2]| {
        let it = Arc::clone(&it);
        thread::spawn(move || uses.into_iter().for_each(|is_used| it.pair(is_used)))
    };
    let gives = {
        let it = Arc::clone(&it);
        thread::spawn(move || {
            it.settle();
            it.give_back(&it.plan.give_back(why));
        })
    };
    all(vec![asks([true, false]), asks([false, true]), gives]);
    it.settle();
    if why == GiveBack::Cleared {
        // The lane may rest between them: then both have the first place.
        for _ in 0..2 {
            it.pair(false);
            assert!(!it.regions.lock().unwrap().is_empty(), "the plan serves");
        }
        it.give_back(&it.plan.give_back(GiveBack::ForGood));
    }
    assert_eq!(it.plan.reserved_bytes(), 0);
    assert!(it.regions.lock().unwrap().is_empty(), "a region was lost");
}

#[test]
fn device_requests_beside_a_clear() {
    explore(|| beside(GiveBack::Cleared));
}

#[test]
fn device_requests_beside_a_plan_that_is_dropped() {
    explore(|| beside(GiveBack::ForGood));
}
