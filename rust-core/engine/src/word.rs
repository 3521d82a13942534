//! Free runs inside one 64-granule word of the bitmap; a set bit is a free granule, bit 0 first.
//!
//! Pure functions on bits; knows nothing of trees, segments or blocks.

/// Granules in one word.
pub(crate) const WORD: u32 = 64;

/// The length of the longest run of set bits.
#[inline]
pub(crate) fn longest_run(word: u64) -> u32 {
    if word == 0 {
        return 0;
    }
    // at[k] marks the bits where a run of 2^k starts. Climb to the last non-empty one, then add
    // the smaller powers that still leave a start: 12 steps where counting bit by bit takes 64.
    let mut at = [word, 0, 0, 0, 0, 0];
    let mut top = 0;
    while top < 5 {
        let next = at[top] & at[top] >> (1 << top);
        if next == 0 {
            break;
        }
        top += 1;
        at[top] = next;
    }
    let mut starts = at[top];
    let mut length = 1 << top;
    for k in (0..top).rev() {
        let longer = starts & at[k] >> length;
        if longer != 0 {
            starts = longer;
            length += 1 << k;
        }
    }
    // 2^5 at most from the climb and as much again from the rest: 63, and one is missing.
    if word == u64::MAX { WORD } else { length }
}

/// The place of the first run of at least `length` set bits, `1 <= length <= 64`.
#[inline]
pub(crate) fn first_run(word: u64, length: u32) -> Option<u32> {
    debug_assert!((1..=WORD).contains(&length));
    // `starts` marks where a run of `known` bits starts; each step at most doubles `known`.
    let mut starts = word;
    let mut known = 1;
    while known < length && starts != 0 {
        let step = known.min(length - known);
        starts &= starts >> step;
        known += step;
    }
    (starts != 0).then(|| starts.trailing_zeros())
}

/// The same for two adjoining words, `1 <= length <= 128`.
#[inline]
pub(crate) fn first_run_of_pair(left: u64, right: u64, length: u32) -> Option<u32> {
    let inside = |word| {
        if length <= WORD { first_run(word, length) } else { None }
    };
    inside(left).or_else(|| {
        let across = left.leading_ones();
        if across + right.trailing_ones() >= length {
            return Some(WORD - across);
        }
        inside(right).map(|bit| WORD + bit)
    })
}

/// The bits `from..to` of a word, `from <= to <= 64`.
#[inline]
pub(crate) fn mask(from: u32, to: u32) -> u64 {
    debug_assert!(from <= to && to <= WORD);
    if from == to { 0 } else { u64::MAX >> (WORD - (to - from)) << from }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn bits_of(word: u64) -> Vec<bool> {
        (0..64).map(|bit| word >> bit & 1 == 1).collect()
    }

    /// Words with long runs as well as random ones, which have few.
    pub(crate) fn words() -> impl Strategy<Value = u64> {
        let runs = |(from, length): (u32, u32)| mask(from, (from + length).min(64));
        prop_oneof![
            any::<u64>(),
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a | b),
            (0u32..64, 1u32..=64).prop_map(runs),
            (0u32..64, 1u32..=64).prop_map(move |run| !runs(run)),
            (any::<u64>(), 0u32..64, 1u32..=64).prop_map(move |(word, from, length)| word | runs((from, length))),
            Just(0),
            Just(u64::MAX),
        ]
    }

    proptest! {
        #[test]
        fn the_longest_run_is_as_counted(word in words()) {
            let longest = bits_of(word).split(|bit| !bit).map(<[bool]>::len).max();
            prop_assert_eq!(Some(longest_run(word) as usize), longest);
        }

        #[test]
        fn the_first_run_of_a_pair_may_lie_across(
            left in words(), right in words(), length in 1u32..=128,
        ) {
            let bits: Vec<bool> = bits_of(left).into_iter().chain(bits_of(right)).collect();
            let expected = bits.windows(length as usize).position(|run| run.iter().all(|b| *b));
            let found = first_run_of_pair(left, right, length);
            prop_assert_eq!(found, expected.map(|at| at as u32));
        }
    }

    #[test]
    fn masks_reach_both_ends() {
        let masks = [(0, 64), (0, 1), (63, 64), (4, 8), (0, 0), (64, 64)].map(|(from, to)| mask(from, to));
        assert_eq!(masks, [u64::MAX, 1, 1 << 63, 0xf0, 0, 0]);
    }
}
