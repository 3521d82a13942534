//! Starts the program as a user does, for all tests of it; traces of workloads for it to read.

use std::fs::{self, File};
use std::io::BufWriter;
use std::process::{Command, Output, Stdio};

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

/// The same of one that reads this as its standard input, whatever becomes of it.
pub(crate) fn fed(arguments: &[&str], stdin: impl Into<Stdio>) -> Output {
    command().args(arguments).stdin(stdin).output().unwrap()
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
pub(crate) fn report(file: &str, arguments: &[&str]) -> (String, Vec<u8>) {
    let out = told(&[&["report", file], arguments].concat());
    let path = out.split(':').next().unwrap();
    (path.to_owned(), fs::read(path).unwrap())
}

/// The same of a report as JSON.
pub(crate) fn data(file: &str, arguments: &[&str]) -> Value {
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
pub(crate) fn trace(folder: &TempDir, name: &str, steps: u32) -> String {
    trace_of(folder, name, steps, &Header::default())
}

/// The same with this header.
pub(crate) fn trace_of(folder: &TempDir, name: &str, steps: u32, header: &Header) -> String {
    let path = folder.path().join(format!("{name}.jsonl"));
    let file = BufWriter::new(File::create(&path).unwrap());
    let mut writer = Writer::with_header(file, header).unwrap();
    Workload::named(name).unwrap().events(1, steps).for_each(|it| writer.write(&it).unwrap());
    writer.finish().unwrap();
    path.display().to_string()
}

/// A trace that is written line by line.
#[derive(Default)]
pub(crate) struct Lines(pub(crate) String);

impl Lines {
    /// With these fields in its head.
    pub(crate) fn with_head(fields: &str) -> Self {
        Self(format!("{{\"format\":\"pinbuddy-trace\",{fields}}}\n"))
    }

    /// An event with these fields.
    pub(crate) fn put(&mut self, t: u64, op: &str, fields: &[(&str, u64)]) {
        self.0 += &format!("{{\"t\":{t},\"op\":\"{op}\"");
        for (name, value) in fields {
            self.0 += &format!(",\"{name}\":{value}");
        }
        self.0 += "}\n";
    }

    pub(crate) fn alloc(&mut self, t: u64, id: u64, bytes: u64) {
        self.put(t, "alloc", &[("id", id), ("bytes", bytes)]);
    }

    pub(crate) fn free(&mut self, t: u64, id: u64) {
        self.put(t, "free", &[("id", id)]);
    }

    pub(crate) fn iter(&mut self, t: u64) {
        self.put(t, "iter", &[]);
    }
}
