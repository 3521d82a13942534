//! Why a snapshot cannot be read: where in the file, what was expected there, and what was found.

use std::fmt;
use std::io;

use thiserror::Error;

/// The most values that may wait at once to be put into a list or dict. Python writes lists a thousand at a time.
pub(crate) const MOST_VALUES: usize = 1 << 20;

/// A snapshot that cannot be read.
#[derive(Debug, Error)]
pub struct Error {
    /// The byte, counted from 0, at which the opcode starts.
    pub offset: u64,
    /// The opcode, by its name in Python's `pickletools`; none before the first.
    pub opcode: Option<&'static str>,
    /// What is wrong.
    pub what: What,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.offset)?;
        if let Some(opcode) = self.opcode {
            write!(f, " ({opcode})")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What is wrong with it.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum What {
    /// The file could not be read.
    #[error("expected more of the snapshot, found that it cannot be read: {0}")]
    Unreadable(io::Error),
    /// The file ends too early.
    #[error("expected more of the snapshot, found the end of the file: it was cut off, or is still being written")]
    CutOff,
    /// Another kind of file.
    #[error("expected a pickle of protocol 2 to 5, found {found}")]
    NotAPickle {
        /// In words.
        found: &'static str,
    },
    /// Another protocol.
    #[error("expected a pickle of protocol 2 to 5, found protocol {0}")]
    Protocol(u8),
    /// An opcode that makes a class or calls something.
    #[error(
        "expected plain values (numbers, texts, lists, tuples, dicts), found {0}: this is no snapshot as PyTorch writes \
         it, and loading it in Python could run any code"
    )]
    Class(&'static str),
    /// An opcode that Python does not write for plain values.
    #[error("expected an opcode for plain values, found {0:#04x}")]
    Opcode(u8),
    /// An opcode that needs more values than there are.
    #[error("expected {needs} values before it, found {has}")]
    TooFew {
        /// How many it needs.
        needs: usize,
        /// How many there are.
        has: usize,
    },
    /// An opcode that needs a mark.
    #[error("expected a mark before it, found none")]
    NoMark,
    /// A value of another kind.
    #[error("expected {expected} before the values, found another value")]
    NotA {
        /// In words.
        expected: &'static str,
    },
    /// A dict with a key and no value.
    #[error("expected as many values as keys, found {0} of both together")]
    Odd(usize),
    /// More values at once than any snapshot has.
    #[error("expected at most {MOST_VALUES} values that wait to be put into a list, found more")]
    TooMany,
    /// A value that was not memorized.
    #[error("expected one of the {has} values memorized so far, found a reference to number {found}")]
    Memo {
        /// The number.
        found: u64,
        /// How many there are.
        has: usize,
    },
    /// A number that is out of turn.
    #[error("expected values to be memorized as numbers up to {next}, found number {found}")]
    MemoOutOfTurn {
        /// The number.
        found: u64,
        /// The next number.
        next: usize,
    },
    /// A whole number that is too long.
    #[error("expected a whole number of at most 16 bytes, found one of {0}")]
    LongNumber(u64),
    /// An event without what every event has.
    #[error("expected an event of a trace to have {field}, a whole number from 0 to {most}; found {found}")]
    Field {
        /// Its key.
        field: &'static str,
        /// Its upper bound.
        most: u64,
        /// In words.
        found: &'static str,
    },
    /// A second one.
    #[error("expected one snapshot, found {0} a second time")]
    Twice(&'static str),
    /// No history.
    #[error(
        "expected the history of an allocator, found none: record it, torch.cuda.memory._record_memory_history(), with \
         record_pinned_host_memory=True for pinned memory (from torch 2.14 on)"
    )]
    NoTraces,
}
