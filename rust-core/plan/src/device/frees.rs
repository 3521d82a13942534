//! Other orders in which a program frees what it carries from one iteration to the next, where their order looks like chance:
//! results that wait for a caller, a buffer of samples, sequences that end when they end.
//!
//! Invariant: at each moment as many blocks are live as in the record, and each is freed once, behind its request.

use std::collections::VecDeque;

use pinbuddy_device::Act;

use super::lives::Lives;
use super::orders::tried;
use crate::random::Random;
use crate::script::repeats;

/// So few blocks that are carried and freed say nothing of their order.
const FEWEST: usize = 16;

/// Next to be freed is any of those that are live of the next so many in the record's order.
const WINDOW: usize = 8;

/// So many orders are tried.
const TRIED: u64 = 4;

/// The acts with carried blocks freed in other orders; none where few are, or first come or last come are first served.
/// `carried`: the acts that free one, in order.
pub(super) fn other_frees(acts: &[Act], lives: &Lives, carried: Vec<usize>) -> impl Iterator<Item = Vec<Act>> {
    let births: Vec<usize> = carried.iter().filter_map(|it| lives.births[*it]).collect();
    let none = births.len() < FEWEST || !looks_like_chance(&births);
    let order = move |seed| in_order(acts, lives, &carried, &births, seed);
    (0..if none { 0 } else { tried(TRIED, acts.len()) }).map(order)
}

/// Whether often a block is freed that is older than the one before, often one that is younger, and not in a pattern.
fn looks_like_chance(births: &[usize]) -> bool {
    let pairs = births.windows(2).map(|it| it[1].wrapping_sub(it[0]));
    let younger: Vec<u32> = pairs.map(|it| it as u32).collect();
    let all = younger.len();
    let older = younger.iter().filter(|it| (**it).cast_signed() < 0).count();
    (all / 4..=all - all / 4).contains(&older) && !repeats(&younger)
}

/// The first block that is left is always live: its free in the record, if it is another's now, has come already.
fn in_order(acts: &[Act], lives: &Lives, carried: &[usize], births: &[usize], seed: u64) -> Vec<Act> {
    let mut random = Random::new(seed);
    let mut left: VecDeque<usize> = births.iter().copied().collect();
    let mut frees = carried.iter().copied().peekable();
    let act = |(at, act): (usize, &Act)| match *act {
        Act::Alloc { bytes, stream, .. } => Act::Alloc { block: at as u32, bytes, stream },
        Act::Free { .. } if frees.next_if_eq(&at).is_some() => {
            let is_live = |place: &usize| left[*place] < at;
            let places: Vec<usize> = (0..left.len().min(WINDOW)).filter(is_live).collect();
            let place = places[random.below(places.len())];
            let block = left.remove(place).unwrap_or(at);
            Act::Free { block: block as u32 }
        }
        Act::Free { .. } => Act::Free { block: lives.births[at].unwrap_or(at) as u32 },
        other => other,
    };
    acts.iter().enumerate().map(act).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A block a step, of which eight are kept; the one to be freed is the `chosen`th.
    fn kept(steps: u32, mut chosen: impl FnMut(usize) -> usize) -> Vec<Act> {
        let mut kept = Vec::new();
        let mut acts = Vec::new();
        for block in 0..steps {
            acts.push(Act::Alloc { block, bytes: (1 + u64::from(block % 3)) << 20, stream: 0 });
            kept.push(block);
            if kept.len() > 7 {
                let block = kept.remove(chosen(kept.len()));
                acts.push(Act::Free { block });
            }
        }
        acts
    }

    fn others(acts: &[Act]) -> Vec<Vec<Act>> {
        let lives = Lives::of(acts);
        other_frees(acts, &lives, lives.frees_after(0)).collect()
    }

    #[test]
    fn first_and_last_served_and_patterns_are_the_programs_own_order() {
        let mut turns = [0, 3, 1].into_iter().cycle();
        for acts in [kept(60, |_| 0), kept(60, |all| all - 2), kept(90, |_| turns.next().unwrap())] {
            assert!(others(&acts).is_empty());
        }
    }

    #[test]
    fn what_is_freed_by_chance_is_freed_otherwise_and_as_much_is_live() {
        let mut random = Random::new(3);
        let acts = kept(60, |all| random.below(all));
        let own = Lives::of(&acts).births;
        let is_free = |act: &Act| matches!(act, Act::Free { .. });
        let others = others(&acts);
        assert_eq!(others.len(), TRIED as usize);
        for other in others {
            let mut live = HashSet::new();
            let mut differ = 0;
            for (at, act) in other.iter().enumerate() {
                assert_eq!(is_free(act), is_free(&acts[at]));
                match act {
                    Act::Alloc { block, .. } => assert!(live.insert(*block)),
                    Act::Free { block } => {
                        assert!(live.remove(block), "{block}");
                        differ += usize::from(own[at] != Some(*block as usize));
                    }
                    _ => {}
                }
            }
            assert!(differ > 10, "{differ}");
            assert_eq!(live.len(), 7);
        }
    }
}
