//! Whether a program still does what a plan of its whole run says, request by request.
//!
//! Such a plan comes once: it has a place for each request of the run that was recorded, and none of another run. A program that
//! strays from it gets nothing more from it but room.

/// A request without its place outweighs so many that had theirs.
const STRAYED: u32 = 3;
/// The plan is over once requests without their places have so much more weight.
const MOST: u32 = 12;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Once {
    weight: u32,
}

impl Once {
    /// Whether the program does something else. It stays so.
    #[inline]
    pub(crate) fn is_over(self) -> bool {
        self.weight >= MOST
    }

    /// A request, and whether it had its place.
    #[inline]
    pub(crate) fn saw(&mut self, has_place: bool) {
        self.weight = match has_place {
            true => self.weight.saturating_sub(1),
            false => self.weight + STRAYED,
        };
    }
}
