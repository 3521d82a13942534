//! Reports for other programs.

mod csv;
mod pickle;
mod snapshot;
mod trace_events;

use std::io;

use super::recording::Recording;
use crate::cli::Format;

type Write = fn(&mut dyn io::Write, &Recording) -> io::Result<()>;

/// How the format is written, if it is what the file itself says, with no allocator replayed.
pub(super) fn plain(format: Format) -> Option<Write> {
    match format {
        Format::Html | Format::Json => None,
        Format::Csv => Some(csv::write),
        Format::Perfetto => Some(trace_events::write),
        Format::Snapshot => Some(snapshot::write),
    }
}
