//! The table and the JSON of small workloads. All counts are deterministic.

use std::io::Write as _;

use pinbuddy_replay::workload::Workload;
use table::Table;
use tempfile::NamedTempFile;

use super::*;

fn arguments(traces: &[&str]) -> cli::Simulate {
    use clap::Parser as _;
    let line = ["pinbuddy", "simulate"].into_iter();
    let cli = cli::Cli::try_parse_from(line.chain(traces.iter().copied())).unwrap();
    let cli::Command::Simulate(args) = cli.command else {
        panic!("another command");
    };
    args
}

/// Removes the times, which differ from run to run.
fn comparison(line: &[&str]) -> Comparison {
    let args = arguments(line);
    let (input, made) = inputs(&args.traces, args.made).unwrap().remove(0);
    let mut comparison = compare(&input, made, &kinds(&args.policies), &args).unwrap();
    comparison.reading_seconds = 0.0;
    for outcome in comparison.policies.values_mut() {
        assert!(outcome.seconds > 0.0);
        (outcome.seconds, outcome.requests_per_second) = (0.0, None);
    }
    comparison
}

#[test]
fn tables() {
    for name in ["fixed-129.5mib", "variable-lengths"] {
        let comparison = comparison(&[name]);
        insta::assert_snapshot!(name, Table(&comparison, &Kind::ALL).to_string());
    }
}

#[test]
fn json() {
    let line = "fixed-2.083gib --policy pinbuddy --block-count 2".split(' ');
    let line: Vec<&str> = line.collect();
    let answer = Answer {
        optimized: true,
        peak_memory_bytes: Some(1 << 24),
        traces: vec![comparison(&line)],
        advice: Vec::new(),
    };
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&answer).unwrap());
    insta::assert_snapshot!("footer", table::footer(&answer));
}

#[test]
fn workloads_come_with_advice_and_chosen_policies_without() {
    let told = |line: &[&str]| {
        let args = arguments(line);
        advice(&inputs(&args.traces, args.made).unwrap(), &args).unwrap()
    };
    let advice = told(&["fixed-129.5mib"]);
    assert_eq!(advice.len(), 1);
    let text = table::Advised(&advice).to_string();
    let start = "fixed-129.5mib\n  Recommended: pinbuddy";
    assert!(text.starts_with(start), "{text}");
    let reason = &advice[0].recommendation.reason;
    assert!(reason.starts_with("it pins 5.06 GiB (1.00 times"));
    assert!(told(&["fixed-129.5mib", "--policy", "stock"]).is_empty());
}

#[test]
fn the_document_explains_policies_and_keys() {
    let page = include_str!("../../../docs/simulate.md");
    let has = |text: String| assert!(page.contains(&text), "docs/simulate.md has no {text:?}");
    for policy in Kind::ALL {
        has(format!("\n| `{}` |", policy.name()));
    }
    let comparison = comparison(&["fixed-2.083gib", "--policy", "stock"]);
    let outcome = serde_json::to_value(&comparison.policies["stock"]).unwrap();
    for key in outcome.as_object().unwrap().keys() {
        has(format!("`{key}`"));
    }
}

#[test]
fn a_file_is_replayed_as_what_it_was_written_from() {
    let mut file = NamedTempFile::new().unwrap();
    let mut writer = pinbuddy_events::trace::Writer::new(file.as_file_mut()).unwrap();
    Workload::named("kv-cache").unwrap().events(1, 50).for_each(|it| writer.write(&it).unwrap());
    writer.finish().unwrap();
    let [from_file, made] = [&[file.path().to_str().unwrap()][..], &["kv-cache", "--steps", "50"]].map(comparison);
    assert_eq!((from_file.policies, from_file.events), (made.policies, made.events));
}

#[test]
fn device_memory_is_left_out_and_a_trace_of_nothing_else_refused_as_is_what_is_no_file_and_no_workload() {
    insta::assert_snapshot!("missing", open("no/such").err().unwrap().to_string());
    let mut file = NamedTempFile::new().unwrap();
    let device = r#"{"format":"pinbuddy-trace","version":4,"memory":"both"}
{"t":1,"op":"alloc","id":1,"bytes":20,"device":0,"stream":0}"#;
    writeln!(file, "{device}").unwrap();
    let path = file.path().display().to_string();
    let refused = open(&path).err().unwrap().to_string();
    assert!(refused.contains("pinbuddy plan is for those"), "{refused}");
    writeln!(file, r#"{{"t":2,"op":"alloc","id":2,"bytes":5000}}"#).unwrap();
    assert_eq!(comparison(&[&path]).policies["stock"].allocations, 1);
}

/// The run saw late that the stream was done, which another allocator would have seen in time.
#[test]
fn a_policy_has_the_streams_work_in_its_own_time() {
    let mut file = NamedTempFile::new().unwrap();
    let text = r#"{"format":"pinbuddy-trace","version":2,"torch":"2.15.0"}
{"t":3,"op":"alloc","id":1,"bytes":5000,"thread":0}
{"t":4,"op":"event","id":1,"stream":0}
{"t":5,"op":"free","id":1,"thread":0}
{"t":9000,"op":"alloc","id":2,"bytes":5000,"thread":0}
{"t":9001,"op":"safe","id":1}"#;
    writeln!(file, "{text}").unwrap();
    let outcome = &comparison(&[&file.path().display().to_string()]).policies["stock"];
    assert_eq!((outcome.allocations, outcome.pins), (2, 1));
}
