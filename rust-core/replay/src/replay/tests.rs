//! Measurements of programs small enough to count by hand, and what PyTorch and the fork were seen to pin.

use super::*;
use crate::workload::Workload;
use pinbuddy_events::trace::Reader;
use pinbuddy_events::{Checker, Event};

fn steps(events: impl Iterator<Item = Event>) -> Vec<Step> {
    let mut checker = Checker::default();
    (1..).zip(events).filter_map(|(line, event)| Step::checked(&mut checker, line, event).unwrap()).collect()
}

fn replayed(trace: &str, policy: impl Policy) -> Outcome {
    let mut replay = Replay::new(policy);
    steps(Reader::new(trace.as_bytes()).map(|it| it.unwrap().1)).into_iter().for_each(|it| replay.step(it));
    replay.outcome()
}

const SMALL: &str = r#"{"t":1,"op":"alloc","id":1,"bytes":3145728}
{"t":2,"op":"alloc","id":2,"bytes":5242880}
{"t":3,"op":"free","id":1}
{"t":4,"op":"iter"}
{"t":5,"op":"alloc","id":3,"bytes":3145728}
{"t":6,"op":"alloc","id":4,"bytes":1048576}
{"t":7,"op":"free","id":3}
{"t":8,"op":"clear"}
{"t":9,"op":"free","id":4}
{"t":10,"op":"free","id":2}
{"t":11,"op":"clear"}
"#;

#[test]
fn a_small_program_counted_by_hand() {
    let outcome = replayed(SMALL, Stock::default());
    let expected = Outcome {
        allocations: 4,
        frees: 4,
        hits: 1,
        misses: 3,
        pins: 3,
        pins_after_first_step: 1,
        unpins: 3,
        peak_pinned_bytes: 13 * MIB,
        largest_live_bytes: 9 * MIB,
        pinned_over_requested: Some(13.0 / 9.0),
        // Nothing lives at the second.
        clears: 1,
        after_clear_over_live: Some(9.0 / 6.0),
        after_last_clear_over_live: Some(9.0 / 6.0),
        pinned_bytes_at_end: 0,
        seconds: 0.0,
        requests_per_second: None,
    };
    assert_eq!(outcome, expected);
}

#[test]
fn a_block_that_a_stream_copies_is_not_used_again_before_that_is_over() {
    // 50 MB take a millisecond.
    let program = |t: u64| {
        format!(
            r#"{{"t":0,"op":"alloc","id":1,"bytes":50000000}}
{{"t":0,"op":"event","id":1,"stream":9}}
{{"t":0,"op":"free","id":1}}
{{"t":{t},"op":"alloc","id":2,"bytes":50000000}}
"#
        )
    };
    for (t, pins) in [(999, 2), (1000, 1)] {
        let settings = pinbuddy::Settings::default().exact();
        assert_eq!(replayed(&program(t), Stock::default()).pins, pins);
        assert_eq!(replayed(&program(t), Pinbuddy::new(settings)).pins, pins);
    }
}

/// What PyTorch 2.15.0 and its fork were seen to do with the same traces in the simulator: the models must do the same to the
/// byte. Pins, unpins, and the most bytes pinned at one moment; bytes come from statistics, except for `kv-cache`,
/// where cached blocks count and reading statistics would flush them. In this order: stock;
/// `pinned_max_round_threshold_mb:1`; the fork with `BUDDY_WARMUP=sync`; the fork with `BUDDY_WARMUP=off BUDDY_GROWTH=exact`.
const SEEN: &str = "\
variable-lengths: 28 28 2793406464, 72 72 4502794894, 10 10 8598323200, 56 56 1176637440
clear-181094: 3093 141 10184622080, 3136 184 11225459951, 3009 57 12617318400, 3346 394 7548964864
data-loader: 19 15 939530240, 19 15 549734400, 16 13 8589940736, 16 12 462428160
checkpoint: 5834 5832 7752355328, 5834 5832 7027527168, 2994 2992 8960314880, 5649 5647 7031721472
kv-cache: 231 49 6842613760, 260 78 7255359488, 23 16 8620998656, 218 37 6736445440
";

#[test]
fn the_models_pin_what_pytorch_and_the_fork_were_seen_to_pin() {
    let sync = pinbuddy::Settings { warm_up: pinbuddy_core::WarmUp::Sync, ..pinbuddy::Settings::default() };
    let kinds = [Kind::Stock, Kind::StockTuned, Kind::Pinbuddy, Kind::PinbuddyExact];
    for (name, seen) in SEEN.lines().filter_map(|it| it.split_once(": ")) {
        let workload = Workload::named(name).unwrap();
        let mut steps = steps(workload.events(1, workload.steps));
        // Uses on streams were left out there, too.
        steps.retain(|step| !matches!(step.act, Act::Use { .. }));
        for (kind, seen) in kinds.into_iter().zip(seen.split(", ")) {
            let mut run = on(kind, sync);
            run.batch(&steps);
            let it = run.outcome();
            let found = format!("{} {} {}", it.pins, it.unpins, it.peak_pinned_bytes);
            assert_eq!(found, seen, "{name} on {}", kind.name());
        }
    }
}

/// If sizes differ from step to step, hardly more is pinned than the largest step needs, and nothing
/// after the first steps.
#[test]
fn sizes_that_vary_cost_a_tenth_at_most_and_pins_end() {
    let workload = Workload::named("variable-lengths").unwrap();
    for seed in 1..=8 {
        let mut replay = Replay::new(Pinbuddy::new(pinbuddy::Settings::default().exact()));
        let mut pins = Vec::new();
        for step in steps(workload.events(seed, workload.steps)) {
            replay.step(step);
            if matches!(step.act, Act::Iter) {
                pins.push(replay.outcome().pins);
            }
        }
        let ratio = replay.outcome().pinned_over_requested.unwrap();
        assert!(ratio <= 1.10, "seed {seed}: {ratio}");
        let late = &pins[pins.len() - 10..];
        let are_few = late.iter().all(|it| *it == late[0] && *it < 70);
        assert!(are_few, "seed {seed}: {pins:?}");
    }
}
