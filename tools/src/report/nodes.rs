//! How much pinned memory of the run itself served the devices of each NUMA node, where the file says it.

use std::collections::BTreeMap;

use serde::Serialize;

/// A node's memory in bytes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// The most that was pinned.
    pub peak_pinned: u64,
    /// The most of that in use, or waiting for a stream.
    pub peak_used: u64,
    /// What was pinned last, and how much of it was in use.
    pub at_end: [u64; 2],
}

/// The nodes of a file, by number.
#[derive(Debug, Default)]
pub(super) struct Nodes(BTreeMap<u32, Node>);

impl Nodes {
    /// From now on the node has these.
    pub(super) fn push(&mut self, node: u32, pinned: u64, used: u64) {
        let it = self.0.entry(node).or_default();
        it.node = node;
        it.peak_pinned = it.peak_pinned.max(pinned);
        it.peak_used = it.peak_used.max(used);
        it.at_end = [pinned, used];
    }

    pub(super) fn show(&self) -> Vec<Node> {
        self.0.values().cloned().collect()
    }
}
