//! `top`, as a user starts it, beside processes that show a page.

use std::fs;
use std::process::Output;

use pinbuddy_live::{Counters, LENGTH, NAME, Page, Process};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::started;
use started::{says, tools};

/// Its status, what it prints, and what it says on standard error.
fn came_to(output: Output) -> (i32, String, String) {
    let [printed, said] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.code().unwrap(), printed, said)
}

fn top(arguments: &[&str]) -> (i32, String, String) {
    came_to(tools(&[&["top"], arguments].concat()))
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
    let (code, table, _) = top(&[&std::process::id().to_string()]);
    assert_eq!(code, 0);
    for part in ["train.py", "3.00 MiB", "not refreshed for"] {
        says(&table, part);
    }
    let all: Value = serde_json::from_str(&top(&["--all", "--json"]).1).unwrap();
    let mut all = all["processes"].as_array().unwrap().iter();
    let mine = all.find(|it| it["pid"] == std::process::id()).unwrap();
    let shown = ["pinned_bytes", "live_bytes", "state", "budget_bytes"].map(|key| &mine[key]);
    assert_eq!(json!(shown), json!([3 << 20, 1 << 20, "shown", null]));
}

#[test]
fn a_process_that_is_gone_has_a_row_that_says_so() {
    let (code, table, _) = top(&["--once", "4294967295"]);
    assert_eq!(code, 1);
    says(&table, "4294967295: there is no such process");
    let value: Value = serde_json::from_str(&top(&["--json", "4294967295"]).1).unwrap();
    assert_eq!(value["processes"][0]["state"], "ended");
}

#[test]
fn a_command_is_started_and_its_status_passed_on() {
    let (code, printed, said) = top(&["--launch", "sh", "-c", "echo $BUDDY_LIVE; exit 7", "--json"]);
    assert_eq!((code, &*printed), (7, "1\n"));
    says(&said, "no process has pinned memory yet");
    for (script, status) in [("exit 0", 0), ("kill -9 $$", 137)] {
        assert_eq!(top(&["--launch", "sh", "-c", script]).0, status, "{script}");
    }
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
        let (code, _, said) = came_to(output.unwrap());
        assert_eq!(code, status, "{said}");
    }
}

#[test]
fn samples_are_a_file_that_is_replaced() {
    let _page = shown();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pinbuddy.prom");
    let (own, name) = (std::process::id().to_string(), file.display().to_string());
    let (code, printed, _) = top(&["--once", "--prometheus", &name, &own]);
    assert_eq!((code, &*printed), (0, ""));
    let samples = fs::read_to_string(&file).unwrap();
    let labels = format!("{{pid=\"{own}\",program=\"train.py\",rank=\"\"}}");
    says(&samples, &format!("pinbuddy_pinned_bytes{labels} 3145728\n"));
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing else is left");
}

#[test]
fn what_cannot_be_done_is_refused() {
    for (arguments, status, part) in [
        (&["--launch", "/there/is/no/such/program"][..], 1, "/there/is/no/such/program cannot be started"),
        (&["--prometheus", "/tmp/pinbuddy.txt", "1"], 1, "expected a name that ends with .prom"),
        // Somebody has to be named.
        (&[], 2, "--all"),
        (&["--once", "--interval", "0"], 2, ""),
    ] {
        let (code, _, said) = top(arguments);
        assert_eq!(code, status, "{arguments:?}");
        says(&said, part);
    }
}
