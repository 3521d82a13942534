//! The state of a request between its steps. Knows nothing else.

use super::patience::Polls;
use crate::units::Home;

/// Why a pin was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The budget does not leave so much.
    Budget,
    /// The machine does not have twice as much left.
    Machine,
    /// The driver or the kernel refused.
    Driver,
    /// The pin was stopped: the process ends, or the region is not needed any more.
    Stopped,
}

/// The last resorts that a request has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resort {
    /// None yet.
    None,
    /// As much idle memory as needed was unpinned.
    SomeIdle,
    /// All idle memory was unpinned.
    AllIdle,
}

/// A request, from its first step to its last.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub(super) bytes: usize,
    pub(super) home: Home,
    pub(super) asked: bool,
    pub(super) reaped: bool,
    pub(super) waited: bool,
    pub(super) polls: Polls,
    pub(super) counted: bool,
    pub(super) refused: Option<(Refusal, usize)>,
    pub(super) resort: Resort,
}

impl Want {
    /// A request of `bytes` bytes before its first step.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            home: Home::default(),
            asked: false,
            reaped: false,
            waited: false,
            polls: Polls::NotYet,
            counted: false,
            refused: None,
            resort: Resort::None,
        }
    }

    /// The same, of which the caller says where it comes from.
    #[must_use]
    pub fn at(self, home: Home) -> Self {
        Self { home, ..self }
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pin of `bytes` bytes that it had a permit for was refused.
    pub fn refused(&mut self, refusal: Refusal, bytes: usize) {
        self.refused = Some((refusal, bytes));
    }

    /// No stream has a block that could be waited for.
    pub fn impatient(&mut self) {
        self.polls = Polls::Over;
    }

    /// Whether it has waited for streams, and still does.
    pub fn is_polling(&self) -> bool {
        matches!(self.polls, Polls::Until(_))
    }
}
