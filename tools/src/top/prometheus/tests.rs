//! Samples as the node exporter reads them: Prometheus's text format, version 0.0.4.

use pinbuddy_live::{Budget, Page, Process};

use super::super::row::State;
use super::*;

fn row(pid: u32, program: &str) -> Row {
    let state = State::Shown(Page {
        process: Process { pid, rank: (pid != 1).then_some((3, 8)), program: program.to_owned(), ..Process::default() },
        counters: Counters {
            pinned: 1 << 30,
            budget: match pid {
                1 => Budget::Unknown,
                _ => Budget::Bytes(1 << 40),
            },
            waited: 1_000_000_050,
            ..Counters::default()
        },
        ..Page::default()
    });
    Row { pid, state }
}

#[test]
fn samples_are_text_that_prometheus_reads() {
    let odd = "tr\"ain\\ \n.py";
    let ended = Row { pid: 9, state: State::Ended };
    insta::assert_snapshot!(samples(&[row(1, "serve"), row(2, odd), ended]));
}
