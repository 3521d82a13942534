//! Starts the program as a user does, for all tests of it; traces of workloads for it to read.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pinbuddy_events::trace::{Header, Writer};
use pinbuddy_replay::workload::Workload;
use serde_json::Value;
use tempfile::TempDir;

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

/// The same of a command that prints JSON.
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&told(arguments)).unwrap()
}

/// A text has this part.
#[track_caller]
pub(crate) fn says(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in {text}");
}

/// What `report` writes of a file, and where.
pub(crate) fn report(file: &Path, arguments: &[&str]) -> (PathBuf, Vec<u8>) {
    let out = told(&[&["report", file.to_str().unwrap()], arguments].concat());
    let path = PathBuf::from(out.split(':').next().unwrap());
    let written = fs::read(&path).unwrap();
    (path, written)
}

/// The same of a report as JSON.
pub(crate) fn data(file: &Path, arguments: &[&str]) -> Value {
    let (_, json) = report(file, &[&["--format", "json"], arguments].concat());
    serde_json::from_slice(&json).unwrap()
}

/// A file with this in it; its path.
pub(crate) fn file(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
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
