//! What a longer run of a recorded program would do: its last iteration again and again.
//!
//! What an iteration frees of the one before, each copy frees of its own predecessor. What each iteration asks for and none
//! frees takes the place of its predecessor's. What the last one alone asks for and does not free is made once and kept, and
//! is left out of the copies. Frees behind a record's last request are the program's end, which comes later.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use pinbuddy_device::Act;

/// So often the last iteration comes again.
const COPIES: usize = 2;

/// The stream and the bytes of a request, and how many like it there were before in its iteration.
type Key = (u32, u64, u32);

/// The acts up to the end of `last`, and copies of it. `before` is the iteration before that, also of acts.
pub(super) fn longer(acts: &[Act], before: Range<usize>, last: Range<usize>) -> Vec<Act> {
    let requests_end = acts.iter().rposition(|it| block(it).is_some());
    let last = last.start..last.end.min(requests_end.map_or(0, |it| it + 1));
    let known = Iteration::new(acts, before, last.clone());
    let mut run = acts[..last.end].to_vec();
    let mut next = 1 + run.iter().filter_map(block).max().unwrap_or(0);
    let mut held: HashMap<Key, u32> = HashMap::new();
    for (&birth, &key) in &known.keys {
        if let Some(block) = known.hands_on(birth).then(|| block(&acts[birth])).flatten() {
            held.insert(key, block);
        }
    }
    let end = |run: &mut Vec<Act>, held: &mut HashMap<Key, u32>| {
        for key in &known.ended_before {
            run.extend(held.remove(key).map(|block| Act::Free { block }));
        }
    };
    end(&mut run, &mut held);
    for _ in 0..COPIES {
        let mut own: HashMap<usize, u32> = HashMap::new();
        for at in last.clone() {
            match acts[at] {
                Act::Alloc { bytes, stream, .. } if known.comes_again(at) => {
                    let block = next;
                    next += 1;
                    own.insert(at, block);
                    run.push(Act::Alloc { block, bytes, stream });
                    if !known.ends(at) {
                        let old = held.remove(&known.keys[&at]);
                        run.extend(old.map(|block| Act::Free { block }));
                    }
                }
                Act::Free { .. } => {
                    let block = match known.frees.get(&at) {
                        Some(Whose::Own(birth)) => own.remove(birth),
                        Some(Whose::Before(key)) => held.remove(key),
                        None => None,
                    };
                    run.extend(block.map(|block| Act::Free { block }));
                }
                act @ (Act::Iter | Act::Clear) => run.push(act),
                _ => {}
            }
        }
        let lives = own.into_iter().map(|(birth, block)| (known.keys[&birth], block));
        held.extend(lives);
        end(&mut run, &mut held);
    }
    run
}

fn block(act: &Act) -> Option<u32> {
    match *act {
        Act::Alloc { block, .. } => Some(block),
        _ => None,
    }
}

/// Whose block an act of the last iteration frees.
enum Whose {
    /// That of this act of the iteration.
    Own(usize),
    Before(Key),
}

/// What is known of the last iteration.
struct Iteration {
    /// Of its requests, by their acts.
    keys: HashMap<usize, Key>,
    /// By acts.
    frees: HashMap<usize, Whose>,
    /// Requests that it frees itself.
    own: HashSet<usize>,
    /// What it frees of the iteration before.
    before: HashSet<Key>,
    /// What that asks for.
    asked_before: HashSet<Key>,
    /// Of that, what the iteration before frees itself, and the last one may free behind its last request.
    ended_before: BTreeSet<Key>,
}

impl Iteration {
    fn new(acts: &[Act], before: Range<usize>, last: Range<usize>) -> Self {
        let mut counts: HashMap<(bool, u32, u64), u32> = HashMap::new();
        // By block: the act that it was asked for with.
        let mut births: HashMap<u32, usize> = HashMap::new();
        let mut keys_before: HashMap<usize, Key> = HashMap::new();
        let mut it = Self {
            keys: HashMap::new(),
            frees: HashMap::new(),
            own: HashSet::new(),
            before: HashSet::new(),
            asked_before: HashSet::new(),
            ended_before: BTreeSet::new(),
        };
        for (at, act) in acts[..last.end].iter().enumerate() {
            match *act {
                Act::Alloc { block, bytes, stream } => {
                    births.insert(block, at);
                    let is_last = last.contains(&at);
                    if is_last || before.contains(&at) {
                        let count = counts.entry((is_last, stream, bytes)).or_default();
                        let keys = if is_last { &mut it.keys } else { &mut keys_before };
                        keys.insert(at, (stream, bytes, *count));
                        *count += 1;
                    }
                }
                Act::Free { block } => {
                    let birth = births.remove(&block);
                    let of_before = birth.and_then(|it| keys_before.get(&it));
                    it.ended_before.extend(of_before.filter(|_| before.contains(&at)));
                    if let Some(birth) = birth.filter(|_| last.contains(&at)) {
                        if last.contains(&birth) {
                            it.own.insert(birth);
                            it.frees.insert(at, Whose::Own(birth));
                        } else if let Some(&key) = keys_before.get(&birth) {
                            it.before.insert(key);
                            it.frees.insert(at, Whose::Before(key));
                        }
                    }
                }
                _ => {}
            }
        }
        it.asked_before = keys_before.into_values().collect();
        it
    }

    /// Whether a later iteration frees what this request of the last one gets.
    fn hands_on(&self, birth: usize) -> bool {
        !self.own.contains(&birth) && self.comes_again(birth)
    }

    /// Whether each iteration has such a request.
    fn comes_again(&self, birth: usize) -> bool {
        self.own.contains(&birth) || self.asked_before.contains(&self.keys[&birth])
    }

    /// Whether what this request gets is freed at all.
    fn ends(&self, birth: usize) -> bool {
        self.own.contains(&birth) || self.before.contains(&self.keys[&birth])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_comes_again_with_what_it_hands_on() {
        let alloc = |block, bytes| Act::Alloc { block, bytes, stream: 0 };
        let free = |block| Act::Free { block };
        let acts = [
            alloc(0, 9), // Kept.
            alloc(1, 5),
            alloc(2, 7),
            free(1),
            Act::Iter,
            alloc(1, 5),
            free(2), // Of the iteration before.
            alloc(2, 7),
            alloc(3, 1), // Kept from now on.
            free(1),
            Act::Iter,
            alloc(9, 99),
        ];
        let run = longer(&acts, 1..5, 5..11);
        assert_eq!(run[..11], acts[..11]);
        let copy = |first: u32, old| [alloc(first, 5), free(old), alloc(first + 1, 7), free(first), Act::Iter];
        assert_eq!(run[11..16], copy(4, 2));
        assert_eq!(run[16..], copy(6, 5));
    }
}
