//! Reports for other programs.

mod csv;
mod pickle;
mod snapshot;
mod trace_events;

use std::io;

use pinbuddy_snapshot::{Call, Stacks};

use super::recording::Recording;
use crate::cli::Format;

type Write = fn(&mut dyn io::Write, &Recording, &Callers<'_>) -> io::Result<()>;

/// Who asked for each row, where a snapshot has stacks.
pub(super) struct Callers<'s>(pub(super) Option<(&'s Stacks, Vec<Option<u32>>)>);

impl<'s> Callers<'s> {
    /// The calls of a row's request, the innermost first; none where nobody knows.
    fn of(&self, row: usize) -> impl Iterator<Item = Call<'s>> {
        let known = self.0.as_ref();
        let known = known.and_then(|(stacks, of)| Some((*stacks, of.get(row).copied().flatten()?)));
        known.into_iter().flat_map(|(stacks, it)| stacks.calls(it))
    }

    /// The same as texts.
    fn texts(&self, row: usize) -> impl Iterator<Item = String> {
        self.of(row).map(|it| match (it.file, it.line) {
            ("", _) => it.function.to_owned(),
            (file, 0) => format!("{} ({file})", it.function),
            (file, line) => format!("{} ({file}:{line})", it.function),
        })
    }
}

/// How the format is written, if it is what the file itself says, with no allocator replayed.
pub(super) fn plain(format: Format) -> Option<Write> {
    match format {
        Format::Html | Format::Json => None,
        Format::Csv => Some(csv::write),
        Format::Perfetto => Some(trace_events::write),
        Format::Snapshot => Some(snapshot::write),
    }
}
