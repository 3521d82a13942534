//! The pages that memory can have: their sizes, and who has them. Knows no calls.

/// The smallest page there is.
pub(super) const PAGE: usize = 4096;
pub(super) const LARGE: usize = 2 << 20;
pub(super) const GIANT: usize = 1 << 30;

/// What a mapping's pages are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Of 1 GiB, from the system's pool.
    Giant,
    /// Of 2 MiB, from the system's pool.
    Large,
    /// Of 2 MiB where the kernel has them, else of 4 KiB.
    Transparent,
    /// The same for shared memory to which the kernel gives 4 KiB at a touch: it is told to put them
    /// together, as `collapse` does.
    Collapsed,
    /// Of 4 KiB.
    Small,
}

impl Pages {
    /// Whether the system has set them aside, so that they are there or refused at once.
    pub(super) fn are_of_a_pool(self) -> bool {
        matches!(self, Self::Giant | Self::Large)
    }

    /// The unit in which such memory is mapped.
    pub(super) fn unit(self) -> usize {
        match self {
            Self::Giant => GIANT,
            Self::Large => LARGE,
            Self::Transparent | Self::Collapsed | Self::Small => PAGE,
        }
    }
}
