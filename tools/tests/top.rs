//! `top`, as a user starts it, beside processes that show a page.

use std::fs;
use std::process::Output;

use pinbuddy_live::{Counters, LENGTH, NAME, Page, Process};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::started;
use started::{says, tools};

fn top(arguments: &[&str]) -> Output {
    tools(&[&["top"], arguments].concat())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// This process shows a page until the result is dropped.
fn shown() -> impl Sized {
    let page = Page {
        process: Process { pid: std::process::id(), program: "train.py".to_owned(), ..Process::default() },
        counters: Counters { pinned: 3 << 20, live: 1 << 20, ..Counters::default() },
        ..Page::default()
    };
    let words = page.words().into_iter();
    let mut bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    bytes.resize(LENGTH, 0);
    let file = memfd_create(NAME, MemfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&file, &bytes).unwrap();
    file
}

#[test]
fn a_table_is_printed_once_where_there_is_no_terminal() {
    let _page = shown();
    let own = std::process::id().to_string();
    let output = top(&[&own]);
    assert!(output.status.success());
    let table = text(&output.stdout);
    for part in ["train.py", "3.00 MiB", "not refreshed for"] {
        says(table, part);
    }
    let output = top(&["--all", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut all = all["processes"].as_array().unwrap().iter();
    let mine = all.find(|it| it["pid"] == std::process::id()).unwrap();
    let shown = ["pinned_bytes", "live_bytes", "state", "budget_bytes"].map(|key| &mine[key]);
    assert_eq!(json!(shown), json!([3 << 20, 1 << 20, "shown", null]));
}

#[test]
fn a_process_that_is_gone_has_a_row_that_says_so() {
    let output = top(&["--once", "4294967295"]);
    assert_eq!(output.status.code(), Some(1));
    says(text(&output.stdout), "4294967295: there is no such process");
    let output = top(&["--json", "4294967295"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["processes"][0]["state"], "ended");
}

#[test]
fn a_command_is_started_and_its_status_passed_on() {
    let output = top(&["--launch", "sh", "-c", "echo $BUDDY_LIVE; exit 7", "--json"]);
    let came_to = (output.status.code(), text(&output.stdout));
    assert_eq!(came_to, (Some(7), "1\n"));
    says(text(&output.stderr), "no process has pinned memory yet");
    let output = top(&["--launch", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(137));
    let output = top(&["--launch", "/there/is/no/such/program"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/there/is/no/such/program cannot be started"));
}

/// As a scheduler ends a job, whatever its input is; and what it tells others has no process that has ended.
#[test]
fn a_signal_to_top_is_the_programs() {
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let script = format!("trap 'exit {status}' {signal}; kill -{signal} $PPID; while :; do sleep 0.05; done");
        // Of a session of its own, with no terminal.
        let mut session = std::process::Command::new("setsid");
        session.args(["--wait", env!("CARGO_BIN_EXE_pinbuddy-tools")]);
        let output = session.args(["top", "--launch", "sh", "-c", &script]).output();
        let output = output.unwrap();
        let code = output.status.code();
        assert_eq!(code, Some(status), "{}", text(&output.stderr));
    }
}

#[test]
fn samples_are_a_file_that_is_replaced() {
    let _page = shown();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pinbuddy.prom");
    let (own, name) = (std::process::id().to_string(), file.display().to_string());
    let output = top(&["--once", "--prometheus", &name, &own]);
    assert!(output.status.success() && output.stdout.is_empty());
    let samples = fs::read_to_string(&file).unwrap();
    let labels = format!("{{pid=\"{own}\",program=\"train.py\",rank=\"\"}}");
    says(&samples, &format!("pinbuddy_pinned_bytes{labels} 3145728\n"));
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing else is left");
    let output = top(&["--prometheus", "/tmp/pinbuddy.txt", &own]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("expected a name that ends with .prom"));
}

#[test]
fn somebody_has_to_be_named() {
    let output = top(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--all"));
    let output = top(&["--once", "--interval", "0"]);
    assert_eq!(output.status.code(), Some(2));
}
