//! The sizes behind the engine's decisions: which requests it serves, how much to pin, which
//! regions are dedicated and which of those are too large for a request.
//!
//! Pure functions of the configuration; knows no segment. All sizes were checked before they come
//! here ([`Granules`]), so nothing here overflows.

use crate::units::{GRANULE, Granules, MAX_REGION, round_up};

/// What the engine is told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of a segment, in bytes. Rounded up to granules and cut to [`MAX_REGION`].
    pub segment_bytes: usize,
    /// The smallest request that the engine serves, in bytes; with 0, all but empty ones.
    pub threshold_bytes: usize,
    /// How much to pin when nothing fits.
    pub growth: Growth,
}

/// How much to pin when nothing fits a request that is no longer than a segment. For a longer one
/// it is always the request rounded up to granules, and never to a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Growth {
    /// A whole segment: the next requests find room in it.
    #[default]
    Segment,
    /// The request rounded up to granules: nothing is pinned ahead.
    Exact,
}

/// The region for exactly a request of `bytes` bytes: rounded up to granules, and not to huge
/// pages, with which a region ends in small ones where it has to; `None` above [`MAX_REGION`].
pub(crate) fn exact_region(bytes: usize) -> Option<usize> {
    // The cap is a multiple of a granule, so nothing is rounded beyond it.
    (bytes <= MAX_REGION)
        .then(|| round_up(bytes, GRANULE))
        .flatten()
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Policy {
    segment: Granules,
    threshold_bytes: usize,
    growth: Growth,
}

/// How many times a request must lie idle in dedicated regions for twice its length to serve it.
const HOARD: u64 = 4;

impl Policy {
    pub(crate) fn new(config: &Config) -> Self {
        // At most 2^28 granules: the cast loses nothing.
        let segment = config.segment_bytes.min(MAX_REGION).div_ceil(GRANULE) as u32;
        Self {
            segment: Granules::new(segment),
            threshold_bytes: config.threshold_bytes,
            growth: config.growth,
        }
    }

    /// The granules of a request that the engine serves; `None` where it passes through: empty,
    /// below the threshold or above [`MAX_REGION`].
    #[inline]
    pub(crate) fn serves(&self, bytes: usize) -> Option<Granules> {
        if bytes == 0 || bytes < self.threshold_bytes {
            return None;
        }
        Granules::holding(bytes)
    }

    /// Whether a region or a request is longer than a segment, so that the one serves only the
    /// other.
    #[inline]
    pub(crate) fn is_dedicated(&self, length: Granules) -> bool {
        length > self.segment
    }

    /// Whether a segment may be longer than others: where it is a home.
    pub(crate) fn has_homes(&self) -> bool {
        self.growth == Growth::Exact
    }

    /// Whether a region is at least as long as a segment.
    pub(crate) fn is_whole(&self, length: Granules) -> bool {
        length >= self.segment
    }

    /// How much to pin for a request, in bytes.
    pub(crate) fn region_for(&self, request: Granules) -> usize {
        let exact = exact_region(request.bytes()).unwrap_or(MAX_REGION);
        if self.is_dedicated(request) {
            return exact;
        }
        match self.growth {
            Growth::Segment => self.segment.bytes(),
            Growth::Exact => exact,
        }
    }

    /// The largest dedicated region that serves a request longer than a segment: 9/8 of the
    /// request, so that at most an eighth of it lies idle.
    ///
    /// Sizes that never come twice would so be pinned without end. Where dedicated regions of
    /// [`HOARD`] times the request lie `idle` already, one of twice its length serves: no more is
    /// wasted then than by rounding to powers of two.
    pub(crate) fn largest_dedicated(&self, request: Granules, idle: u64) -> Granules {
        let slack = if idle >= HOARD * u64::from(request.get()) {
            request.get()
        } else {
            request.get() / 8
        };
        // At most 2^29: the sum does not overflow.
        Granules::new(request.get() + slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn policy(segment_bytes: usize, growth: Growth) -> Policy {
        Policy::new(&Config {
            segment_bytes,
            threshold_bytes: 0,
            growth,
        })
    }

    fn granules(bytes: usize) -> Granules {
        Granules::holding(bytes).unwrap()
    }

    #[test]
    fn what_is_pinned_follows_the_growth_mode() {
        for (segment, request, whole, exact) in [
            (1000 * MIB, 1, 1000 * MIB, GRANULE),
            (1000 * MIB, 5 * MIB, 1000 * MIB, 5 * MIB),
            (1000 * MIB, 5 * MIB + 1, 1000 * MIB, 5 * MIB + GRANULE),
            (1000 * MIB, 1000 * MIB, 1000 * MIB, 1000 * MIB),
            // No multiple of a granule.
            (999 * MIB - 1, 999 * MIB - 1, 999 * MIB, 999 * MIB),
            // Longer than a segment: the same in both, and no power of two.
            (1000 * MIB, 1001 * MIB - 1, 1001 * MIB, 1001 * MIB),
            (1000 * MIB, 2133 * MIB, 2133 * MIB, 2133 * MIB),
            (1000 * MIB, MAX_REGION, MAX_REGION, MAX_REGION),
            (0, 1, GRANULE, GRANULE),
            (1, 1, GRANULE, GRANULE),
            (usize::MAX, 3 * MIB, MAX_REGION, 3 * MIB),
        ] {
            for (growth, expected) in [(Growth::Segment, whole), (Growth::Exact, exact)] {
                let pinned = policy(segment, growth).region_for(granules(request));
                assert_eq!(pinned, expected, "{segment} {request} {growth:?}");
            }
        }
    }

    #[test]
    fn the_exact_region_is_capped() {
        assert_eq!(exact_region(1), Some(GRANULE));
        assert_eq!(exact_region(2 * MIB), Some(2 * MIB));
        assert_eq!(exact_region(129 * MIB + 1), Some(129 * MIB + GRANULE));
        assert_eq!(exact_region(MAX_REGION - 1), Some(MAX_REGION));
        assert_eq!(exact_region(MAX_REGION), Some(MAX_REGION));
        assert_eq!(exact_region(MAX_REGION + 1), None);
        assert_eq!(exact_region(usize::MAX), None);
    }

    #[test]
    fn an_eighth_of_slack_is_allowed() {
        let policy = policy(0, Growth::Segment);
        let largest = |bytes| policy.largest_dedicated(granules(bytes), 0).bytes();
        assert_eq!(largest(800 * MIB), 900 * MIB);
        assert_eq!(largest(800 * MIB + 1), 900 * MIB + GRANULE);
        assert_eq!(largest(16 * MIB + 1), 18 * MIB + GRANULE);
        assert_eq!(largest(GRANULE), GRANULE);
        assert_eq!(largest(MAX_REGION), MAX_REGION + MAX_REGION / 8);
    }

    #[test]
    fn once_four_times_the_request_lies_idle_twice_its_length_serves() {
        let policy = policy(0, Growth::Segment);
        let request = granules(100 * MIB);
        let largest = |idle_mib: usize| {
            let idle = u64::from(granules(idle_mib * MIB).get());
            policy.largest_dedicated(request, idle).bytes() / MIB
        };
        assert_eq!((largest(399), largest(400)), (112, 200));
    }

    #[test]
    fn empty_small_and_oversized_requests_are_not_served() {
        let policy = Policy::new(&Config {
            segment_bytes: MIB,
            threshold_bytes: 4 * MIB,
            growth: Growth::Segment,
        });
        for bytes in [0, 4 * MIB - 1, MAX_REGION + 1, usize::MAX] {
            assert_eq!(policy.serves(bytes), None, "{bytes}");
        }
        assert_eq!(policy.serves(4 * MIB), Some(Granules::new(1024)));
        assert_eq!(self::policy(MIB, Growth::Exact).serves(0), None);
    }
}
