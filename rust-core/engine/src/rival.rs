//! How much stock would have pinned for the same requests.
//!
//! Stock rounds a request up to a power of two, and a block of one power serves only requests of that
//! power, until the cache is emptied. So of each power it has pinned as many blocks as ever lived at
//! once: counting is enough. Cached blocks count as live, so the answer may be a little high, and is
//! never low.

/// Powers of two from a byte to 1 TiB.
const POWERS: usize = 41;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rival {
    live: [u32; POWERS],
    most: [u32; POWERS],
    pinned: u64,
    /// All pins so far, and their bytes.
    pins: u64,
    bytes: u64,
}

impl Default for Rival {
    fn default() -> Self {
        Self {
            live: [0; POWERS],
            most: [0; POWERS],
            pinned: 0,
            pins: 0,
            bytes: 0,
        }
    }
}

/// The power of two that holds `bytes`, which is at least 1.
#[inline]
fn power(bytes: u64) -> usize {
    ((bytes - 1).checked_ilog2().map_or(0, |it| it as usize + 1)).min(POWERS - 1)
}

impl Rival {
    #[inline]
    pub(crate) fn taken(&mut self, bytes: u64) {
        let power = power(bytes);
        self.live[power] += 1;
        if self.live[power] > self.most[power] {
            self.most[power] = self.live[power];
            self.pinned += 1 << power;
            self.pins += 1;
            self.bytes += 1 << power;
        }
    }

    #[inline]
    pub(crate) fn released(&mut self, bytes: u64) {
        self.live[power(bytes)] -= 1;
    }

    /// Stock's cache is emptied too.
    pub(crate) fn clear(&mut self) {
        self.most = self.live;
        self.pinned = (0..POWERS)
            .map(|power| u64::from(self.live[power]) << power)
            .sum();
    }

    /// How often stock has pinned in all.
    pub(crate) fn pins(&self) -> u64 {
        self.pins
    }

    /// How many bytes stock has pinned in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that stock would have pinned now, with one more request of `bytes`.
    pub(crate) fn pinned_with(&self, bytes: u64) -> u64 {
        let power = power(bytes.max(1));
        let more = self.live[power] == self.most[power] && bytes > 0;
        self.pinned + if more { 1 << power } else { 0 }
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
            rival.taken(mib * MIB);
        }
        assert_eq!(rival.pinned_with(0), (4 + 4 + 8 + 256) * MIB);
        rival.released(3 * MIB);
        rival.taken(4 * MIB);
        assert_eq!(rival.pinned_with(0), 272 * MIB, "what was 3 MiB serves 4");
        rival.released(129 * MIB);
        assert_eq!(rival.pinned_with(256 * MIB), 272 * MIB);
        assert_eq!(rival.pinned_with(257 * MIB), (272 + 512) * MIB);
        rival.clear();
        assert_eq!(rival.pinned_with(0), 16 * MIB);
    }

    #[test]
    fn the_largest_request_is_a_power_of_its_own() {
        assert_eq!((power(1), power(2), power(3)), (0, 1, 2));
        assert_eq!((power(4096), power(4097)), (12, 13));
        assert_eq!((power(1 << 40), power(u64::MAX)), (40, 40));
    }
}
