//! Blocks that hand their bytes on to one another, placed as one.
//!
//! Blocks that live equally long can lie on each other; and where blocks end and others with as many bytes begin, these can
//! take the places of those ([`handover`]). What hands on among itself alone, from one moment to another, has the same
//! bytes throughout. If it can be placed without a gap, it is a block for whoever places the rest: so the parts of a full
//! instance are put together again, from the smallest to the largest.
//!
//! Invariant: at each moment the same bytes live as in the instance that it was made of. A placement of what was joined is
//! one of all blocks; that the best one can be had so is likely where there is no room to lose, and never certain.

mod handover;

use std::collections::BTreeMap;

use crate::exact::{self, Outcome};
use crate::instance::{Block, Instance};
use crate::problem::Problem;
use handover::Handovers;

/// Steps of the exact search for so few blocks: hardly any needs more.
const STEPS: u64 = 1_000;

/// An instance of fewer blocks.
pub(crate) struct Joined {
    pub(crate) instance: Instance,
    /// What each of its blocks is made of.
    parts: Vec<Parts>,
}

/// Blocks of the instance that was there first, and how far above the joined one's offset they lie.
type Parts = Vec<(u32, u64)>;

/// Some blocks as one.
struct Node {
    block: Block,
    parts: Parts,
}

impl Joined {
    /// Nothing where no blocks can be joined, or not before `stop`. Blocks that live across a period's end are not looked at.
    pub(crate) fn of(instance: &Instance, stop: &dyn Fn() -> bool) -> Option<Self> {
        let every = (0_u32..).zip(&instance.blocks);
        if every.clone().any(|(it, _)| instance.lifetimes.of(it).count() > 1) {
            return None;
        }
        let parts = |(it, &block)| Node { block, parts: vec![(it, 0)] };
        let mut nodes: Vec<Node> = every.map(parts).collect();
        loop {
            nodes = stacked(nodes);
            let blocks: Vec<Block> = nodes.iter().map(|it| it.block).collect();
            let sets = Handovers::of(&blocks, stop)?.closed();
            let before = nodes.len();
            nodes = joined(nodes, sets);
            if nodes.len() == before {
                break;
            }
        }
        if nodes.len() == instance.blocks.len() {
            return None;
        }
        let (blocks, parts) = nodes.into_iter().map(|it| (it.block, it.parts)).unzip();
        Some(Self { instance: Instance::new(blocks).ok()?, parts })
    }

    /// Where all blocks lie if those that were joined lie there.
    pub(crate) fn offsets(&self, offsets: &[u64]) -> Vec<u64> {
        let mut all = vec![0; self.parts.iter().map(Vec::len).sum()];
        for (parts, from) in self.parts.iter().zip(offsets) {
            for &(block, above) in parts {
                all[block as usize] = from + above;
            }
        }
        all
    }
}

/// Those that live equally long, on each other.
fn stacked(nodes: Vec<Node>) -> Vec<Node> {
    let mut stacks: BTreeMap<(u64, u64), Node> = BTreeMap::new();
    for node in nodes {
        let lifetime = (node.block.lower, node.block.upper);
        match stacks.get_mut(&lifetime) {
            Some(stack) => {
                let above = stack.block.size;
                stack.block.size += node.block.size;
                let parts = node.parts.into_iter();
                stack.parts.extend(parts.map(|(it, offset)| (it, above + offset)));
            }
            None => {
                stacks.insert(lifetime, node);
            }
        }
    }
    stacks.into_values().collect()
}

/// Each set as one, if it can be placed without a gap. Sets have nothing in common.
fn joined(nodes: Vec<Node>, sets: Vec<Vec<usize>>) -> Vec<Node> {
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    for set in sets {
        let own: Vec<&Node> = set.iter().filter_map(|&it| nodes[it].as_ref()).collect();
        let Some(node) = one(&own) else { continue };
        let into = set[0];
        for it in set {
            nodes[it] = None;
        }
        nodes[into] = Some(node);
    }
    nodes.into_iter().flatten().collect()
}

fn one(nodes: &[&Node]) -> Option<Node> {
    let blocks: Vec<Block> = nodes.iter().map(|it| it.block).collect();
    let lower = blocks.iter().map(|it| it.lower).min()?;
    let upper = blocks.iter().map(|it| it.upper).max()?;
    let ranks: Vec<u32> = (0..).take(blocks.len()).collect();
    let instance = Instance::new(blocks).ok()?;
    let size = instance.lower_bound();
    let problem = Problem::of(&instance);
    let Outcome::Found(offsets) = exact::search(&problem, size, &ranks, STEPS, &|| false) else {
        return None;
    };
    let parts = nodes.iter().zip(offsets).flat_map(|(node, from)| {
        let parts = node.parts.iter();
        parts.map(move |&(it, above)| (it, from + above))
    });
    Some(Node { block: Block { lower, upper, size }, parts: parts.collect() })
}

#[cfg(test)]
mod tests;
