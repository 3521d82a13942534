//! Memory that nobody uses goes back by itself.

use super::*;

const S: Duration = Duration::from_secs(1);

fn with(after: u64, sparing: bool, count: Option<usize>) -> Caller {
    Caller::new(Settings {
        segment_bytes: 64 * MIB,
        growth: Growth::Exact,
        idle: Some(Idle {
            after: S * after as u32,
            sparing,
        }),
        count,
        ..settings()
    })
}

impl Caller {
    /// Looks every second for so many, and unpins what goes; the bytes still pinned, in MiB.
    fn rest(&mut self, seconds: u32) -> usize {
        for _ in 0..seconds {
            self.now += S;
            self.it.let_go_unused(self.now);
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
    let mut caller = with(10, false, Some(0));
    let [live, first, second] = [8, 16, 32].map(|mib| caller.take(mib * MIB));
    caller.release(first);
    assert_eq!(caller.rest(5), 56);
    caller.release(second);
    assert_eq!(caller.rest(6), 40, "the first, and no block that lives");
    assert_eq!(caller.rest(5), 8);
    assert_eq!(caller.it.returned_bytes(), 48 << 20);
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
fn what_is_used_now_and_then_stays() {
    let mut caller = with(10, false, Some(0));
    for _ in 0..20 {
        let block = caller.take(16 * MIB);
        caller.release(block);
        assert_eq!(caller.rest(8), 16);
    }
    assert_eq!(caller.pins, [16]);
}

#[test]
fn zero_is_at_the_next_look_and_unset_is_never() {
    for (idle, left) in [(Some(0), 0), (None, 16)] {
        let mut caller = with(0, false, Some(0));
        caller.it.settings.idle = idle.map(|_: u32| caller.it.settings.idle.unwrap());
        let block = caller.take(16 * MIB);
        assert_eq!(caller.rest(1), 16);
        caller.release(block);
        assert_eq!(caller.rest(1), left);
    }
}

#[test]
fn a_warm_up_stays_by_default_and_before_its_first_use_in_any_case() {
    for sparing in [false, true] {
        let mut caller = with(10, sparing, Some(2));
        caller.it.urge();
        caller.work();
        assert_eq!(caller.rest(1000), 128, "ready for the first request");
        let blocks = [50, 50, 50].map(|mib| caller.take(mib * MIB));
        blocks.into_iter().for_each(|it| caller.release(it));
        assert_eq!(caller.held(), 178);
        let left = if sparing { 128 } else { 0 };
        assert!(caller.rest(1000) <= left + 50, "{}", caller.held());
        assert!(caller.held() >= left);
        let before = caller.pins.len();
        caller.rest(1000);
        assert_eq!(caller.pins.len(), before, "nothing is pinned by itself");
    }
}

/// What is ready ahead of demand goes too, and the worker does not pin it again.
#[test]
fn memory_ahead_of_demand_goes_and_stays_away() {
    let mut caller = with(10, false, None);
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

/// A program that works every so often: what it waits for pins is at most a hundredth of its time.
#[test]
fn by_default_no_period_loses_more_than_a_hundredth() {
    for period in [59, 61, 120, 600, 3600] {
        let mut caller = with(60, true, Some(0));
        let (mut waited, mut went) = (Duration::ZERO, false);
        for _ in 0..(4 * 3600 / period) {
            let before = caller.now;
            let blocks: Vec<_> = (0..64).map(|_| caller.take(32 * MIB)).collect();
            if before > Duration::ZERO {
                waited += caller.now - before;
            }
            blocks.into_iter().for_each(|it| caller.release(it));
            caller.rest(period);
            went |= caller.held() < 64 * 32;
        }
        // A mebibyte takes a millisecond here, which is slow: all of it 2 s, as long as with pages of 4 KiB.
        assert!(waited * 100 <= caller.now, "{period} s: {waited:?}");
        assert_eq!(went, period > 60, "{period}");
    }
}

proptest::proptest! {
    #[test]
    fn looking_never_pins_and_takes_no_live_block(
        acts in proptest::collection::vec((0_u8..4, 1_usize..80), 1..80), sparing: bool,
    ) {
        let mut caller = with(10, sparing, Some(1));
        let mut live = Vec::new();
        for (act, amount) in acts {
            match act {
                0 | 1 => live.push(caller.take((amount + 3) * MIB)),
                2 if !live.is_empty() => caller.release(live.swap_remove(amount % live.len())),
                _ => {
                    let sums = |it: &Provisioner| (it.held(), it.engine().leaving_bytes(), it.returned_bytes() as usize);
                    let before = sums(&caller.it);
                    caller.now += S * amount as u32;
                    caller.it.let_go_unused(caller.now);
                    let after = sums(&caller.it);
                    let gone = after.2 - before.2;
                    assert_eq!((after.0 + gone, after.1), (before.0, before.1 + gone));
                    caller.work();
                    assert!(caller.it.engine().audit().is_ok());
                }
            }
            live.iter().for_each(|it| assert!(caller.it.engine().address(*it) > 0));
        }
    }
}
