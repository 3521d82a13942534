//! `report --format perfetto` keeps to the document of the format, "Trace Event Format" of Chromium's tracing, as far as it is
//! used: phases, the fields that each has to have, and begins and ends that belong together.
//!
//! Perfetto's own trace_processor, which would read it, is in no package that tests could fetch.

use std::collections::HashMap;

use serde_json::Value;

use crate::started;

fn written(path: &str) -> Value {
    let (_, events) = started::report(path, &["--format", "perfetto"]);
    serde_json::from_slice(&events).unwrap()
}

/// A number that is there; times may have fractions of a microsecond.
fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("no {field}: {event}"))
}

fn text<'e>(event: &'e Value, field: &str) -> &'e str {
    event[field].as_str().unwrap_or_else(|| panic!("no {field}: {event}"))
}

/// Checks all events; how many of each phase there are.
fn checked(document: &Value) -> HashMap<String, usize> {
    assert!(["ms", "ns"].contains(&text(document, "displayTimeUnit")));
    let mut phases = HashMap::new();
    let mut open: HashMap<(String, u64), Vec<(String, f64)>> = HashMap::new();
    let mut events: Vec<&Value> = document["traceEvents"].as_array().unwrap().iter().collect();
    // Readers sort by time; what is of one moment stays in its order.
    events.sort_by(|a, b| number(a, "ts").total_cmp(&number(b, "ts")));
    for event in events {
        let (name, phase, at) = (text(event, "name"), text(event, "ph"), number(event, "ts"));
        assert!(at >= 0.0 && number(event, "pid") >= 0.0, "{event}");
        *phases.entry(phase.to_owned()).or_default() += 1;
        if phase != "C" {
            number(event, "tid");
        }
        match phase {
            "C" => {
                let series = event["args"].as_object().unwrap();
                assert!(!series.is_empty() && series.values().all(Value::is_number));
            }
            "i" => assert!(["g", "p", "t"].contains(&text(event, "s")), "{event}"),
            "X" => assert!(number(event, "dur") >= 0.0, "{event}"),
            "b" | "e" => {
                let id = event["id"].as_u64().unwrap();
                let slices = open.entry((text(event, "cat").to_owned(), id)).or_default();
                if phase == "b" {
                    slices.push((name.to_owned(), at));
                } else {
                    let (begun, from) = slices.pop().expect("a begin before it");
                    assert!(begun == name && from <= at, "{event}");
                }
            }
            other => panic!("no such phase is written: {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "a slice without an end");
    phases
}

#[test]
fn events_are_as_the_document_of_the_format_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    for workload in ["data-loader", "checkpoint"] {
        let phases = checked(&written(&started::trace(&folder, workload, 20)));
        for phase in ["C", "i", "b", "e"] {
            assert!(phases[phase] > 10, "{workload}: {phases:?}");
        }
    }
    let waits = include_str!("old/version5.jsonl");
    let waits = written(&started::file(&folder, "waits.jsonl", waits));
    assert_eq!(checked(&waits)["X"], 2);
}
