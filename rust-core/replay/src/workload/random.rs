//! Numbers drawn from a seed: the same on every machine and with every compiler.
//!
//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Uses only sums, products, shifts, and divisions that
//! IEEE 754 defines to the last bit; mathematical libraries differ in their results.

/// See the module's documentation.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From `low` to `high`, without `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// One of `0..end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.draw()) * end as u128) >> 64) as usize
    }

    pub(crate) fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper_and_bounds_are_kept() {
        let mut random = Random::new(1_234_567);
        let found = [random.draw(), random.draw(), random.draw()];
        // As published with the reference implementation.
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(found, known);
        for _ in 0..10_000 {
            assert!(random.below(3) < 3);
            assert!((0.7..1.3).contains(&random.between(0.7, 1.3)));
        }
    }
}
