//! Traces of all versions, a snapshot and a table of events, as earlier releases wrote them: what is read of them stays.

use crate::started;
use started::told;

/// A line for each block and for each thing that happened.
fn read(name: &str, more: &[&str]) -> String {
    let path = format!("{}/tests/old/{name}", env!("CARGO_MANIFEST_DIR"));
    let report = |format| told(&[&["report", &path, "--format", format, "-o", "-"], more].concat());
    let events: serde_json::Value = serde_json::from_str(&report("perfetto")).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let events: Vec<String> = events.iter().map(ToString::to_string).collect();
    format!("{name} {}\n{}{}\n", more.join(" "), report("csv"), events.join("\n"))
}

#[test]
fn files_of_earlier_releases_read_as_they_did() {
    let files: [(&str, &[&str]); 10] = [
        ("version1.jsonl", &[]),
        ("version2.jsonl", &[]),
        ("version3.jsonl", &[]),
        ("version4.jsonl", &[]),
        ("version4.jsonl", &["--device", "0"]),
        ("version5.jsonl", &[]),
        ("version6.jsonl", &[]),
        ("snapshot.pickle", &[]),
        ("table.csv", &[]),
        ("table.csv", &["--device", "1"]),
    ];
    let all: Vec<String> = files.iter().map(|(name, more)| read(name, more)).collect();
    insta::assert_snapshot!(all.join("\n"));
}
