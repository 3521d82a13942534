//! How much stock would have pinned for the same requests.
//!
//! Stock rounds a request up to a power of two, and a block of one power serves only requests of that
//! power, until the cache is emptied. So of each power it has pinned as many blocks as ever lived at
//! once: counting is enough. A block of ours that is cached is one that stock could use again: those of
//! its power are left out at each request. Requests that cached blocks serve are not seen, so blocks of
//! one power and several sizes may have lived at once unnoticed: the answer is never high, and may be a
//! little low.

use std::iter::Sum;

/// Powers of two from a byte to 1 TiB.
const POWERS: usize = 41;

/// Pins so far, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pins {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Sum for Pins {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self { count: sum.count + one.count, bytes: sum.bytes + one.bytes })
    }
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    live: [u32; POWERS],
    most: [u32; POWERS],
    pinned: u64,
    pins: Pins,
}

impl Default for Rival {
    fn default() -> Self {
        Self { live: [0; POWERS], most: [0; POWERS], pinned: 0, pins: Pins::default() }
    }
}

/// The power of two that holds `bytes`, which is at least 1.
#[inline]
fn power(bytes: u64) -> usize {
    ((bytes - 1).checked_ilog2().map_or(0, |it| it as usize + 1)).min(POWERS - 1)
}

impl Rival {
    /// A block of `bytes` bytes is taken, while `cached` blocks of its power are cached.
    #[inline]
    pub(crate) fn taken(&mut self, bytes: u64, cached: usize) {
        let power = power(bytes);
        self.live[power] += 1;
        let lives = u64::from(self.live[power]).saturating_sub(cached as u64);
        let more = lives.saturating_sub(self.most[power].into());
        if more > 0 {
            self.most[power] += more as u32;
            self.pinned += more << power;
            self.pins.count += more;
            self.pins.bytes += more << power;
        }
    }

    #[inline]
    pub(crate) fn released(&mut self, bytes: u64) {
        self.live[power(bytes)] -= 1;
    }

    /// Stock's cache is emptied too.
    pub(crate) fn clear(&mut self) {
        self.most = self.live;
        self.pinned = (0..POWERS).map(|power| u64::from(self.live[power]) << power).sum();
    }

    /// How often stock has pinned in all, and how much.
    pub(crate) fn pins(&self) -> Pins {
        self.pins
    }

    /// Bytes that stock would have pinned now, with one more request of `bytes`.
    pub(crate) fn pinned_with(&self, bytes: u64) -> u64 {
        let power = power(bytes.max(1));
        let lives = self.live[power] + u32::from(bytes > 0);
        let more = lives.saturating_sub(self.most[power]);
        self.pinned + (u64::from(more) << power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_has_as_many_of_each_power_as_ever_lived_at_once() {
        let mut rival = Rival::default();
        assert_eq!(rival.pinned_with(0), 0);
        for mib in [3, 4, 5, 129] {
            rival.taken(mib * MIB, 0);
        }
        assert_eq!(rival.pinned_with(0), (4 + 4 + 8 + 256) * MIB);
        rival.released(3 * MIB);
        rival.taken(4 * MIB, 0);
        assert_eq!(rival.pinned_with(0), 272 * MIB, "what was 3 MiB serves 4");
        rival.released(129 * MIB);
        assert_eq!(rival.pinned_with(256 * MIB), 272 * MIB);
        assert_eq!(rival.pinned_with(257 * MIB), (272 + 512) * MIB);
        rival.clear();
        assert_eq!(rival.pinned_with(0), 16 * MIB);
    }

    #[test]
    fn a_cached_block_is_one_that_stock_would_use_again() {
        let mut rival = Rival::default();
        rival.taken(5 * MIB, 0);
        rival.taken(6 * MIB, 1);
        rival.taken(4 * MIB, 0);
        assert_eq!((rival.pins().count, rival.pinned_with(0)), (2, 12 * MIB));
        assert_eq!(rival.pinned_with(7 * MIB), (12 + 16) * MIB, "none is cached");
        rival.taken(7 * MIB, 0);
        assert_eq!(rival.pins().count, 4, "the cached one is in use again");
        assert_eq!(rival.pins().bytes, (3 * 8 + 4) * MIB);
        rival.taken(8 * MIB, 9);
        assert_eq!(rival.pins().count, 4, "counted while others cached more");
    }

    #[test]
    fn the_largest_request_is_a_power_of_its_own() {
        assert_eq!([1, 2, 3, 4096, 4097, 1 << 40, u64::MAX].map(power), [0, 1, 2, 12, 13, 40, 40]);
    }
}
