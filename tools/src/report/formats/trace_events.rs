//! Trace events as JSON, which Perfetto's page and chrome://tracing open: a counter of what is live, blocks as slices
//! of the threads that asked, with their stacks, their waits for the driver, iterations and clears as marks.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::Callers;
use crate::report::live;
use crate::report::recording::Recording;
use crate::show;

/// Writes it, one event a line.
pub(super) fn write(to: &mut dyn Write, recording: &Recording, callers: &Callers<'_>) -> io::Result<()> {
    write!(to, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut first = true;
    let mut put = |event: Value| {
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(to, "{comma}\n{event}")
    };
    for (at, bytes) in live(recording).0.points() {
        put(json!({"name": "live", "ph": "C", "pid": 1, "ts": at, "args": {"bytes": bytes}}))?;
    }
    for (name, moments) in [("iteration", &recording.iterations), ("empty_cache", &recording.clears)] {
        for at in moments {
            put(json!({"name": name, "ph": "i", "s": "p", "pid": 1, "tid": 0, "ts": at}))?;
        }
    }
    for it in recording.waits.iter().flatten() {
        let of = it.row.map(|row| recording.rows[row]);
        let args = json!({"bytes": of.map(|it| it.bytes), "line": of.map(|it| it.line)});
        put(
            json!({"name": "waits for the driver", "cat": "wait", "ph": "X", "pid": 1, "tid": it.thread, "ts": it.from, "dur": it.took, "args": args}),
        )?;
    }
    for (id, row) in recording.rows.iter().enumerate() {
        let name = show::bytes(row.bytes);
        let mut args = json!({"bytes": row.bytes, "line": row.line, "stream": row.stream});
        let stack: Vec<String> = callers.texts(id).collect();
        if !stack.is_empty() {
            args["stack"] = json!(stack);
        }
        let mut slice = |phase: &str, name: &str, at: u64| {
            put(
                json!({"name": name, "cat": "block", "ph": phase, "id": id, "pid": 1, "tid": row.thread, "ts": at, "args": args}),
            )
        };
        let (freed, until) = (row.freed.min(recording.end), row.until.min(recording.end));
        slice("b", &name, row.from)?;
        slice("e", &name, freed.max(row.from))?;
        if until > freed {
            slice("b", "waits for a stream", freed)?;
            slice("e", "waits for a stream", until)?;
        }
    }
    writeln!(to, "\n]}}")
}
