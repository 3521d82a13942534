//! Segments on their way into the engine and out of it.
//!
//! The caller keeps the engine behind a lock. A segment's bookkeeping is so large that the system's
//! allocator maps and unmaps it. So it is made before the lock is taken and dropped after the lock is
//! released: the engine only moves it.

use crate::error::AdoptError;
use crate::segment::Segment;
use crate::units::{Granules, Home, Region};

/// A pinned region with the bookkeeping that makes it a segment, for [`crate::Engine::adopt`].
#[derive(Debug)]
pub struct NewSegment(pub(crate) Segment);

impl NewSegment {
    /// Checks `region`, of any size and alignment, and allocates its bookkeeping. A part of a granule at
    /// its end is not used, but counts as pinned and is unpinned with the rest.
    ///
    /// # Errors
    ///
    /// [`AdoptError`] if the region holds no granule, is larger than [`crate::MAX_REGION`] or ends
    /// beyond the address space. It is then still the caller's.
    pub fn new(region: Region) -> Result<Self, AdoptError> {
        let Region { base, bytes } = region;
        let granules = Granules::inside(bytes).ok_or(AdoptError::TooLarge { bytes })?;
        if granules.get() == 0 {
            return Err(AdoptError::TooSmall { bytes });
        }
        if region.end().is_none() {
            return Err(AdoptError::EndOverflows { base, bytes });
        }
        Ok(Self(Segment::new(region, granules)))
    }

    /// The same, for an engine that is [`mixing`](crate::Engine::mixing): with another kind of bookkeeping.
    #[must_use]
    pub fn mixing(mut self) -> Self {
        self.0.fit_best();
        self
    }

    /// The same, of which the caller says where it lies.
    #[must_use]
    pub fn at(mut self, home: Home) -> Self {
        self.0.home = home;
        self
    }

    /// Touches all pages of the bookkeeping, a thousandth of the region. Otherwise the kernel provides each when a request
    /// first needs it, and a program's first requests pay for that.
    #[must_use]
    pub fn touched(mut self) -> Self {
        self.0.touch();
        self
    }
}

/// An idle region that the engine has removed: the caller's again, to unpin. Dropping it frees the
/// bookkeeping.
#[derive(Debug)]
pub struct IdleSegment {
    pub(crate) segment: Segment,
    pub(crate) dedicated: bool,
}

impl IdleSegment {
    /// The region exactly as adopted.
    pub fn region(&self) -> Region {
        self.segment.region()
    }

    /// Whether it was dedicated.
    pub fn is_dedicated(&self) -> bool {
        self.dedicated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{GRANULE, MAX_REGION};

    #[test]
    fn regions_that_cannot_be_segments_are_refused() {
        let base = usize::MAX - GRANULE;
        for (base, bytes, expected) in [
            (0, 0, AdoptError::TooSmall { bytes: 0 }),
            (0, GRANULE - 1, AdoptError::TooSmall { bytes: GRANULE - 1 }),
            (0, MAX_REGION + 1, AdoptError::TooLarge { bytes: MAX_REGION + 1 }),
            (0, usize::MAX, AdoptError::TooLarge { bytes: usize::MAX }),
            (base, 2 * GRANULE, AdoptError::EndOverflows { base, bytes: 2 * GRANULE }),
        ] {
            let refused = NewSegment::new(Region { base, bytes });
            assert_eq!(refused.map(drop), Err(expected));
        }
        assert!(NewSegment::new(Region { base, bytes: GRANULE }).is_ok());
    }
}
