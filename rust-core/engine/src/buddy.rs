//! The buddy tree of one segment: finds free runs, takes ranges, frees ranges.
//!
//! An implicit binary tree whose nodes *are* the buddies. The root spans the segment rounded up
//! to a power of two, the children of a node are its two halves, and the lowest level is a bitmap
//! of 64 granules a word. A [`Node`] sums up its granules: longest free run, free prefix, free
//! suffix.
//!
//! ```text
//!   root |                 256               |
//!        |       128       |       128       |   pairs
//!        |   64   |   64   |   64   |   64   |   words: a bit per granule, set = free
//! ```
//!
//! A buddy is free if its node's longest run is its whole length. Two free halves sum up to a free
//! whole, so merging needs no step of its own; taking a part splits. A run may span neighbours of any
//! order. So a request takes exactly its granules from the leftmost run that holds them, and loses
//! nothing to alignment.
//!
//! A *plain* node (wholly free, wholly taken, or with at most two changes between free and taken)
//! describes all granules below it. Its descendants are stale, and are rewritten when it stops being
//! plain. So an operation descends only to plain nodes: at worst O(log n) nodes, whatever the number
//! of free runs, and a few in a segment that holds a few large blocks.
//!
//! Does not know blocks: it takes any free range and frees any taken one. Granules beyond the end of
//! the segment are taken from the start and never freed, so any length works. Memory: 24 bytes for
//! each word of 64 granules, 96 KiB for 1 GiB. It is allocated as zeroed pages; those beyond the end
//! or below plain nodes stay untouched.
//!
//! Invariant: every node that is not stale sums up its granules (audited); hence I3.

use crate::node::{Node, Packed};
use crate::records::touch;
use crate::word::{WORD, first_run_of_pair, mask};
use std::ops::Range;

/// See the module's documentation.
///
/// A node is numbered as in a heap: the root is 1, the children of `at` are `2 * at` and
/// `2 * at + 1`. A node is stored with its sibling under their parent's number, since both are always
/// needed together.
#[derive(Debug)]
pub(crate) struct BuddyTree {
    root: Node,
    /// The children of nodes `1..lowest`; index 0 is unused.
    pairs: Vec<[Packed; 2]>,
    /// The children of nodes `lowest..2 * lowest`, which are words of the bitmap.
    words: Vec<[u64; 2]>,
    /// The number of the first node whose children are words, and of such nodes: a power of two.
    lowest: usize,
}

/// Granules of a node whose children are words.
const PAIR: u32 = 2 * WORD;

impl BuddyTree {
    /// A tree of `granules` free granules.
    pub(crate) fn new(granules: u32) -> Self {
        let lowest = (granules.div_ceil(PAIR) as usize).next_power_of_two();
        let (pairs, words) = (vec![[(0, 0); 2]; lowest], vec![[0; 2]; lowest]);
        let mut tree = Self { root: Node::TAKEN, pairs, words, lowest };
        tree.free(0..granules);
        tree
    }

    /// Writes to each page of the tree, and changes nothing.
    pub(crate) fn touch(&mut self) {
        touch(&mut self.pairs);
        touch(&mut self.words);
    }

    /// Length of the longest free run, in granules.
    #[inline]
    pub(crate) fn longest(&self) -> u32 {
        self.root.longest
    }

    /// The start of the leftmost free run of at least `length` granules, `length >= 1`.
    #[inline]
    pub(crate) fn find(&self, length: u32) -> Option<u32> {
        debug_assert!(length > 0);
        if self.root.longest < length {
            return None;
        }
        let (mut at, mut node, mut start, mut span) = (1, self.root, 0, self.span());
        // Invariant: this node has a run that is long enough, and no granule left of it starts one.
        loop {
            if node.prefix >= length {
                return Some(start);
            }
            if !node.is_mixed() {
                // Plain, and its prefix is too short: only the longest run can be long enough.
                return Some(start + node.start_of_longest(span));
            }
            if at >= self.lowest {
                let [left, right] = self.words[at - self.lowest];
                return first_run_of_pair(left, right, length).map(|bit| start + bit);
            }
            let [left, right] = self.pairs[at].map(Node::unpack);
            let half = span / 2;
            if left.longest >= length {
                (at, node) = (2 * at, left);
            } else if left.suffix + right.prefix >= length {
                return Some(start + half - left.suffix);
            } else {
                (at, node) = (2 * at + 1, right);
                start += half;
            }
            span = half;
        }
    }

    /// Takes a non-empty range whose granules are all free.
    #[inline]
    pub(crate) fn take(&mut self, range: Range<u32>) {
        debug_assert!(range.start < range.end && range.end <= self.span());
        let root = self.fill::<false>(1, self.root.pack(), self.span(), range.start, range.end);
        self.root = Node::unpack(root);
    }

    /// Frees a non-empty range whose granules are all taken; it merges with free neighbours.
    #[inline]
    pub(crate) fn free(&mut self, range: Range<u32>) {
        debug_assert!(range.start < range.end && range.end <= self.span());
        let root = self.fill::<true>(1, self.root.pack(), self.span(), range.start, range.end);
        self.root = Node::unpack(root);
    }

    /// The granules that the tree spans, including those beyond the segment's end.
    #[inline]
    pub(crate) fn span(&self) -> u32 {
        self.lowest as u32 * PAIR
    }

    /// Marks `from..to` of node `top`, which was `was` and has `length` granules. Returns the new node,
    /// for the caller to store.
    fn fill<const FREE: bool>(
        &mut self,
        top: usize,
        was: Packed,
        mut length: u32,
        mut from: u32,
        mut to: u32,
    ) -> Packed {
        // Down through mixed nodes, as long as one half holds all of the range ...
        let (mut at, mut node) = (top, Node::unpack(was));
        while node.is_mixed() && at < self.lowest {
            let half = length / 2;
            if to <= half {
                (at, node) = (2 * at, Node::unpack(self.pairs[at][0]));
            } else if from >= half {
                (at, node) = (2 * at + 1, Node::unpack(self.pairs[at][1]));
                (from, to) = (from - half, to - half);
            } else {
                break;
            }
            length = half;
        }
        let mut new = self.fill_here::<FREE>(at, node, length, from, to);
        // ... and up again. A change deep down often touches neither the longest run nor an end: then
        // nothing above changes.
        while at > top {
            let side = at & 1;
            at /= 2;
            let pair = &mut self.pairs[at];
            if pair[side] == new {
                return was;
            }
            pair[side] = new;
            let (this, other) = (Node::unpack(new), Node::unpack(pair[1 - side]));
            let (left, right) = if side == 0 { (this, other) } else { (other, this) };
            new = Node::join(left, right, length).pack();
            length *= 2;
        }
        new
    }

    /// [`Self::fill`] if the node is not mixed, its children are words, or the range reaches into both
    /// halves.
    #[inline]
    fn fill_here<const FREE: bool>(&mut self, at: usize, node: Node, length: u32, from: u32, to: u32) -> Packed {
        if to - from == length {
            let uniform = if FREE { Node::free(length) } else { Node::TAKEN };
            return uniform.pack();
        }
        let plain = if FREE { node.freeing(from, to, length) } else { node.taking(from, to, length) };
        if let Some(plain) = plain {
            return plain.pack();
        }
        let half = length / 2;
        if at >= self.lowest {
            return self.fill_words::<FREE>(at - self.lowest, node, from, to).pack();
        }
        let [mut left, mut right] = if node.is_mixed() { self.pairs[at] } else { node.split(half).map(Node::pack) };
        if from < half {
            left = self.fill::<FREE>(2 * at, left, half, from, to.min(half));
        }
        if to > half {
            right = self.fill::<FREE>(2 * at + 1, right, half, from.max(half) - half, to - half);
        }
        self.pairs[at] = [left, right];
        Node::join(Node::unpack(left), Node::unpack(right), half).pack()
    }

    /// Marks `from..to` of a node that was `node` and has the pair of words at `place`.
    #[inline]
    fn fill_words<const FREE: bool>(&mut self, place: usize, node: Node, from: u32, to: u32) -> Node {
        let pair = &mut self.words[place];
        if !node.is_mixed() {
            *pair = node.split(WORD).map(Node::to_word);
        }
        let bits = [mask(from.min(WORD), to.min(WORD)), mask(from.max(WORD) - WORD, to.max(WORD) - WORD)];
        for (word, bits) in pair.iter_mut().zip(bits) {
            *word = if FREE { *word | bits } else { *word & !bits };
        }
        Node::join(Node::of_word(pair[0]), Node::of_word(pair[1]), WORD)
    }
}

mod walk;

#[cfg(test)]
mod tests;
