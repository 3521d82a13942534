//! Requests that a plan has places for, while its memory is pinned and given back.

use pinbuddy_core::WarmUp;
use shuttle::thread;

use super::{Tested, all, explore};

#[test]
fn requests_with_a_plan_beside_a_clear() {
    explore(|| {
        let it = Tested::planned(WarmUp::Sync);
        let threads = vec![
            it.planned_pairs(0, &[40, 8]),
            it.planned_pairs(1, &[40]),
            thread::spawn(move || it.handle.empty_cache()),
        ];
        all(threads);
        it.settle();
    });
}

#[test]
fn two_that_need_the_same_region_after_a_clear() {
    explore(|| {
        let it = Tested::planned(WarmUp::Sync);
        it.handle.warm_up(true);
        it.handle.empty_cache();
        all(vec![it.planned_pairs(0, &[40]), it.planned_pairs(1, &[40])]);
        it.settle();
    });
}

#[test]
fn a_plan_that_is_pinned_in_the_background() {
    explore(|| {
        let it = Tested::planned(WarmUp::Background);
        let wait = thread::spawn(move || {
            it.handle.warm_up(true);
        });
        all(vec![it.planned_pairs(0, &[40, 8]), it.planned_pairs(1, &[40]), wait]);
        it.settle();
    });
}

#[test]
fn the_end_while_the_plan_is_pinned() {
    explore(|| {
        let it = Tested::planned(WarmUp::Sync);
        let [first, second] = [0, 1].map(|thread| it.planned_pairs(thread, &[40]));
        all(vec![first, second, thread::spawn(move || it.close())]);
    });
}
