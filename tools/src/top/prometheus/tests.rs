//! Samples, read again by Prometheus's description of its text format.

use std::collections::BTreeMap;

use pinbuddy_live::{Budget, Page, Process};

use super::super::row::State;
use super::*;

fn row(pid: u32, program: &str) -> Row {
    let state = State::Shown(Page {
        process: Process {
            pid,
            rank: (pid != 1).then_some((3, 8)),
            program: program.to_owned(),
            ..Process::default()
        },
        counters: Counters {
            pinned: 1 << 30,
            budget: if pid == 1 {
                Budget::Unknown
            } else {
                Budget::Bytes(1 << 40)
            },
            waited: 1_000_000_050,
            ..Counters::default()
        },
        ..Page::default()
    });
    Row { pid, state }
}

type Labels = BTreeMap<String, String>;

/// The type of a metric, and its samples.
type Metric = (String, Vec<(Labels, f64)>);

/// By Prometheus's description of the text format: the type of each metric, and its samples with their labels.
fn parse(text: &str) -> BTreeMap<String, Metric> {
    let mut metrics = BTreeMap::new();
    let mut current = String::new();
    assert!(text.ends_with('\n'), "the last line has an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(
                rest.split_once(' ')
                    .is_some_and(|(_, help)| !help.is_empty())
            );
            current = rest.split(' ').next().unwrap().to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "the type follows the help");
            let fresh = metrics.insert(name.to_owned(), (kind.to_owned(), Vec::new()));
            assert!(fresh.is_none(), "{name} comes twice");
        } else {
            let (name, rest) = line.split_once('{').unwrap();
            assert_eq!(name, current, "samples of a metric stand together");
            let (labels, value) = labels(rest);
            let value = value.strip_prefix(' ').unwrap().parse().unwrap();
            metrics.get_mut(name).unwrap().1.push((labels, value));
        }
    }
    metrics
}

/// Labels up to the closing bracket, and what follows.
fn labels(text: &str) -> (Labels, &str) {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(
            name.chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '_'),
            "{name}"
        );
        let (mut value, mut escaped, mut end) = (String::new(), false, after.len());
        for (at, it) in after.char_indices() {
            match it {
                '\\' if !escaped => escaped = true,
                '"' if !escaped => {
                    end = at;
                    break;
                }
                it => {
                    value.push(if escaped && it == 'n' { '\n' } else { it });
                    escaped = false;
                }
            }
        }
        labels.insert(name.to_owned(), value);
        let after = &after[end + 1..];
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, after.strip_prefix('}').unwrap()),
        }
    }
}

#[test]
fn samples_are_text_that_prometheus_reads() {
    let odd = "tr\"ain\\ \n.py";
    let ended = Row {
        pid: 9,
        state: State::Ended,
    };
    let metrics = parse(&samples(&[row(1, "serve"), row(2, odd), ended]));
    assert_eq!(metrics.len(), METRICS.len());
    for (name, (kind, of)) in &metrics {
        assert!(name.starts_with("pinbuddy_"));
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        let known = if name == "pinbuddy_budget_bytes" {
            1
        } else {
            2
        };
        assert_eq!(of.len(), known, "{name}");
    }
    let (labels, pinned) = &metrics["pinbuddy_pinned_bytes"].1[1];
    assert_eq!(*pinned, (1_u64 << 30) as f64);
    let label = |name: &str| labels[name].as_str();
    assert_eq!(
        (label("pid"), label("rank"), label("program")),
        ("2", "3", odd)
    );
    assert_eq!(metrics["pinbuddy_wait_seconds_total"].1[0].1, 1.000_000_05);
}

#[test]
fn a_file_that_nobody_would_read_is_refused() {
    assert!(check_name(Path::new("/tmp/pinbuddy.prom")).is_ok());
    for name in ["/tmp/pinbuddy.txt", "prom", ""] {
        assert!(
            check_name(Path::new(name))
                .unwrap_err()
                .to_string()
                .contains(".prom")
        );
    }
}
