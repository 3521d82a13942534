//! How many requests of a lane make one iteration, found in the sequence of their sizes alone.
//!
//! First the longest end of the sequence that repeats exactly, at least twice. Where sizes vary, the
//! distance at which most sizes are the same as before; only distances between rare sizes are tried.

use std::collections::HashMap;

/// So much of the sequence must repeat, exactly or nearly: a half.
const SHARE: usize = 2;

/// A size that is there up to so many times is rare.
const RARE: usize = 256;

/// How many distances are tried.
const TRIED: usize = 24;

/// The period of `sizes`, if there is one that comes twice at least.
pub(super) fn find(sizes: &[u32]) -> Option<usize> {
    exact(sizes).or_else(|| near(sizes))
}

/// The smallest period of the longest end of `sizes` that has two periods at least.
fn exact(sizes: &[u32]) -> Option<usize> {
    // The failure function of the sequence read backwards: `borders[n]` is the length of the longest
    // proper border of the last `n` sizes.
    let at = |index: usize| sizes[sizes.len() - 1 - index];
    let mut borders = vec![0_u32; sizes.len() + 1];
    let mut border = 0_usize;
    let mut found = None;
    for length in 2..=sizes.len() {
        while border > 0 && at(border) != at(length - 1) {
            border = borders[border] as usize;
        }
        if at(border) == at(length - 1) {
            border += 1;
        }
        borders[length] = border as u32;
        let period = length - border;
        if 2 * period <= length {
            found = Some((length, period));
        }
    }
    let (length, period) = found?;
    (length * SHARE >= sizes.len()).then_some(period)
}

/// The distance between rare sizes at which the most sizes repeat.
fn near(sizes: &[u32]) -> Option<usize> {
    let mut places: HashMap<u32, Vec<u32>> = HashMap::new();
    for (place, &size) in (0_u32..).zip(sizes) {
        places.entry(size).or_default().push(place);
    }
    let mut distances: HashMap<u32, usize> = HashMap::new();
    for places in places.values().filter(|it| (2..=RARE).contains(&it.len())) {
        // A size may be there several times in each period.
        for step in 1..=8.min(places.len() - 1) {
            for pair in places.windows(step + 1) {
                *distances.entry(pair[step] - pair[0]).or_default() += 1;
            }
        }
    }
    let mut distances: Vec<(usize, usize)> = distances
        .into_iter()
        .map(|(distance, count)| (distance as usize, count))
        .filter(|&(distance, _)| 2 * distance <= sizes.len())
        .collect();
    distances.sort_unstable_by_key(|&(distance, count)| (std::cmp::Reverse(count), distance));
    distances.truncate(TRIED);
    let scored = distances.into_iter().map(|(distance, _)| {
        let pairs = sizes.iter().zip(&sizes[distance..]);
        let same = pairs.filter(|(a, b)| a == b).count();
        // In hundredths: of two that are nearly as good, the shorter.
        (
            same * 100 / (sizes.len() - distance),
            std::cmp::Reverse(distance),
        )
    });
    let (score, std::cmp::Reverse(distance)) = scored.max()?;
    (score * SHARE >= 100).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_repeats_is_found() {
        assert_eq!(find(&[9, 8, 7, 1, 2, 3, 1, 2, 3, 1, 2, 3]), Some(3));
        assert_eq!(find(&[1, 1, 2, 1, 1, 2, 1]), Some(3));
        assert_eq!(find(&[5, 5, 5, 5]), Some(1));
        assert_eq!(find(&[1, 2, 3, 4, 5, 6]), None);
        assert_eq!(find(&[1, 2]), None);
        assert_eq!(find(&[1]), None);
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn a_repetition_within_an_iteration_is_not_the_period() {
        let mut sizes = Vec::new();
        for _ in 0..4 {
            sizes.extend([10, 1, 2, 1, 2, 1, 2, 1, 2]);
        }
        assert_eq!(find(&sizes), Some(9));
    }

    #[test]
    fn sizes_that_vary_hide_no_period() {
        let sizes: Vec<u32> = (0..400)
            .map(|at| if at % 5 == 0 { 1000 + at } else { at % 40 })
            .collect();
        assert_eq!(find(&sizes), Some(40));
    }
}
