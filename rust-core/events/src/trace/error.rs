//! Why a trace cannot be used: the line, what was expected there, and what was found.

use std::fmt;
use std::io;

use thiserror::Error;

use super::header::{FORMAT, VERSION};

/// A line that cannot be used, or a file that cannot be read. The lines before it are valid.
#[derive(Debug, Error)]
#[error("line {line}: {what}")]
pub struct Error {
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a line.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum What {
    /// The file could not be read.
    #[error("expected more of the trace, found that it cannot be read: {0}")]
    Unreadable(io::Error),
    /// Longer than any event.
    #[error("expected at most {most} bytes, found more")]
    TooLong {
        /// [`LONGEST_LINE`](super::LONGEST_LINE), or more for a header.
        most: usize,
    },
    /// Not UTF-8.
    #[error("expected UTF-8, found the byte {byte:#04x} at column {column}")]
    NotText {
        /// The byte that is not UTF-8.
        byte: u8,
        /// Its column, counted from 1.
        column: usize,
    },
    /// The last line has neither an end nor a whole object: the writer was interrupted.
    #[error("expected a whole line, found the end of the trace after {found}")]
    CutOff {
        /// The line's end.
        found: Excerpt,
    },
    /// An empty line.
    #[error("expected an event, found an empty line")]
    Empty,
    /// Not a JSON object with an event's fields.
    #[error("expected {expected}, found {found}")]
    NotAnEvent {
        /// In words.
        expected: String,
        /// In words.
        found: Excerpt,
    },
    /// A header of another format.
    #[error("expected a trace of the format \"{FORMAT}\", found {found}")]
    OtherFormat {
        /// The format.
        found: Excerpt,
    },
    /// A header of a later version.
    #[error(
        "expected a trace of version {VERSION} at most, found version {found}: \
         read it with the release of pinbuddy that wrote it, or a later one"
    )]
    Newer {
        /// The version.
        found: u64,
    },
    /// A header with another unit of time.
    #[error("expected the unit of time to be \"us\" or \"ns\", found {found}")]
    UnknownUnit {
        /// The unit.
        found: Excerpt,
    },
    /// A header that is not on the first line.
    #[error(
        "expected an event, found a header, which is for line 1 alone: \
         if several traces are in one file, split it before each header"
    )]
    LateHeader,
    /// An unknown op.
    #[error("expected op to be alloc, free, event, safe, wait, clear, iter or lost, found {found}")]
    UnknownOp {
        /// The op.
        found: Excerpt,
    },
    /// A field that the op needs.
    #[error("expected {op} to have {field}, found none")]
    Missing {
        /// The op.
        op: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field that the op does not need.
    #[error("expected {op} to have no {field}, found one")]
    Superfluous {
        /// The op.
        op: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Not a number, or one out of bounds.
    #[error("expected {field} to be a whole number from {least} to {most}, found {found}")]
    OutOfBounds {
        /// The field.
        field: &'static str,
        /// Its lower bound.
        least: u64,
        /// Its upper bound.
        most: u64,
        /// Its value.
        found: Excerpt,
    },
    /// Time went back.
    #[error("expected t to be at least {before} ns, as on the line before, found {found} ns")]
    TimeWentBack {
        /// The time of the event before, in nanoseconds.
        before: u64,
        /// This event's.
        found: u64,
    },
    /// A block that is still live.
    #[error("expected safe to name a block that was freed, found id {id}, which lives")]
    NotFreed {
        /// The id.
        id: u64,
    },
    /// A block that is not live.
    #[error("expected {op} to name a block that lives, found id {id}, which does not")]
    UnknownId {
        /// The op.
        op: &'static str,
        /// The id.
        id: u64,
    },
    /// An id that is in use.
    #[error("expected alloc to name a new block, found id {id}, which lives since line {since}")]
    IdInUse {
        /// The id.
        id: u64,
        /// The line that allocated it.
        since: u64,
    },
    /// More live at once than any machine has.
    #[error("expected at most {most} bytes to live at once, found {found}")]
    TooMuch {
        /// The most that may live.
        most: u64,
        /// With this request.
        found: u64,
    },
}

impl What {
    /// The error on that line.
    pub(crate) fn on(self, line: u64) -> Error {
        Error { line, what: self }
    }
}

/// A piece of a line, safe to show: short, and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    const LENGTH: usize = 40;

    pub(super) fn of(text: &str) -> Self {
        let mut shown: String = text
            .chars()
            .take(Self::LENGTH)
            .flat_map(char::escape_debug)
            .collect();
        // Quotes need no escape here.
        shown = shown.replace("\\\"", "\"").replace("\\'", "'");
        if text.chars().nth(Self::LENGTH).is_some() {
            shown.push('…');
        }
        Self(shown)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
