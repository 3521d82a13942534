//! `report`, as a user starts it: the page, and what other programs get.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::process::Command;

use pinbuddy_events::trace::{Header, Writer};
use pinbuddy_events::{Event, Op, Whose};
use pinbuddy_snapshot::Snapshot;
use serde_json::Value;
use tempfile::TempDir;

use crate::started;
use started::{Lines, data, report, says, told, trace};

fn numbers(it: &Value) -> Vec<i64> {
    serde_json::from_value(it.clone()).unwrap()
}

/// The numbers of which these are the differences.
fn sums(it: &Value) -> Vec<i64> {
    let mut sums = numbers(it);
    (1..sums.len()).for_each(|i| sums[i] += sums[i - 1]);
    sums
}

#[test]
fn a_page_is_one_file_beside_the_trace() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "variable-lengths", 4);
    let (path, page) = report(&file, &[]);
    assert!(path.ends_with("/variable-lengths.report.html"));
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn limits_and_nodes_of_the_run_are_there_where_the_trace_has_them() {
    let folder = TempDir::new().unwrap();
    let settings = [("BUDDY_MAX_MB".to_owned(), 3000.into())].into_iter().collect();
    let head = Header { group_limit: Some(4 << 30), settings, ..Header::default() };
    let head = Writer::with_header(Vec::new(), &head).unwrap().finish().unwrap();
    let mut lines = Lines(String::from_utf8(head).unwrap());
    lines.alloc(1, 1, 9);
    for (at, node, pinned, used) in [(1, 1, 70, 9), (2, 0, 30, 30), (3, 1, 60, 20)] {
        let fields = [("node", node), ("pinned", pinned), ("used", used)];
        lines.put(at, "node", &fields);
    }
    let file = started::file(&folder, "nodes.jsonl", lines.0);
    let found = data(&file, &["--time-limit", "0"]);
    assert_eq!((&found["budget"], &found["group_limit"]), (&(3000_u64 << 20).into(), &(4_u64 << 30).into()));
    insta::assert_snapshot!(found["nodes"], @r#"[{"at_end":[30,30],"node":0,"peak_pinned":30,"peak_used":30},{"at_end":[60,20],"node":1,"peak_pinned":70,"peak_used":20}]"#);
    let other = data(&trace(&folder, "tensors-155", 1), &["--time-limit", "0"]);
    assert_eq!(other["nodes"], serde_json::json!([]));
}

#[test]
fn what_is_drawn_agrees_with_what_is_advised() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "tensors-155", 4);
    let other = trace(&folder, "variable-lengths", 4);
    let data = data(&file, &["--compare", &other]);
    let greatest = |curve: &Value| sums(&curve["high"]).into_iter().max().unwrap();
    assert_eq!(data["requests"], 620);
    assert_eq!(greatest(&data["live"]), data["peak"].as_i64().unwrap());
    assert_eq!(data["peak"], data["advice"]["counts"]["largest_live"]);
    let choices = data["advice"]["choices"].as_array().unwrap();
    for it in data["allocators"].as_array().unwrap() {
        let peak = it["peak"].as_i64().unwrap();
        assert_eq!(greatest(&it["pinned"]), peak, "{}", it["name"]);
        if let Some(choice) = choices.iter().find(|choice| choice["name"] == it["name"]) {
            assert_eq!(it["peak"], choice["pinned"], "{}", it["name"]);
            assert_eq!(it["waited"], choice["waits"], "{}", it["name"]);
        }
        let elsewhere = &it["map"]["elsewhere"];
        assert!(elsewhere.is_null() || elsewhere == 0 || it["name"] == "a plan");
    }
    let lab = data["lab"]["tried"].as_array().unwrap();
    let of = |it: &Value| ["block_mb", "count", "threshold_mb", "exact"].map(|key| it[key].to_string());
    let usual = lab.iter().find(|it| of(it) == ["1024", "null", "4", "false"]);
    let pinbuddy = &data["allocators"][2];
    assert_eq!(pinbuddy["name"], "pinbuddy");
    assert_eq!(usual.unwrap()["peak"], pinbuddy["peak"], "the defaults");
    assert_eq!(data["compare"]["requests"], 4 * 18);
}

#[test]
fn one_thread_does_all_where_no_other_starts() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "tensors-155", 2);
    let out = folder.path().join("out").display().to_string();
    let commands: [&[&str]; 3] =
        [&["report", &file, "--out", &out], &["plan", &file, "--torch", "2.15.0", "--out", &out], &["advise", &file]];
    for arguments in commands {
        // No stack is that large.
        let ended = started::command().args(arguments).env("RUST_MIN_STACK", (1_u64 << 60).to_string()).output();
        assert!(ended.as_ref().unwrap().status.success(), "{ended:?}");
    }
}

#[test]
fn no_two_blocks_of_a_map_overlap() {
    let folder = TempDir::new().unwrap();
    let data = data(&trace(&folder, "kv-cache", 30), &[]);
    let blocks = &data["blocks"];
    let (from, bytes) = (sums(&blocks["from"]), numbers(&blocks["bytes"]));
    let (freed, until) = (numbers(&blocks["freed"]), numbers(&blocks["until"]));
    let end = |i: usize| match (freed[i], until[i]) {
        (freed, until) if freed >= 0 && until >= 0 => from[i] + freed + until,
        _ => i64::MAX,
    };
    let mut compared = 0;
    let allocators = data["allocators"].as_array().unwrap().iter();
    for it in allocators.filter(|it| !it["map"].is_null()) {
        let places = sums(&it["map"]["blocks"]);
        let mut live: Vec<usize> = Vec::new();
        for i in (0..from.len()).filter(|i| places[*i] > 0) {
            live.retain(|it| end(*it) > from[i]);
            for other in &live {
                let apart = places[*other] + bytes[*other] <= places[i] || places[i] + bytes[i] <= places[*other];
                assert!(apart, "{}: blocks {other} and {i}", it["name"]);
                compared += 1;
            }
            live.push(i);
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn other_programs_get_every_block() {
    let folder = TempDir::new().unwrap();
    let file = trace(&folder, "data-loader", 20);
    let (path, csv) = report(&file, &["--format", "csv"]);
    assert!(path.ends_with("/data-loader.blocks.csv"));
    let lines = String::from_utf8(csv).unwrap();
    let data = data(&file, &[]);
    let requests = data["requests"].as_u64().unwrap() as usize;
    assert_eq!(lines.lines().count(), requests + 1);

    let (path, _) = report(&file, &["--format", "snapshot"]);
    let snapshot = Snapshot::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    let allocations = snapshot.events(Whose::Device(0));
    let is_request = |it: &Event| matches!(it.op, Op::Request { .. });
    assert_eq!(allocations.filter(is_request).count(), requests);
}

/// A snapshot as PyTorch would write it, in which each request is asked for by one of two functions.
#[test]
fn a_snapshot_with_stacks_says_who_asked() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("stacks.pickle").display().to_string();
    let script = "../rust-core/snapshot/tests/generate.py";
    let mut made = Command::new("python3");
    made.args([script, &file, "4", "900"]);
    assert!(made.status().unwrap().success());
    let data = data(&file, &[]);
    let who = &data["who"];
    let blocks = who["blocks"].as_array().unwrap();
    let requests = data["requests"].as_u64().unwrap() as usize;
    assert_eq!(blocks.len(), requests);
    let third = blocks[2].as_u64().unwrap() as usize - 1;
    assert_eq!(who["stacks"][third], "function_212, /somewhere/model.py:212\nalloc, /somewhere/model.py");
    other_programs_get_stacks(&file);
    // Seven places, in no segment that was recorded, at the addresses that the file has.
    let lay = &data["as_recorded"];
    let mut places: Vec<String> = (0..7_u64).map(|it| format!("{:#x}", (1_u64 << 63) + (it << 20))).collect();
    places.sort_unstable();
    let found = lay["address"].as_array().unwrap().iter();
    let found: Vec<&str> = found.map(|it| it.as_str().unwrap()).collect();
    assert_eq!(found, places);
    assert_eq!(lay["map"]["elsewhere"], 0);
    assert_eq!(lay["map"]["blocks"].as_array().unwrap().len(), requests);
    // Equal ones are there once.
    let stacks: Vec<String> = serde_json::from_value(who["stacks"].clone()).unwrap();
    let different: HashSet<&String> = stacks.iter().collect();
    assert_eq!(different.len(), stacks.len());
    assert!(stacks.len() < blocks.len());
    let total = |it: &Value| it["total"].as_u64().unwrap();
    let at_peak = who["at_peak"].as_array().unwrap().iter();
    assert_eq!(data["peak"], at_peak.map(total).sum::<u64>());
}

/// The third request's, as the file has it.
fn other_programs_get_stacks(file: &str) {
    let calls = ["function_212 (/somewhere/model.py:212)", "alloc (/somewhere/model.py)"];
    let (_, csv) = report(file, &["--format", "csv"]);
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",stack"));
    let third = csv.lines().nth(3).unwrap();
    let said = format!(",\"{}\"", calls.join("; "));
    assert!(third.ends_with(&said), "{third}");

    let (_, events) = report(file, &["--format", "perfetto"]);
    let events: Value = serde_json::from_slice(&events).unwrap();
    let mut events = events["traceEvents"].as_array().unwrap().iter();
    let third = events.find(|it| it["ph"] == "b" && it["id"] == 2).unwrap();
    assert_eq!(third["args"]["stack"], serde_json::json!(calls));

    let (path, _) = report(file, &["--format", "snapshot"]);
    let snapshot = Snapshot::read(BufReader::new(File::open(&path).unwrap())).unwrap();
    let third = snapshot.stacks_of_requests(Whose::Device(0)).nth(2);
    let read = snapshot.stacks.calls(third.flatten().unwrap());
    let read: Vec<_> = read.map(|it| (it.function, it.file, it.line)).collect();
    let file = "/somewhere/model.py";
    assert_eq!(read, [("function_212", file, 212), ("alloc", file, 0)]);
}

/// A run whose first request waited 4 ms before anything else happened, and which waited again in its second iteration.
const WAITED: &str = r#"{"t":5000000,"op":"alloc","id":1,"bytes":8388608,"thread":2}
{"t":5000000,"op":"wait","id":1,"took":4000000,"thread":2}
{"t":6000000,"op":"iter"}
{"t":7000000,"op":"alloc","id":2,"bytes":1048576,"thread":0}
{"t":9000000,"op":"alloc","id":3,"bytes":2097152,"thread":0}
{"t":9000000,"op":"wait","id":3,"took":1500000,"thread":0}
{"t":9000000,"op":"free","id":1,"thread":0}
{"t":9500000,"op":"clear"}
{"t":9900000,"op":"wait","took":300000,"thread":1}
"#;

/// The run's trace, as of this version.
fn waited(folder: &TempDir, name: &str, version: u64, events: &str) -> String {
    let fields = format!(r#""version":{version},"unit":"ns","torch":"2.15.0""#);
    started::file(folder, name, Lines::with_head(&fields).0 + events)
}

#[test]
fn where_the_run_waited_for_the_driver_is_told() {
    let folder = TempDir::new().unwrap();
    let file = waited(&folder, "waited.jsonl", 5, WAITED);
    let said = told(&["report", &file, "--format", "json", "--time-limit", "0"]);
    let sum = "the run itself waited 3 times for the driver, 5.80 ms in all";
    assert!(said.trim_end().ends_with(sum), "{said}");
    let advice = told(&["advise", &file]);
    says(&advice, "The run itself waited 3 times for the driver, 5.80 ms in all.");

    let data = data(&file, &["--time-limit", "0"]);
    // Begins from that of the first wait on, each as the difference to the one before.
    insta::assert_snapshot!(
        data["waits"],
        @r#"{"bytes":[8388608,2097152,0],"count":3,"from":[0,6500,2100],"later":{"count":2,"total":1800},"thread":[2,0,1],"took":[4000,1500,300],"total":5800}"#
    );
    let stock = &data["allocators"][0];
    let others = [&data["end"], &data["iterations"][0], &stock["name"], &stock["waited"]];
    assert_eq!(serde_json::json!(others), serde_json::json!([8900, 5000, "stock", 3]));
}

#[test]
fn a_trace_without_waits_says_whether_it_would_have_them() {
    let folder = TempDir::new().unwrap();
    let without: Vec<&str> = WAITED.lines().filter(|it| !it.contains("wait")).collect();
    let without = without.join("\n") + "\n";
    for (version, expected) in [(5, serde_json::json!({"count": 0, "total": 0})), (4, Value::Null)] {
        let file = waited(&folder, "without.jsonl", version, &without);
        let data = data(&file, &["--time-limit", "0", "--compare", &file]);
        assert_eq!(data["waits"]["count"], expected["count"]);
        assert_eq!(data["compare"]["waits"], expected);
        let said = told(&["report", &file, "--format", "csv"]);
        assert_eq!(said.contains("never waited for the driver"), version == 5);
    }
}

/// A line for each block and for each thing that happened.
fn as_other_programs_get(file: &str) -> String {
    let words: Vec<&str> = file.split(' ').collect();
    let (name, more) = (words[0], &words[1..]);
    let path = format!("{}/tests/old/{name}", env!("CARGO_MANIFEST_DIR"));
    let report = |format| told(&[&["report", &path, "--format", format, "-o", "-"], more].concat());
    let events: Value = serde_json::from_str(&report("perfetto")).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let events: Vec<String> = events.iter().map(ToString::to_string).collect();
    format!("{name} {}\n{}{}\n", more.join(" "), report("csv"), events.join("\n"))
}

/// Traces of all versions, a snapshot and a table of events: what is read of them stays.
#[test]
fn files_of_earlier_releases_read_as_they_did() {
    let files = "version1.jsonl, version2.jsonl, version3.jsonl, version4.jsonl, version4.jsonl --device 0, version5.jsonl, \
                 version6.jsonl, snapshot.pickle, table.csv, table.csv --device 1";
    let all: Vec<String> = files.split(", ").map(as_other_programs_get).collect();
    insta::assert_snapshot!(all.join("\n"));
}
