//! Idle memory that goes back by itself while threads ask for it, and at the end of the process.

use pinbuddy_core::WarmUp;
use shuttle::thread;

use super::{Tested, all, explore};

const AT_ONCE: (&str, &str) = ("BUDDY_IDLE_S", "0");

fn engine() -> Tested {
    Tested::with(&[("BUDDY_WARMUP", "off"), AT_ONCE])
}

fn looks(it: Tested) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        it.handle.return_idle();
        it.handle.return_idle();
    })
}

#[test]
fn idle_memory_goes_beside_requests() {
    explore(|| {
        let it = engine();
        let pairs = thread::spawn(move || {
            it.pair(8);
            it.pair(40);
        });
        all(vec![pairs, looks(it), thread::spawn(move || it.pair(48))]);
        it.settle();
        // Wakes the thread that looks.
        it.close();
    });
}

#[test]
fn a_plan_goes_beside_requests_and_comes_back() {
    explore(|| {
        let it = Tested::planned_with(WarmUp::Sync, AT_ONCE.1);
        it.handle.warm_up(true);
        all(vec![it.planned_pairs(0, &[40, 8, 40, 8]), it.planned_pairs(1, &[40]), looks(it)]);
        it.settle();
        it.close();
    });
}

#[test]
fn the_end_while_idle_memory_goes() {
    explore(|| {
        let it = engine();
        it.pair(8);
        all(vec![looks(it), thread::spawn(move || it.close())]);
    });
}
