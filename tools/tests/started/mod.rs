//! Starts the program as a user does, for all tests of it; traces of workloads for it to read.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pinbuddy_events::trace::{Header, Writer};
use pinbuddy_replay::workload::Workload;

/// The program, not started yet.
pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pinbuddy-tools"))
}

pub(crate) fn tools(arguments: &[&str]) -> Output {
    command().args(arguments).output().unwrap()
}

/// What it prints; panics if it fails.
pub(crate) fn told(arguments: &[&str]) -> String {
    let output = tools(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Why it fails.
pub(crate) fn refused(arguments: &[&str]) -> String {
    let output = tools(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// So many steps of a workload as a trace in a folder. Nothing says that it was recorded, so a copy of a block ends when
/// the model says so.
pub(crate) fn trace(folder: &Path, name: &str, steps: u32, header: &Header) -> PathBuf {
    let path = folder.join(format!("{name}.jsonl"));
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut writer = Writer::with_header(file, header).unwrap();
    for event in Workload::named(name).unwrap().events(1, steps) {
        writer.write(&event).unwrap();
    }
    writer.finish().unwrap();
    path
}
