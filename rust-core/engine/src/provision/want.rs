//! What a request that found no room has been through. Knows nothing but that.

/// Why a pin was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The budget has not so much left.
    Budget,
    /// The machine has not twice as much left.
    Machine,
    /// The driver, or the kernel, said no.
    Driver,
    /// The pin was stopped: the process ends, or nobody needs it any more.
    Stopped,
}

/// How far a request has come whose pin was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Resort {
    /// Nothing was refused yet.
    None,
    /// As much idle memory as it takes was given back.
    SomeIdle,
    /// All of it was.
    AllIdle,
}

/// A request, from its first step to its last.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub(super) bytes: usize,
    pub(super) asked: bool,
    pub(super) reaped: bool,
    pub(super) waited: bool,
    pub(super) counted: bool,
    pub(super) refused: Option<(Refusal, usize)>,
    pub(super) resort: Resort,
}

impl Want {
    /// A request of `bytes` bytes that took no step yet.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes,
            asked: false,
            reaped: false,
            waited: false,
            counted: false,
            refused: None,
            resort: Resort::None,
        }
    }

    /// What was asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pin of `bytes` bytes that it was told to make was refused.
    pub fn refused(&mut self, refusal: Refusal, bytes: usize) {
        self.refused = Some((refusal, bytes));
    }
}
