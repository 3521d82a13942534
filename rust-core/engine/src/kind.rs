//! What a segment is used for: small blocks, large blocks, a single block, or nothing.
//!
//! Long-lived small blocks scattered over all segments would keep all of them pinned after the large
//! blocks between them are gone. So small and large blocks are cut from different segments. Knows only
//! the kinds and the size that divides them; the arena stores a segment's kind.

/// The smallest large request, in bytes: the default threshold, below which blocks fragment their
/// segment (pytorch/pytorch#181094).
pub const SMALL: usize = 4 << 20;

/// Which segments serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Small,
    Large,
}

impl Class {
    /// The class of a request of `bytes` bytes, as asked for and not rounded.
    #[inline]
    pub(crate) fn of(bytes: usize) -> Self {
        if bytes < SMALL { Self::Small } else { Self::Large }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Small => Self::Large,
            Self::Large => Self::Small,
        }
    }

    /// The kind of a segment that serves it.
    #[inline]
    pub(crate) fn kind(self) -> SegmentKind {
        match self {
            Self::Small => SegmentKind::Small,
            Self::Large => SegmentKind::Large,
        }
    }
}

/// What a segment is used for. In the order of the fill order.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// The first block cut from it was shorter than [`SMALL`].
    Small,
    /// The first block cut from it was [`SMALL`] or longer.
    Large,
    /// It has no block; the next one decides.
    Idle,
    /// Longer than a segment: it has one block, or none now.
    Dedicated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_small_below_4_mib() {
        assert_eq!(SMALL, 4 * 1024 * 1024);
        // The block of the second one has SMALL bytes.
        let classes = [1, SMALL - 1, SMALL, usize::MAX].map(Class::of);
        assert_eq!(classes, [Class::Small, Class::Small, Class::Large, Class::Large]);
    }
}
