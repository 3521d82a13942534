//! Which NUMA node a region is to lie on, and where it lies.
//!
//! The choice is a pure function of the settings and the machine; `mapping` makes the system calls. On
//! the wrong node copies take twice as long, once all devices are busy.

use super::machine::Machine;
use super::mapping::{self, Mapping};
use super::pages;
use crate::config::memory::Numa;

/// What to do about the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The kernel decides.
    Leave,
    /// There is nothing to choose, for this reason.
    Nothing(&'static str),
    /// The setting cannot be followed, for this reason.
    Cannot(String),
    /// This node.
    Node(u32),
}

/// The node for a region that serves the device at `pci_address`.
pub(super) fn choose(asked: Numa, machine: &Machine, pci_address: impl FnOnce() -> Option<String>) -> Choice {
    if asked == Numa::Off {
        return Choice::Leave;
    }
    let nodes = machine.nodes();
    let node = match asked {
        Numa::Node(node) => node,
        _ if nodes.len() < 2 => return Choice::Nothing("this machine has one NUMA node"),
        _ => {
            let Some(address) = pci_address() else {
                return Choice::Cannot("the device in use is not known".to_owned());
            };
            match machine.node_of(&address) {
                Some(node) => node,
                None => {
                    return Choice::Cannot(format!("the node of device {address} is not known"));
                }
            }
        }
    };
    if nodes.is_empty() && node == 0 {
        Choice::Nothing("this kernel knows no NUMA nodes")
    } else if !nodes.contains(&node) {
        let list: Vec<String> = nodes.iter().map(u32::to_string).collect();
        let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
        Choice::Cannot(format!("no node {node} has memory here (those that have: {list})"))
    } else if nodes.len() == 1 {
        Choice::Nothing("this machine has one NUMA node")
    } else {
        Choice::Node(node)
    }
}

/// How many pages of a region are looked at.
const SAMPLES: usize = 64;

/// The node that most of the sampled pages of a filled region lie on; `None` if the kernel does not say.
pub(super) fn where_it_lies(base: usize, bytes: usize) -> Option<Lies> {
    let step = (bytes / SAMPLES).next_multiple_of(pages::sizes().page).max(pages::sizes().page);
    let addresses: Vec<usize> = (base..base + bytes).step_by(step).collect();
    most(&mapping::nodes(&addresses).ok()?)
}

/// Where a region lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lies {
    /// The node of most of its pages.
    pub(super) node: u32,
    /// How many percent of the pages.
    pub(super) percent: usize,
}

fn most(nodes: &[Option<u32>]) -> Option<Lies> {
    let count = |node: u32| nodes.iter().filter(|it| **it == Some(node)).count();
    let node = nodes.iter().flatten().copied().max_by_key(|it| count(*it))?;
    let percent = 100 * count(node) / nodes.len();
    Some(Lies { node, percent })
}

/// Has the kernel prefer this node for a mapping without pages yet; the error is for people.
pub(super) fn bind(mapping: &Mapping, node: u32) -> Result<(), String> {
    mapping.prefer(node).map_err(|why| format!("the kernel does not allow node {node}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::super::machine::tests::{HAS_MEMORY, made_up};
    use super::*;
    use crate::config::memory::Fork;
    use pages::Pages;

    const GPU: &str = "0000:1b:00.0";

    #[test]
    fn the_devices_own_node_is_chosen_or_the_one_that_was_asked_for_and_what_cannot_be_had_is_said() {
        use Numa::{Auto, Node, Off};
        let cannot = |why: &str| Choice::Cannot(why.to_owned());
        let one = || Choice::Nothing("this machine has one NUMA node");
        let none = || Choice::Nothing("this kernel knows no NUMA nodes");
        let of_gpu = format!("sys/bus/pci/devices/{GPU}/numa_node");
        // As the driver spells it.
        let spelled = &*GPU.to_uppercase();
        // The nodes with memory and the GPU's, as the kernel gives them; the setting, and the device in use.
        for (nodes, asked, device, expected) in [
            (Some(("0-1", "1")), Off, None, Choice::Leave),
            (Some(("0-1", "1")), Auto, Some(spelled), Choice::Node(1)),
            (Some(("0-1", "1")), Node(0), Some(spelled), Choice::Node(0)),
            (Some(("0", "0")), Auto, Some(GPU), one()),
            (Some(("0", "0")), Node(0), Some(GPU), one()),
            (None, Node(0), Some(GPU), none()),
            (None, Auto, Some(GPU), one()),
            (None, Node(3), None, cannot("no node 3 has memory here (those that have: none)")),
            (Some(("0,2", "-1")), Node(1), None, cannot("no node 1 has memory here (those that have: 0, 2)")),
            (Some(("0,2", "-1")), Auto, Some(GPU), cannot("the node of device 0000:1b:00.0 is not known")),
            (Some(("0,2", "-1")), Auto, None, cannot("the device in use is not known")),
        ] {
            let files = nodes.map(|(with_memory, gpus)| [(HAS_MEMORY, with_memory), (&*of_gpu, gpus)]);
            let (machine, _folder) = made_up(files.as_ref().map_or(&[], |it| it));
            let found = choose(asked, &machine, || {
                assert_ne!(asked, Off, "the driver was asked");
                device.map(str::to_owned)
            });
            assert_eq!(found, expected, "{asked:?} on {nodes:?}");
        }
    }

    /// No machine has so many nodes; the second is beyond what the kernel can be asked for.
    #[test]
    fn a_node_that_the_kernel_refuses_is_an_error_that_names_it() {
        let mapping = Mapping::new(pages::sizes().page, Pages::Small, Fork::Share).unwrap();
        for node in [1023, 1 << 20] {
            let why = bind(&mapping, node).unwrap_err();
            let named = format!("the kernel does not allow node {node}: ");
            assert!(why.starts_with(&named), "{why}");
        }
        mapping.unmap().unwrap();
    }

    #[test]
    fn a_region_lies_where_most_of_it_does() {
        let lies = most(&[Some(1), Some(0), Some(1), None]);
        assert_eq!(lies, Some(Lies { node: 1, percent: 50 }));
        assert_eq!(most(&[None, None]), None);
        assert_eq!(most(&[]), None);
    }
}
