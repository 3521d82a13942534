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
    use super::super::machine::tests::made_up;
    use super::*;
    use crate::config::memory::Fork;
    use pages::Pages;

    const HAS_MEMORY: &str = "sys/devices/system/node/has_memory";
    const GPU: &str = "0000:1b:00.0";

    fn machine(nodes: &str, of_gpu: &str) -> (Machine, tempfile::TempDir) {
        let gpu = format!("sys/bus/pci/devices/{GPU}/numa_node");
        made_up(&[(HAS_MEMORY, nodes), (&gpu, of_gpu)])
    }

    #[test]
    fn off_nothing_is_asked() {
        let (machine, _folder) = machine("0-1", "1");
        let never = || -> Option<String> { panic!("the driver was asked") };
        assert_eq!(choose(Numa::Off, &machine, never), Choice::Leave);
    }

    #[test]
    fn the_devices_own_node_or_the_one_that_was_asked_for() {
        let (two, _folder) = machine("0-1", "1");
        // As the driver spells it.
        let gpu = || Some(GPU.to_uppercase());
        assert_eq!(choose(Numa::Auto, &two, gpu), Choice::Node(1));
        assert_eq!(choose(Numa::Node(0), &two, gpu), Choice::Node(0));
    }

    #[test]
    fn one_node_is_nothing_to_choose_from() {
        let (one, _folder) = machine("0", "0");
        let gpu = || Some(GPU.to_owned());
        let nothing = Choice::Nothing("this machine has one NUMA node");
        assert_eq!(choose(Numa::Auto, &one, gpu), nothing);
        assert_eq!(choose(Numa::Node(0), &one, gpu), nothing);
        let (none, _folder) = made_up(&[]);
        assert!(matches!(choose(Numa::Node(0), &none, gpu), Choice::Nothing(_)));
        assert!(matches!(choose(Numa::Auto, &none, gpu), Choice::Nothing(_)));
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        let (two, _folder) = machine("0,2", "-1");
        let said = |asked, pci: Option<&str>| match choose(asked, &two, || pci.map(str::to_owned)) {
            Choice::Cannot(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(said(Numa::Node(1), None), "no node 1 has memory here (those that have: 0, 2)");
        assert_eq!(said(Numa::Auto, Some(GPU)), "the node of device 0000:1b:00.0 is not known");
        assert_eq!(said(Numa::Auto, None), "the device in use is not known");
        let (none, _folder) = made_up(&[]);
        assert_eq!(
            choose(Numa::Node(3), &none, || None),
            Choice::Cannot("no node 3 has memory here (those that have: none)".to_owned())
        );
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
