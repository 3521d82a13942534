//! NUMA nodes: their processors, their memory, and the devices beside them.

use serde::Serialize;

use crate::files::{Files, kib_field};

const FOLDER: &str = "sys/devices/system/node";

/// One node.
#[derive(Debug, Serialize)]
pub struct Node {
    /// The kernel's number.
    pub id: u32,
    /// `0-55,112-167`.
    pub cpus: String,
    /// In bytes.
    pub total: u64,
    /// In bytes; without the cache, which `MemAvailable` counts and a node does not.
    pub free: u64,
}

/// All nodes; empty if the kernel knows none.
pub fn nodes(files: &Files) -> Vec<Node> {
    let names = files.names(FOLDER).into_iter().filter(|it| is_node(it));
    let read = |name: String| {
        let id = name.trim_start_matches("node").parse().ok()?;
        let info = files.text(&format!("{FOLDER}/{name}/meminfo"))?;
        let kib = |label| kib_field(&info, &format!("Node {id} {label}:")).unwrap_or(0);
        let cpus = files.text(&format!("{FOLDER}/{name}/cpulist"));
        Some(Node { id, cpus: cpus.unwrap_or_default(), total: kib("MemTotal"), free: kib("MemFree") })
    };
    names.filter_map(read).collect()
}

/// `node0`, as the kernel calls a node.
pub fn is_node(name: &str) -> bool {
    name.strip_prefix("node").is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))
}

/// The nodes that have memory; empty if the kernel knows none.
pub fn nodes_with_memory(files: &Files) -> Vec<u32> {
    listed(files, "has_memory")
}

/// The nodes that have processors; empty if the kernel does not say.
pub fn nodes_with_processors(files: &Files) -> Vec<u32> {
    listed(files, "has_cpu")
}

fn listed(files: &Files, name: &str) -> Vec<u32> {
    list(&files.text(&format!("{FOLDER}/{name}")).unwrap_or_default())
}

/// The node of the PCI device at this address, for instance `0000:1B:00.0`.
pub fn node_of(files: &Files, pci_address: &str) -> Option<u32> {
    let folder = pci_address.to_ascii_lowercase();
    // -1 if the firmware does not say.
    let node = files.text(&format!("sys/bus/pci/devices/{folder}/numa_node"))?;
    node.parse().ok()
}

/// No kernel counts nodes beyond this.
const MOST_NODES: usize = 1 << 12;

/// A list as the kernel writes it: `0-3,8`.
fn list(text: &str) -> Vec<u32> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().take(MOST_NODES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_all_numbers_takes_no_memory() {
        assert_eq!(list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(list("0-4294967295").len(), MOST_NODES);
        assert_eq!(list("3-1,x,-2,7"), [7]);
    }
}
