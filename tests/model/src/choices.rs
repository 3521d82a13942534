//! Choices that a string of bytes makes, and bytes at random.

use std::ops::Range;

/// Reads bytes as choices. At the end every choice is the first one.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

/// A choice among things whose number is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct Pick(u16);

impl Pick {
    /// One of `length` things; there must be one.
    pub fn index(self, length: usize) -> usize {
        usize::from(self.0) % length
    }

    /// One of these; there must be one.
    pub fn get<T>(self, things: &[T]) -> &T {
        &things[self.index(things.len())]
    }
}

impl<'a> Choices<'a> {
    /// Those that `bytes` make.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether all bytes were read.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    /// A number below `end`, which is not 0. Takes one byte where that is enough.
    pub fn below(&mut self, end: usize) -> usize {
        let mut bytes = 1;
        while bytes < 8 && end > 1 << (8 * bytes) {
            bytes += 1;
        }
        let number = (0..bytes).fold(0, |number, _| number << 8 | usize::from(self.byte()));
        number % end
    }

    /// A number in `range`, which is not empty.
    pub fn within(&mut self, range: Range<usize>) -> usize {
        range.start + self.below(range.end - range.start)
    }

    /// Yes or no.
    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Yes, once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// A choice to be made later.
    pub fn pick(&mut self) -> Pick {
        Pick(u16::from_be_bytes([self.byte(), self.byte()]))
    }

    /// The number of one of these, each as often as its weight says.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (at, weight) in weights.iter().enumerate() {
            if left < *weight {
                return at;
            }
            left -= weight;
        }
        unreachable!("less than the sum of the weights")
    }
}

/// So many bytes at random, the same for the same seed.
pub fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // SplitMix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_possible_and_the_end_is_the_first() {
        let bytes = random_bytes(1, 10_000);
        let mut choices = Choices::new(&bytes);
        let mut seen = [0; 3];
        for _ in 0..3000 {
            seen[choices.weighted(&[1, 0, 200])] += 1;
        }
        assert!(seen[0] > 0 && seen[1] == 0 && seen[2] > 2500, "{seen:?}");
        let large: Vec<_> = (0..100).map(|_| choices.within(1 << 20..1 << 30)).collect();
        assert!(large.iter().all(|it| (1 << 20..1 << 30).contains(it)));
        assert!(large.iter().any(|it| *it > 1 << 29));
        while !choices.is_over() {
            choices.flip();
        }
        assert_eq!((choices.below(usize::MAX), choices.flip()), (0, false));
    }
}
