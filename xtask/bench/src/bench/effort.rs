//! How much is measured.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For published figures.
    Full,
    /// Enough for a first look.
    Quick,
    /// Enough to see that everything works.
    Smoke,
}

impl Effort {
    /// Each round has its own processes, since memory layout differs by process.
    pub fn rounds(self) -> usize {
        match self {
            Self::Full => 7,
            Self::Quick => 3,
            Self::Smoke => 1,
        }
    }

    /// Turns of a millisecond or so in each round.
    pub fn turns(self) -> usize {
        match self {
            Self::Full => 50,
            Self::Quick => 15,
            Self::Smoke => 3,
        }
    }

    /// Its name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
            Self::Smoke => "smoke",
        }
    }
}
