//! Walks over the tree: to where blocks may start, for snapshots, and to every node, for the audit.
//!
//! Reads only nodes that are not stale, so both are cheap in a segment with few blocks.

use super::BuddyTree;
#[cfg(test)]
use super::PAIR;
use crate::node::Node;
use crate::word::WORD;

impl BuddyTree {
    /// The first taken granule from `from` on; those beyond the segment's end are taken.
    /// O(log n).
    pub(crate) fn first_taken(&self, from: u32) -> Option<u32> {
        self.taken_below(1, self.root, self.span(), from)
    }

    /// The same in a node of `length` granules; places count from its start.
    fn taken_below(&self, at: usize, node: Node, length: u32, from: u32) -> Option<u32> {
        if from >= length {
            return None;
        }
        let half = length / 2;
        if !node.is_mixed() {
            let mut runs = node.plain_runs(length).into_iter();
            let taken = runs.find(|run| run.contains(&from)).map_or(from, |run| run.end);
            (taken < length).then_some(taken)
        } else if at >= self.lowest {
            let [left, right] = self.words[at - self.lowest].map(u128::from);
            let taken = !(left | right << WORD) >> from;
            (taken != 0).then(|| from + taken.trailing_zeros())
        } else {
            let [left, right] = self.pairs[at].map(Node::unpack);
            let in_left = self.taken_below(2 * at, left, half, from);
            in_left.or_else(|| {
                let from = from.saturating_sub(half);
                let taken = self.taken_below(2 * at + 1, right, half, from)?;
                Some(half + taken)
            })
        }
    }

    /// Calls `visit(start, length, node, word)` for every node that is not stale, a parent before
    /// its children; words are nodes too, and come with their bits. For the audit: O(granules).
    pub(crate) fn visit(&self, visit: &mut impl FnMut(u32, u32, Node, Option<u64>)) {
        self.visit_below(1, self.root, 0, self.span(), visit);
    }

    fn visit_below(
        &self,
        at: usize,
        node: Node,
        start: u32,
        length: u32,
        visit: &mut impl FnMut(u32, u32, Node, Option<u64>),
    ) {
        visit(start, length, node, None);
        let half = length / 2;
        if !node.is_mixed() {
        } else if at >= self.lowest {
            for (start, word) in [start, start + half].into_iter().zip(self.words[at - self.lowest]) {
                visit(start, half, Node::of_word(word), Some(word));
            }
        } else {
            let [left, right] = self.pairs[at].map(Node::unpack);
            self.visit_below(2 * at, left, start, half, visit);
            self.visit_below(2 * at + 1, right, start + half, half, visit);
        }
    }

    /// For tests of the audit: makes all nodes mixed from the root down to the wholly free node of two
    /// words at `start`, as if its halves had not merged.
    #[cfg(test)]
    pub(crate) fn corrupt_unmerge(&mut self, start: u32) {
        let unmerged = self.lowest + (start / PAIR) as usize;
        let mut node = self.root;
        self.root = node.corrupt_mixed();
        for up in (1..=unmerged.ilog2()).rev() {
            let (at, half) = (unmerged >> up, (PAIR << up) / 2);
            if !node.is_mixed() {
                self.pairs[at] = node.split(half).map(Node::pack);
            }
            let child = &mut self.pairs[at][(unmerged >> (up - 1)) & 1];
            node = Node::unpack(*child);
            *child = node.corrupt_mixed().pack();
        }
        self.words[unmerged - self.lowest] = node.split(WORD).map(Node::to_word);
    }

    /// For tests of the audit: the root.
    #[cfg(test)]
    pub(crate) fn corrupt_root(&mut self) -> &mut Node {
        &mut self.root
    }
}
