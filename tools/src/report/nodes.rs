//! How much pinned memory of the run itself served the devices of each NUMA node, where the file says it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::curve::{COARSE, Curve};

/// A node's memory in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Pinned, over time.
    pub pinned: Curve,
    /// Of that in use, or waiting for a stream, over time.
    pub used: Curve,
    /// The most of each that the file says.
    pub peak_pinned: u64,
    /// See there.
    pub peak_used: u64,
    /// The last that it says of each.
    pub at_end: [u64; 2],
}

/// The nodes of a file, by number.
#[derive(Debug, Default)]
pub(super) struct Nodes(BTreeMap<u32, Node>);

impl Nodes {
    /// From `at` on the node has these. Times never go back.
    pub(super) fn push(&mut self, at: u64, node: u32, pinned: u64, used: u64) {
        let new = || Node {
            node,
            pinned: Curve::new(COARSE),
            used: Curve::new(COARSE),
            peak_pinned: 0,
            peak_used: 0,
            at_end: [0; 2],
        };
        let it = self.0.entry(node).or_insert_with(new);
        it.pinned.push(at, pinned);
        it.used.push(at, used);
        it.peak_pinned = it.peak_pinned.max(pinned);
        it.peak_used = it.peak_used.max(used);
        it.at_end = [pinned, used];
    }

    pub(super) fn show(&self) -> Vec<Node> {
        self.0.values().cloned().collect()
    }
}
