//! A table of blocks, with how long the request of each waited for the driver, and the calls that asked, the innermost
//! first. What is not known is empty.

use std::collections::HashMap;
use std::io::{self, Write};

use super::Callers;
use crate::report::recording::Recording;

/// Writes it.
pub(super) fn write(to: &mut dyn Write, recording: &Recording, callers: &Callers<'_>) -> io::Result<()> {
    let head = "line,bytes,thread,stream,from_us,freed_us,reusable_us,waited_us,stack";
    writeln!(to, "{head}")?;
    let known = |moment: u64| match moment {
        u64::MAX => String::new(),
        _ => moment.to_string(),
    };
    let mut waited: HashMap<usize, u64> = HashMap::new();
    for it in recording.waits.iter().flatten() {
        if let Some(row) = it.row {
            let sum = waited.entry(row).or_default();
            *sum = sum.saturating_add(it.took);
        }
    }
    for (row, it) in recording.rows.iter().enumerate() {
        let stream = it.stream.map_or_else(String::new, |it| it.to_string());
        let known_waits = recording.waits.as_ref();
        let took = waited.get(&row).copied().unwrap_or(0);
        let waited = known_waits.map_or_else(String::new, |_| took.to_string());
        let (freed, until) = (known(it.freed), known(it.until));
        let stack = quoted(&callers.texts(row).collect::<Vec<_>>().join("; "));
        writeln!(to, "{},{},{},{stream},{},{freed},{until},{waited},{stack}", it.line, it.bytes, it.thread, it.from)?;
    }
    Ok(())
}

/// As a cell that may have any text in it.
fn quoted(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}
