//! The place of a hunk in a file, for people and for scripts.

use std::fmt;

use serde::Serialize;

/// One hunk and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// The patch, by its file name.
    pub patch: String,
    /// The upstream path.
    pub file: String,
    /// Its number in the patch and file, from 1.
    pub hunk: usize,
    /// The place.
    #[serde(flatten)]
    pub place: Place,
}

/// Where a hunk's lines are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum Place {
    /// The lines are where the patch has them.
    Unchanged {
        /// The first line, from 1.
        line: usize,
    },
    /// The lines are together, but elsewhere.
    Moved {
        /// The first line, from 1.
        line: usize,
        /// How far they are below where the patch has them.
        by: isize,
    },
    /// Some of the lines are there: upstream changed what the hunk relies on.
    Changed {
        /// The first line of the nearest match, from 1.
        line: usize,
        /// How far they are below where the patch has them.
        by: isize,
        /// How many lines match there.
        matching: usize,
        /// How many lines the hunk has, without those that it adds.
        of: usize,
        /// The lines that are nowhere near.
        lost: Vec<String>,
    },
    /// Nothing like the lines is there.
    Gone,
}

impl Place {
    /// Whether git would apply the hunk there.
    pub fn is_found(&self) -> bool {
        matches!(self, Self::Unchanged { .. } | Self::Moved { .. })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged { line } => write!(f, "unchanged, at line {line}"),
            Self::Moved { line, by } => write!(f, "moved to line {line}, {}", off(*by)),
            Self::Gone => write!(f, "nothing like its lines is in the file"),
            Self::Changed {
                line,
                by,
                matching,
                of,
                lost,
            } => {
                let off = off(*by);
                write!(
                    f,
                    "nearest match at line {line}, {off}: {matching} of {of} lines"
                )?;
                if lost.is_empty() {
                    write!(f, ", others come between")?;
                }
                let mut lost = lost.iter();
                lost.try_for_each(|text| write!(f, "\n  gone: {}", text.trim()))
            }
        }
    }
}

/// How far off, in words.
fn off(by: isize) -> String {
    let lines = if by.abs() == 1 { "line" } else { "lines" };
    match by {
        0 => "where it is expected".to_owned(),
        by if by > 0 => format!("{by} {lines} further down"),
        by => format!("{} {lines} further up", -by),
    }
}
