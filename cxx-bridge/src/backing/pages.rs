//! The kinds of pages that memory can have, and their sizes, which the kernel of an aarch64 machine was built with.
//!
//! Not the engine's unit: a granule has 4 KiB on every machine. A region is whole pages. Invariant: a huge page is at least
//! two pages.

#![allow(unsafe_code)]

use std::sync::OnceLock;

use pinbuddy_machine::{Files, huge_page_bytes};

pub(super) const GIANT: usize = 1 << 30;

/// Kernels of aarch64 have a pool of such pages beside one of their own huge pages, whatever size these have.
const MEDIUM: usize = 2 << 20;

/// A machine's sizes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Of the smallest page.
    pub(crate) page: usize,
    /// Of a huge page.
    pub(crate) large: usize,
}

/// This machine's.
pub(crate) fn sizes() -> Sizes {
    static HERE: OnceLock<Sizes> = OnceLock::new();
    *HERE.get_or_init(|| {
        // SAFETY: it reads a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).unwrap_or(4096);
        let large = huge_page_bytes(&Files::below("/".as_ref()), page);
        Sizes { page, large }
    })
}

/// The kind of a mapping's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Of 1 GiB, from the system's pool.
    Giant,
    /// Huge, from the system's pool.
    Large,
    /// Of 2 MiB, from the system's pool, where the machine's huge pages are larger.
    Medium,
    /// Huge if the kernel has such pages, else small.
    Transparent,
    /// The same, for shared memory that a touch fills with small pages: `collapse` makes them huge.
    Collapsed,
    /// The smallest.
    Small,
}

impl Pages {
    /// Whether they come from the system's pool, so that they are reserved or refused at once.
    pub(super) fn are_of_a_pool(self) -> bool {
        matches!(self, Self::Giant | Self::Large | Self::Medium)
    }

    /// The unit in which such memory is mapped.
    pub(super) fn unit(self, sizes: Sizes) -> usize {
        match self {
            Self::Giant => GIANT,
            Self::Large => sizes.large,
            Self::Medium => MEDIUM,
            Self::Transparent | Self::Collapsed | Self::Small => sizes.page,
        }
    }

    /// The unit in which the kernel fills it.
    pub(super) fn filled_in(self, sizes: Sizes) -> usize {
        match self {
            Self::Transparent | Self::Collapsed => sizes.large,
            Self::Giant | Self::Large | Self::Medium | Self::Small => self.unit(sizes),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What kernels of the two architectures have.
    pub(crate) const KERNELS: [Sizes; 3] = [
        Sizes { page: 4 << 10, large: 2 << 20 },
        Sizes { page: 16 << 10, large: 32 << 20 },
        Sizes { page: 64 << 10, large: 512 << 20 },
    ];

    #[test]
    fn this_machine_has_pages_and_larger_ones() {
        let Sizes { page, large } = sizes();
        assert!(page.is_power_of_two() && large.is_power_of_two() && large >= 2 * page);
        assert!(page >= KERNELS[0].page);
    }
}
