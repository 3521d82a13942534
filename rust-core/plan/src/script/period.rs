//! How many requests of a lane make one iteration, found in the sequences of their sizes and lifetimes.
//!
//! First the longest end of the sizes that repeats exactly, at least twice. Where sizes vary, the
//! distance at which most sizes are the same as before; only frequent distances between rare sizes are tried.
//! The layers of an iteration may have equal sizes, but each layer's lifetimes are its own: so the same is
//! done with pairs of size and lifetime, exact ones and rough ones.

/// So much of the sequence must repeat, exactly or nearly: a half.
const SHARE: usize = 2;

/// How many pairs of equal sizes are looked at.
const PAIRS: usize = 4_000_000;

/// How many comparisons of all sizes with all sizes some distance away are made.
const COMPARISONS: usize = 400_000_000;

/// How many distances are tried.
const TRIED: usize = 256;

/// So many distances may be the period.
const CANDIDATES: usize = 6;

/// So many of them are looked for by lifetimes.
const BY_LIVES: usize = 3;

/// What may be the period of requests with these sizes and lifetimes, the likeliest first: by sizes, then by
/// both. Each comes twice at least. `whole`: in half of all requests; else also at the end alone, behind another phase.
pub(super) fn find(sizes: &[u32], lives: &[u32], whole: bool) -> Vec<usize> {
    let mut found = by_sizes(sizes);
    if !whole {
        let half = &sizes[sizes.len() / 2..];
        let late = exact(sizes).map(|it| it.1).into_iter().chain(by_sizes(half));
        for period in late {
            if !found.contains(&period) {
                found.push(period);
            }
        }
    }
    // One number each, which are compared several at a time.
    let both = |rough: fn(u32) -> u32| -> Vec<u64> {
        let lives = lives.iter().map(|&it| rough(it));
        let both = sizes.iter().zip(lives);
        both.map(|(size, life)| u64::from(*size) << 32 | u64::from(life)).collect()
    };
    for rough in [std::convert::identity, magnitude] {
        for period in near(&both(rough), BY_LIVES) {
            if !found.contains(&period) {
                found.push(period);
            }
        }
    }
    found
}

fn by_sizes(sizes: &[u32]) -> Vec<usize> {
    let exact = exact(sizes).filter(|(length, _)| length * SHARE >= sizes.len());
    exact.map_or_else(|| near(sizes, CANDIDATES), |it| vec![it.1])
}

/// A lifetime's power of two, and its next two bits: streams are not done at the same moment each time.
fn magnitude(life: u32) -> u32 {
    let shift = life.max(1).ilog2().saturating_sub(2);
    life >> shift << shift
}

/// Whether three in four of `sizes`, up to the end, are periods.
pub(crate) fn repeats(sizes: &[u32]) -> bool {
    exact(sizes).is_some_and(|(length, _)| length * 4 >= sizes.len() * 3)
}

/// The longest end of `sizes` that has two periods at least, and its smallest period.
fn exact(sizes: &[u32]) -> Option<(usize, usize)> {
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
    found
}

/// The distances between equal sizes at which the most sizes repeat, `most` at most. The rarest sizes tell
/// most. Sizes may as well be anything else that is told apart.
pub(crate) fn near<S: Copy + Ord>(sizes: &[S], most: usize) -> Vec<usize> {
    // Sorted, and not hashed: of a million lifetimes nearly each is another one.
    let mut all: Vec<(S, u32)> = sizes.iter().copied().zip(0..).collect();
    all.sort_unstable();
    let mut places: Vec<&[(S, u32)]> = all.chunk_by(|a, b| a.0 == b.0).filter(|it| it.len() > 1).collect();
    places.sort_unstable_by_key(|it| (it.len(), it[0].1));
    let mut counts = vec![0_u32; sizes.len() / 2 + 1];
    let mut pairs = 0;
    for places in places {
        pairs += places.len() * places.len() / 2;
        if pairs > PAIRS {
            break;
        }
        for (at, &(_, place)) in places.iter().enumerate() {
            for (_, other) in &places[at + 1..] {
                if let Some(count) = counts.get_mut((other - place) as usize) {
                    *count += 1;
                }
            }
        }
    }
    // Of so many as there can be, in millionths.
    let often = |distance: usize| {
        let most = (sizes.len() - distance) as u64;
        u64::from(counts[distance]) * 1_000_000 / most
    };
    let mut distances: Vec<usize> = (1..counts.len()).filter(|&it| counts[it] > 0).collect();
    distances.sort_by_cached_key(|&it| (std::cmp::Reverse(often(it)), it));
    distances.truncate(TRIED.min(COMPARISONS / sizes.len().max(1)));
    let scored = distances.into_iter().map(|distance| {
        let pairs = sizes.iter().zip(&sizes[distance..]);
        let same = pairs.filter(|(a, b)| a == b).count();
        // In hundredths: of two that are nearly as good, the shorter.
        (same * 100 / (sizes.len() - distance), distance)
    });
    let mut scored: Vec<(usize, usize)> = scored.filter(|it| it.0 * SHARE >= 100).collect();
    scored.sort_unstable_by_key(|&(score, distance)| (std::cmp::Reverse(score), distance));
    scored.truncate(most);
    scored.into_iter().map(|(_, distance)| distance).collect()
}

#[cfg(test)]
mod tests {
    use super::by_sizes as find;

    #[test]
    fn the_end_that_repeats_is_found_and_no_repetition_within_it() {
        let within = [10, 1, 2, 1, 2, 1, 2, 1, 2].repeat(4);
        assert_eq!(find(&within), [9]);
        assert_eq!(find(&[9, 8, 7, 1, 2, 3, 1, 2, 3, 1, 2, 3]), [3]);
        assert_eq!(find(&[1, 1, 2, 1, 1, 2, 1]), [3]);
        assert_eq!(find(&[5, 5, 5, 5]), [1]);
        for none in [&[1, 2, 3, 4, 5, 6][..], &[1, 2], &[1], &[]] {
            assert_eq!(find(none), [0; 0]);
        }
        // Sizes that vary hide no period.
        let sizes: Vec<u32> = (0..400).map(|at| if at % 5 == 0 { 1000 + at } else { at % 40 }).collect();
        assert_eq!(find(&sizes)[0], 40);
    }

    #[test]
    fn lifetimes_tell_an_iteration_from_its_layers() {
        // Four layers of three sizes; all that a step asks for lives until its end, or a little longer.
        let sizes: Vec<u32> = (0..120).map(|at| at % 3).collect();
        for jitter in [0, 2] {
            let lives: Vec<u32> = (0..120).map(|at| 40 - 3 * (at % 12) + at * 7 % (jitter + 1)).collect();
            let found = super::find(&sizes, &lives, true);
            assert!(found[0] == 3 && found[1..].contains(&12), "{found:?}");
        }
    }
}
