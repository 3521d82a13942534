//! How much is measured: all, or with `--quick` enough for a first look.

/// The numbers of rounds, turns and sizes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Whether it is the quick one.
    pub quick: bool,
}

impl Effort {
    /// Each with processes of its own: where things lie in memory is drawn once for each.
    pub fn rounds(self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    /// Turns of a millisecond or so in each round.
    pub fn turns(self) -> usize {
        if self.quick { 15 } else { 50 }
    }
}
