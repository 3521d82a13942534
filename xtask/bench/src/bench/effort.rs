//! How much is measured.

/// The numbers of rounds, turns and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For figures that are shown to others.
    Full,
    /// Enough for a first look.
    Quick,
    /// Enough to see that everything works.
    Smoke,
}

impl Effort {
    /// Each with processes of its own: where things lie in memory is drawn once for each.
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

    /// In the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
            Self::Smoke => "smoke",
        }
    }
}
