//! Every node operation against counting bit by bit.

use super::*;
use crate::word::tests::{bits_of, words};
use proptest::prelude::*;

/// The same, counted bit by bit.
fn naive(bits: &[bool]) -> Node {
    let length = bits.len() as u32;
    let changes = bits.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let longest = bits.split(|free| !free).map(<[bool]>::len).max().unwrap_or(0) as u32;
    let prefix = bits.iter().take_while(|free| **free).count() as u32;
    let suffix = bits.iter().rev().take_while(|free| **free).count() as u32;
    let shape = match changes {
        0 | 1 => ENDS,
        2 if prefix > 0 => ENDS,
        2 => bits.iter().position(|free| *free).unwrap() as u32,
        _ => MIXED,
    };
    assert!(prefix <= length);
    Node { longest, prefix, suffix, shape }
}

/// Two words that together are often plain.
fn pairs() -> impl Strategy<Value = [u64; 2]> {
    let plain = (0usize..=128, 0usize..=128, any::<bool>()).prop_map(|(a, b, inside)| {
        let bits: Vec<bool> = (0..128).map(|bit| (a.min(b)..a.max(b)).contains(&bit) == inside).collect();
        [word_of(&bits[..64]), word_of(&bits[64..])]
    });
    prop_oneof![(words(), words()).prop_map(|(left, right)| [left, right]), plain]
}

fn word_of(bits: &[bool]) -> u64 {
    (0..64).filter(|bit| bits[*bit]).map(|bit| 1 << bit).sum()
}

fn bits_of_pair([left, right]: [u64; 2]) -> Vec<bool> {
    bits_of(left).into_iter().chain(bits_of(right)).collect()
}

proptest! {
    #[test]
    fn a_word_is_summed_up_as_bit_by_bit(word in words()) {
        let node = Node::of_word(word);
        prop_assert_eq!(Node::unpack(node.pack()), node);
        prop_assert_eq!(node, naive(&bits_of(word)));
        if !node.is_mixed() {
            prop_assert_eq!(node.to_word(), word);
        }
    }

    #[test]
    fn joining_equals_counting_the_whole(pair in pairs()) {
        let (left, right) = (Node::of_word(pair[0]), Node::of_word(pair[1]));
        let joined = Node::join(left, right, 64);
        prop_assert_eq!(joined, naive(&bits_of_pair(pair)));
        if !joined.is_mixed() {
            prop_assert_eq!(joined.split(64), [left, right]);
        }
    }

    #[test]
    fn a_range_is_taken_and_freed_as_bit_by_bit(pair in pairs(), at in 0usize..128, cut in 0usize..128, whole in any::<bool>()) {
        let mut bits = bits_of_pair(pair);
        let node = naive(&bits);
        // The run around `at`, or a part of it.
        let was_free = bits[at];
        let from = bits[..at].iter().rposition(|bit| *bit != was_free).map_or(0, |n| n + 1);
        let to = bits[at..].iter().position(|bit| *bit != was_free).map_or(128, |n| at + n);
        let (from, to) = match (whole, cut < at) {
            (true, _) => (from, to),
            (false, true) => (from.max(cut), to),
            (false, false) => (from, to.min(cut + 1)),
        };
        bits[from..to].fill(!was_free);
        let found = if was_free {
            node.taking(from as u32, to as u32, 128)
        } else {
            node.freeing(from as u32, to as u32, 128)
        };
        let expected = naive(&bits);
        if let Some(found) = found {
            prop_assert_eq!(found, expected);
        } else {
            // `None` is allowed only if the result or the node itself is mixed.
            prop_assert!(node.is_mixed() || expected.is_mixed());
        }
    }
}

#[test]
fn two_free_halves_are_one_free_whole() {
    assert_eq!(Node::join(Node::free(64), Node::free(64), 64), Node::free(128));
    assert_eq!(Node::join(Node::TAKEN, Node::TAKEN, 64), Node::TAKEN);
    assert_eq!(Node::TAKEN.pack(), (0, 0)); // so that a new tree is zeroed pages
}
