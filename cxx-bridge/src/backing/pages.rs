//! The kinds of pages that memory can have, and their sizes. Makes no calls.

/// The smallest page.
pub(crate) const PAGE: usize = 4096;
pub(crate) const LARGE: usize = 2 << 20;
pub(super) const GIANT: usize = 1 << 30;

/// The kind of a mapping's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Of 1 GiB, from the system's pool.
    Giant,
    /// Of 2 MiB, from the system's pool.
    Large,
    /// Of 2 MiB if the kernel has them, else of 4 KiB.
    Transparent,
    /// The same, for shared memory that a touch fills with 4 KiB pages: `collapse` makes them huge.
    Collapsed,
    /// Of 4 KiB.
    Small,
}

impl Pages {
    /// Whether they come from the system's pool, so that they are reserved or refused at once.
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
