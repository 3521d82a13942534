//! The sizes behind the engine's decisions: which requests it serves, which regions are dedicated, and
//! which of those are too long for a request.
//!
//! Pure functions of the configuration; knows no segment. [`Granules`] are checked already, so nothing
//! here overflows.

use crate::units::{GRANULE, Granules, MAX_REGION, round_up};

/// The engine's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of a segment, in bytes. Rounded up to granules and cut to [`MAX_REGION`].
    pub segment_bytes: usize,
    /// The smallest request that the engine serves, in bytes; with 0, all but empty ones.
    pub threshold_bytes: usize,
}

/// The region for a request of `bytes` bytes alone: rounded up to granules, not to huge pages, since a
/// region of huge pages may end in small ones. `None` above [`MAX_REGION`].
pub(crate) fn exact_region(bytes: usize) -> Option<usize> {
    // The cap is a multiple of a granule, so nothing is rounded beyond it.
    (bytes <= MAX_REGION).then(|| round_up(bytes, GRANULE)).flatten()
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Policy {
    segment: Granules,
    threshold_bytes: usize,
}

impl Policy {
    pub(crate) fn new(config: &Config) -> Self {
        // At most 2^28 granules: the cast loses nothing.
        let segment = config.segment_bytes.min(MAX_REGION).div_ceil(GRANULE) as u32;
        Self { segment: Granules::new(segment), threshold_bytes: config.threshold_bytes }
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

    /// Whether a region or a request is longer than a segment: such a region serves only such requests.
    #[inline]
    pub(crate) fn is_dedicated(&self, length: Granules) -> bool {
        length > self.segment
    }

    /// Whether a region is at least as long as a segment.
    pub(crate) fn is_whole(&self, length: Granules) -> bool {
        length >= self.segment
    }

    /// The largest dedicated region that serves a request longer than a segment: 9/8 of the
    /// request, so that at most an eighth of it lies idle.
    pub(crate) fn largest_dedicated(&self, request: Granules) -> Granules {
        // At most 2^29: the sum does not overflow.
        Granules::new(request.get() + request.get() / 8)
    }

    /// The same, where a loose fit is better than another pin: up to the next power of two.
    pub(crate) fn largest_dedicated_loosely(&self, request: Granules) -> Granules {
        Granules::new(request.get().next_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn policy(segment_bytes: usize) -> Policy {
        Policy::new(&Config { segment_bytes, threshold_bytes: 0 })
    }

    fn granules(bytes: usize) -> Granules {
        Granules::holding(bytes).unwrap()
    }

    #[test]
    fn the_exact_region_is_capped() {
        let regions = [1, 2 * MIB, 129 * MIB + 1, MAX_REGION - 1, MAX_REGION].map(exact_region);
        assert_eq!(regions, [GRANULE, 2 * MIB, 129 * MIB + GRANULE, MAX_REGION, MAX_REGION].map(Some));
        assert_eq!([MAX_REGION + 1, usize::MAX].map(exact_region), [None; 2]);
    }

    #[test]
    fn an_eighth_of_slack_is_allowed() {
        let policy = policy(0);
        let largest = |bytes| policy.largest_dedicated(granules(bytes)).bytes();
        let found = [800 * MIB, 800 * MIB + 1, 16 * MIB + 1, GRANULE].map(largest);
        assert_eq!(found, [900 * MIB, 900 * MIB + GRANULE, 18 * MIB + GRANULE, GRANULE]);
        assert_eq!(largest(MAX_REGION), MAX_REGION + MAX_REGION / 8);
        let loosely = |bytes| policy.largest_dedicated_loosely(granules(bytes)).bytes();
        assert_eq!([800 * MIB, MAX_REGION].map(loosely), [1024 * MIB, MAX_REGION]);
    }

    #[test]
    fn empty_small_and_oversized_requests_are_not_served() {
        let policy = Policy::new(&Config { segment_bytes: MIB, threshold_bytes: 4 * MIB });
        for bytes in [0, 4 * MIB - 1, MAX_REGION + 1, usize::MAX] {
            assert_eq!(policy.serves(bytes), None, "{bytes}");
        }
        assert_eq!(policy.serves(4 * MIB), Some(Granules::new(1024)));
        assert_eq!(self::policy(MIB).serves(0), None);
    }
}
