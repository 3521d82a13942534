//! Why a file is no plan, and why a plan is not for this run.

use super::{MOST_TEXT, MadeFor};

/// Why a text is no plan, or a plan none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More text than any plan has.
    #[error("the file has {0} bytes; a plan has {MOST_TEXT} at most")]
    Long(usize),
    /// No JSON, or not the shape of a plan; the message ends with line and column.
    #[error("it is no plan: {0}")]
    Text(String),
    /// The text ends before the plan does.
    #[error("it is no plan: it is cut off at line {0} column {1}")]
    CutOff(usize, usize),
    /// Something else's file.
    #[error("its format is {0:?}; expected {1:?}")]
    Format(String, &'static str),
    /// Of another release.
    #[error("its version is {0}; this pinbuddy reads version 1")]
    Version(u64),
    /// A number that cannot be.
    #[error("{place} is {found}; expected {expected}")]
    Value {
        /// Which number.
        place: String,
        /// What it is.
        found: String,
        /// What it could be.
        expected: String,
    },
    /// Something was changed after it was written.
    #[error("its checksum is {}; expected {found}: the file was changed or damaged", expected.map_or("missing".to_owned(), |sum| sum.to_string()))]
    Checksum {
        /// The one in the file.
        expected: Option<u32>,
        /// That of what was read.
        found: u32,
    },
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        if error.is_eof() { Self::CutOff(error.line(), error.column()) } else { Self::Text(plain(&error.to_string())) }
    }
}

/// The same with control characters escaped: what a file says may be shown by a terminal, or stand in a log.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for it in text.chars() {
        match it.is_control() {
            true => plain.extend(it.escape_default()),
            false => plain.push(it),
        }
    }
    plain
}

/// A plan was made for another run than this one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was made for {}; this is {}", self.told(&self.made_for), self.told(&self.run))]
pub struct Mismatch {
    made_for: MadeFor,
    run: MadeFor,
}

impl Mismatch {
    pub(super) fn new(made_for: MadeFor, run: MadeFor) -> Self {
        Self { made_for, run }
    }

    /// What differs, as it is in `one`.
    fn told(&self, one: &MadeFor) -> String {
        let (a, b) = (&self.made_for, &self.run);
        let all = [
            (a.torch != b.torch, format!("torch {}", plain(&one.torch))),
            (a.world_size != b.world_size, format!("a world size of {}", one.world_size)),
            (a.rank != b.rank, format!("rank {}", one.rank)),
            (a.threshold != b.threshold, format!("a threshold of {} bytes", one.threshold)),
        ];
        let differing: Vec<String> = all.into_iter().filter_map(|(differs, text)| differs.then_some(text)).collect();
        differing.join(", ")
    }
}
