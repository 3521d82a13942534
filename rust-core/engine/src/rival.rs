//! What stock would have pinned for the same requests.
//!
//! Stock rounds a request up to a power of two, and what it pinned for one of them serves only such
//! requests, until its cache is emptied: so it has pinned, of each power, as many as ever lived at
//! once. That is known from counts alone, and is how much nobody can call too much. Blocks that the
//! caller keeps whole count as living: the answer is a little high then, and never low.

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

/// The power of two that holds `bytes`, which are one at least.
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

    /// Its cache is emptied, too.
    pub(crate) fn clear(&mut self) {
        self.most = self.live;
        self.pinned = (0..POWERS)
            .map(|power| u64::from(self.live[power]) << power)
            .sum();
    }

    /// How often it has pinned, clears or not.
    pub(crate) fn pins(&self) -> u64 {
        self.pins
    }

    /// All bytes that it ever pinned.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it has pinned, and would have if a request of `bytes` came now.
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
