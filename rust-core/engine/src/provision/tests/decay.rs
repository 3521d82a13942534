//! Memory that nobody uses goes back by itself.

use super::*;
use crate::units::Home;

const S: Duration = Duration::from_secs(1);

fn with(after: u32, count: Option<usize>) -> Caller {
    Caller::new(Settings { segment_bytes: 64 * MIB, growth: Growth::Exact, idle: Some(S * after), count, ..settings() })
}

impl Caller {
    /// Looks every second for so many, and unpins what goes; the bytes still pinned, in MiB.
    fn rest(&mut self, seconds: u32) -> usize {
        let sums = |it: &Provisioner| {
            let returned = it.engine().stats().returned_bytes as usize;
            (it.held() + returned, it.engine().leaving_bytes().wrapping_sub(returned))
        };
        for _ in 0..seconds {
            self.now += S;
            let before = sums(&self.it);
            self.it.let_go_unused(self.now);
            assert_eq!(sums(&self.it), before, "what was held is returned, and leaves");
            self.work();
        }
        self.held()
    }

    fn held(&self) -> usize {
        self.it.engine().audit().unwrap();
        self.it.engine().pinned_bytes() / MIB
    }
}

#[test]
fn what_nobody_used_for_the_idle_time_goes_the_oldest_first() {
    let mut caller = with(10, Some(0));
    let [live, first, second] = [8, 16, 32].map(|mib| caller.take(mib * MIB));
    caller.release(first);
    assert_eq!(caller.rest(5), 56);
    caller.release(second);
    assert_eq!(caller.rest(6), 40, "the first, and no block that lives");
    assert_eq!(caller.rest(5), 8);
    assert_eq!(caller.it.engine().stats().returned_bytes, 48 << 20);
    caller.release(live);
    let pins = caller.pins.len();
    let again = caller.take(8 * MIB);
    assert_eq!(caller.pins.len(), pins, "it was there");
    assert_eq!(caller.rest(60), 8);
    caller.release(again);
    assert_eq!(caller.rest(12), 0);
    caller.take(8 * MIB);
    assert_eq!(caller.held(), 8, "and comes back with a request");
}

#[test]
fn what_is_used_now_and_then_stays_and_zero_is_at_the_next_look_and_unset_is_never() {
    let mut caller = with(10, Some(0));
    for _ in 0..20 {
        let block = caller.take(16 * MIB);
        caller.release(block);
        assert_eq!(caller.rest(8), 16);
    }
    assert_eq!(caller.pins, [16]);
    for (idle, left) in [(Some(0), 0), (None, 16)] {
        let mut caller = with(0, Some(0));
        caller.it.settings.idle = idle.map(|it| S * it);
        let block = caller.take(16 * MIB);
        assert_eq!(caller.rest(1), 16);
        caller.release(block);
        assert_eq!(caller.rest(1), left);
    }
}

#[test]
fn a_warm_up_stays_before_its_first_use_and_comes_back_with_demand() {
    let mut caller = with(10, Some(2));
    caller.it.urge(Home(0));
    caller.work();
    assert_eq!(caller.rest(1000), 128, "ready for the first request");
    let blocks = [50, 50, 50].map(|mib| caller.take(mib * MIB));
    blocks.into_iter().for_each(|it| caller.release(it));
    assert_eq!(caller.held(), 178);
    let before = caller.pins.len();
    assert_eq!(caller.rest(1000), 0);
    assert_eq!(caller.pins.len(), before, "nothing is pinned by itself");
    caller.take(4 * MIB);
    caller.work();
    assert_eq!(caller.held(), 4, "one request is no demand");
    for _ in 0..12 {
        caller.take(4 * MIB);
        caller.work();
    }
    assert!(caller.pins[before..].contains(&64), "{:?}", caller.pins);
}

/// What is ready ahead of demand goes too, and the worker does not pin it again.
#[test]
fn memory_ahead_of_demand_goes_and_stays_away() {
    let mut caller = with(10, None);
    caller.it.settings.growth = Growth::Segment;
    let blocks: Vec<_> = (0..60).map(|_| caller.take(8 * MIB)).collect();
    caller.work();
    let pins = caller.pins.len();
    assert!(caller.held() > 480);
    caller.rest(30);
    let held = caller.held();
    assert!(held < 480 + 64, "what is live, in its segments: {held}");
    assert_eq!(caller.pins.len(), pins);
    blocks.into_iter().for_each(|it| caller.release(it));
    assert_eq!(caller.rest(30), 0);
}
