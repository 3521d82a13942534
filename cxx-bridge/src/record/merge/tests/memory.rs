//! A process with little memory loses entries, and goes on.

use super::*;
use crate::alone;

/// In the child, which has little memory: anything.
const VARIABLE: &str = "PINBUDDY_TEST_LITTLE_MEMORY";

/// Counts, and takes no memory itself.
#[derive(Default)]
struct Counted {
    events: u64,
    lost: u64,
}

impl Output for Counted {
    fn event(&mut self, _: Event) {
        self.events += 1;
    }
    fn lost(&mut self, entries: Lost) {
        self.lost += entries.pinned;
    }
}

const DRAINS: u64 = 50;
const EACH: u64 = 20_000;

/// More blocks live than there is memory for; or more is held, since it happened later than the drain.
#[test]
fn what_there_is_no_memory_for_is_lost() {
    if std::env::var_os(VARIABLE).is_none() {
        let name = "record::merge::tests::memory::what_there_is_no_memory_for_is_lost";
        alone::run(name, VARIABLE, "1");
        return;
    }
    alone::limit(libc::RLIMIT_DATA, 24 << 20);
    for is_held in [false, true] {
        let (rings, mut merger, mut counted) = (&Rings::default(), merger(), Counted::default());
        let drain = |merger: &mut Merger, until, counted: &mut Counted| {
            merger.drain(&rings, moment(until), counted);
        };
        for drained in 1..=DRAINS {
            let numbers = (drained * EACH)..(drained + 1) * EACH;
            let at = if is_held { LATE * DRAINS } else { drained };
            let all: Vec<Entry> = numbers.map(|it| entry(at, it, request(8))).collect();
            rings.put(0, 0, &all);
            drain(&mut merger, drained + LATE, &mut counted);
        }
        drain(&mut merger, LATE * (DRAINS + 1), &mut counted);
        let Counted { events, lost } = counted;
        assert!(events > 50_000 && lost > 0, "{events} and {lost}");
        assert_eq!(events + lost, DRAINS * EACH);
    }
}
