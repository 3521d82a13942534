//! A table of blocks. What is not known is empty.

use std::io::{self, Write};

use crate::report::recording::Recording;

/// Writes it.
pub(super) fn write(to: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    writeln!(to, "line,bytes,thread,stream,from_us,freed_us,reusable_us")?;
    let known = |moment: u64| match moment {
        u64::MAX => String::new(),
        _ => moment.to_string(),
    };
    for it in &recording.rows {
        let stream = it.stream.map_or_else(String::new, |it| it.to_string());
        let (freed, until) = (known(it.freed), known(it.until));
        writeln!(
            to,
            "{},{},{},{stream},{},{freed},{until}",
            it.line, it.bytes, it.thread, it.from
        )?;
    }
    Ok(())
}
