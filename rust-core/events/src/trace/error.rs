//! Why a trace cannot be used: the line, what was expected there, and what was found.

use std::fmt;
use std::io;

use thiserror::Error;

/// A line that cannot be used, or a file that cannot be read. The lines before it are valid.
#[derive(Debug, Error)]
#[error("line {line}: {what}")]
pub struct Error {
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a line: what was expected there, and what was found.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum What {
    /// The file could not be read.
    #[error("expected more of the trace, found that it cannot be read: {0}")]
    Unreadable(io::Error),
    /// The last line has neither an end nor a whole object: the writer was interrupted.
    #[error("expected a whole line, found the end of the trace after {0}")]
    CutOff(Excerpt),
    /// Not a JSON object with an event's fields.
    #[error("expected a JSON object of an event{why}, found {found}")]
    NotAnEvent {
        /// The JSON parser's reason, in brackets, or nothing.
        why: String,
        /// The part of the line that is not.
        found: Excerpt,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Other(String),
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
        let mut shown: String = text.chars().take(Self::LENGTH).flat_map(char::escape_debug).collect();
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
