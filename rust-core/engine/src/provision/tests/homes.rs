//! Requests of two homes: each grows by itself, and takes the other's memory only where nothing can be pinned.

use super::*;
use crate::units::Home;

const NEAR: Home = Home(0);
const FAR: Home = Home(1);

impl Caller {
    fn take_at(&mut self, bytes: usize, home: Home) -> (Block, Home) {
        let block = self.take_for(Want::new(bytes).at(home));
        (block, self.home_of(block))
    }

    fn home_of(&self, block: Block) -> Home {
        let mut segments = self.it.engine().segments();
        segments.find(|it| it.id == block.segment).unwrap().home
    }
}

/// A program that works on one device and then on the next, again and again.
#[test]
fn phases_that_take_turns_pin_once_each() {
    let mut caller = Caller::new(settings());
    let mut pinned = Vec::new();
    for _ in 0..20 {
        for home in [NEAR, FAR] {
            let blocks: Vec<_> = (0..16).map(|_| caller.take_at(64 * MIB, home)).collect();
            assert!(blocks.iter().all(|it| it.1 == home));
            blocks.into_iter().for_each(|it| caller.release(it.0));
            caller.work();
        }
        pinned.push(caller.pins.iter().sum::<usize>());
    }
    let last = *pinned.last().unwrap();
    assert_eq!(pinned[1], last, "{pinned:?}");
    assert!((2048..3072).contains(&last), "{last} MiB are pinned");
}

#[test]
fn where_the_budget_is_used_up_the_other_home_serves_before_a_request_fails() {
    let mut caller = Caller::new(settings());
    caller.left = 256 * MIB;
    let near = [caller.take_at(128 * MIB, NEAR), caller.take_at(128 * MIB, NEAR)];
    caller.release(near[0].0);
    let (stolen, home) = caller.take_at(100 * MIB, FAR);
    assert_eq!((home, caller.left), (NEAR, 0), "nothing is unpinned for it");
    // With nothing free anywhere upstream serves.
    let mut want = Want::new(100 * MIB).at(FAR);
    let step = caller.first_step(&mut want);
    assert!(matches!(step, Step::PassThrough { why: Some(Refusal::Budget), .. }), "{step:?}");
    caller.release(stolen);
    caller.it.engine().audit().unwrap();
}

/// The allocator takes a request that passes through for one that finds room nowhere.
#[test]
fn who_pins_too_often_gets_the_other_homes_memory_before_a_request_passes_through() {
    let mut caller = Caller::with_idle(64 * MIB);
    (0..100).for_each(|_| caller.it.guard.count(0));
    let (far, home) = caller.take_at(32 * MIB, FAR);
    assert!(caller.it.is_yielding());
    assert_eq!((home, caller.pins.len()), (NEAR, 1));
    caller.release(far);
}

#[test]
fn with_budget_left_a_home_pins_its_own() {
    let mut caller = Caller::with_idle(128 * MIB);
    let (_, home) = caller.take_at(100 * MIB, FAR);
    assert_eq!((home, caller.pins.len()), (FAR, 2));
    let long = caller.take_at(2 * GIB, NEAR).0;
    caller.release(long);
    assert_eq!(caller.take_at(2 * GIB, FAR).1, FAR);
}

#[test]
fn the_worker_pins_where_it_is_asked_to_and_goes_on_there() {
    let mut caller = Caller::new(Settings { count: Some(3), ..settings() });
    caller.it.urge(FAR);
    assert!(caller.it.hire());
    let first = caller.pin_ahead();
    assert_eq!((first.home, first.bytes), (FAR, GIB));
    let own = permit(caller.first_step(&mut Want::new(8 * MIB).at(NEAR)));
    caller.pinned(&first);
    caller.pinned(&own);
    let next = caller.pin_ahead();
    assert_eq!((own.home, next.home), (NEAR, FAR));
    let (_, home) = caller.take_at(MIB * 8, FAR);
    assert_eq!((home, caller.pins.len()), (FAR, 2));
}

/// With one device nothing is different on a machine of several nodes.
#[test]
fn phases_are_looked_for_until_there_is_a_second_home() {
    let exact = Settings { growth: Growth::Exact, warm_up: WarmUp::Off, ..settings() };
    for second in [false, true] {
        let mut caller = Caller::new(exact.clone());
        if second {
            caller.take_at(8 * MIB, FAR);
        }
        for phase in 0..20 {
            let sizes = (0..8).map(|n| (16 + (phase * 7 + n * 5) % 32) * MIB);
            let blocks: Vec<_> = sizes.map(|bytes| caller.take(bytes)).collect();
            blocks.into_iter().for_each(|it| caller.release(it));
        }
        let is_long = caller.pins.iter().any(|mib| *mib > 48);
        assert_eq!(is_long, !second, "{:?}", caller.pins);
        caller.it.engine().audit().unwrap();
    }
}
