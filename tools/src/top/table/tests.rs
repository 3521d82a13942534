//! Tables as people see them, at several widths.

use pinbuddy_live::{Budget, Page, Process};

use super::super::row::State;
use super::*;

const MIB: u64 = 1 << 20;

fn page(rank: u32) -> Page {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Page {
        process: Process {
            pid: 1,
            rank: Some((rank, 8)),
            device: Some(rank),
            program: "train_a_model_with_a_long_name.py".to_owned(),
            since: 0,
        },
        updated: u64::try_from(now.as_nanos()).unwrap(),
        counters: Counters {
            pinned: 4096 * MIB,
            peak_pinned: 6000 * MIB,
            live: 3000 * MIB,
            pending: 500 * MIB,
            budget: Budget::Bytes(16_000 * MIB),
            served: 3000,
            misses: 1,
            waits: 12,
            waited: 1_300_000_000,
            ..Counters::default()
        },
        nodes: Vec::new(),
    }
}

fn rows() -> Vec<Row> {
    let mut undecided = page(1);
    undecided.counters = Counters { pinned: 64 * MIB, peak_pinned: 64 * MIB, ..Counters::default() };
    let node = |node, pinned, used| NodeUse { node, pinned, used };
    undecided.nodes = vec![node(0, 48 * MIB, 0), node(1, 16 * MIB, 10 * MIB)];
    let mut stopped = page(2);
    stopped.updated = 0;
    stopped.counters.retired = true;
    let states = [
        State::Shown(page(0)),
        State::Shown(undecided),
        State::Shown(stopped),
        State::Ended,
        State::Wrong("its live page cannot be used: expected version 1, found version 2".to_owned()),
    ];
    let row = |(pid, state)| Row { pid, state };
    (123_456..).zip(states).map(row).collect()
}

#[test]
fn a_table_is_as_wide_as_there_is_room_for_and_no_line_is_wider() {
    for width in [80, 40, 140] {
        let table = table(&rows(), width, "; q ends");
        insta::assert_snapshot!(format!("{width}_columns"), table);
    }
    for width in 20..200 {
        for line in table(&rows(), width, "; q ends").lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn bars_add_up() {
    let mut of = page(0).counters;
    (of.pinned, of.live, of.pending) = (100, 50, 25);
    of.budget = Budget::Bytes(200);
    let signs = |of: &Counters| bar(of, 60).split(['[', ']']).nth(1).unwrap().to_owned();
    let count = |sign| signs(&of).matches(sign).count();
    let whole = signs(&of).len();
    assert_eq!(['#', '+', '-', '.'].map(count).iter().sum::<usize>(), whole);
    assert!(count('#').abs_diff(whole / 4) <= 1 && count('.').abs_diff(whole / 2) <= 1);
    // More than the budget, and nothing at all.
    of.budget = Budget::Bytes(10);
    assert!(!signs(&of).contains('.'));
    assert!(signs(&Counters::default()).chars().all(|it| it == '.'));
}

#[test]
fn sizes_have_three_digits() {
    for (bytes, text) in [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "0.98 KiB"),
        (500 << 20, "500 MiB"),
        (1_047_000_000, "998 MiB"),
        (1_048_576_000, "0.98 GiB"),
        (16_000 << 20, "15.6 GiB"),
        (5 << 40, "5.00 TiB"),
    ] {
        assert_eq!(size(bytes), text, "{bytes}");
    }
}
