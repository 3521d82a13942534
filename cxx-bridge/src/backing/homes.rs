//! Homes of memory: with `BUDDY_NUMA=auto` on a machine of several nodes, the nodes of the devices that requests
//! come from.
//!
//! A home is numbered when its first device is seen. Devices whose node is not known have one of their own, and the
//! kernel decides there. Knows no region. Invariant: a device has one home for as long as the process lives.

use pinbuddy_core::Home;

use super::Device;
use super::machine::Machine;
use super::numa::{self, Choice};
use crate::config::memory::{Numa, Way};
use crate::lock::Lock;

/// More homes are not told apart: as many as the allocator has thread caches.
const MOST: usize = 16;

/// A device that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What is pinned for it lies on its node.
    pub device: Device,
    /// The NUMA node, if that is known.
    pub node: Option<u32>,
    home: Home,
}

#[cfg(test)]
impl Seen {
    /// A device on this node, whose home has the node's number.
    pub(crate) fn of(device: Device, node: u32) -> Self {
        Self { device, node: Some(node), home: Home(node as u8) }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Homes {
    /// How many there can be, a power of two.
    most: usize,
    machine: Machine,
    seen: Lock<Vec<Seen>>,
}

impl Homes {
    /// `None` where all memory has one home.
    pub(super) fn new(way: Way, asked: Numa, machine: &Machine) -> Option<Self> {
        // Where CUDA allocates, it chooses the node.
        if way == Way::Cuda || asked != Numa::Auto {
            return None;
        }
        let nodes = machine.nodes_of_devices();
        let most = nodes.len().min(MOST).next_power_of_two();
        (most > 1).then(|| Self { most, machine: machine.clone(), seen: Lock::default() })
    }

    /// How many there can be, a power of two.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The home of a device; `pci_address` is asked once a device, and outside the lock.
    pub(super) fn of(&self, device: Device, pci_address: impl FnOnce() -> Option<String>) -> Home {
        if device.0 < 0 {
            // No device is current, and what is asked for may be any one's.
            return Home::default();
        }
        if let Some(known) = self.find(|it| it.device == device) {
            return known.home;
        }
        let node = match numa::choose(Numa::Auto, &self.machine, pci_address) {
            Choice::Node(node) => Some(node),
            // The first region there says why.
            Choice::Leave | Choice::Nothing(_) | Choice::Cannot(_) => None,
        };
        let mut seen = self.seen.lock();
        if let Some(known) = seen.iter().find(|it| it.device == device) {
            return known.home;
        }
        let neighbour = seen.iter().find(|it| it.node == node).map(|it| it.home);
        let next = seen.iter().map(|it| usize::from(it.home.0) + 1).max();
        // More than there are nodes only if one of them is not known.
        let next = next.filter(|it| *it < self.most).unwrap_or(0);
        let home = neighbour.unwrap_or(Home(next as u8));
        seen.push(Seen { device, node, home });
        home
    }

    /// The first device that was seen of this home, rather one whose node is known.
    pub(super) fn at(&self, home: Home) -> Option<Seen> {
        let known = self.find(|it| it.home == home && it.node.is_some());
        known.or_else(|| self.find(|it| it.home == home))
    }

    fn find(&self, is_it: impl Fn(&Seen) -> bool) -> Option<Seen> {
        self.seen.lock().iter().copied().find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::tests::{HAS_MEMORY, made_up};
    use super::*;

    fn address(device: Device) -> String {
        format!("0000:{:02x}:00.0", device.0)
    }

    /// A machine of these nodes, and its devices' nodes as the kernel gives them.
    fn machine(nodes: &str, of_devices: &[&str]) -> (Machine, tempfile::TempDir) {
        let path = |n: usize| format!("sys/bus/pci/devices/{}/numa_node", address(Device(n as i32)));
        let paths: Vec<String> = (0..of_devices.len()).map(path).collect();
        let of_devices = paths.iter().map(String::as_str).zip(of_devices.iter().copied());
        let files: Vec<_> = [(HAS_MEMORY, nodes)].into_iter().chain(of_devices).collect();
        made_up(&files)
    }

    fn homes(homes: &Homes, devices: &[i32]) -> Vec<u8> {
        let of = |n: &i32| homes.of(Device(*n), || Some(address(Device(*n)))).0;
        devices.iter().map(of).collect()
    }

    /// The first device of a home, and its node.
    fn at(homes: &Homes, home: u8) -> Option<(i32, Option<u32>)> {
        let seen = homes.at(Home(home))?;
        Some((seen.device.0, seen.node))
    }

    #[test]
    fn a_home_is_a_node_in_the_order_of_the_first_devices() {
        let (four, _folder) = machine("0-3", &["0", "0", "1", "1", "2", "2", "3", "3"]);
        let it = Homes::new(Way::Auto, Numa::Auto, &four).unwrap();
        assert_eq!(it.most(), 4);
        assert_eq!(homes(&it, &[6, 0, 1, 7, 4, 2, 5, 3]), [0, 1, 1, 0, 2, 3, 2, 3]);
        let never = || -> Option<String> { panic!("the driver was asked again") };
        assert_eq!(it.of(Device(5), never), Home(2));
        assert_eq!(at(&it, 0), Some((6, Some(3))));
        assert_eq!(at(&it, 3), Some((2, Some(1))));
        assert_eq!(at(&it, 4), None);
    }

    #[test]
    fn no_device_has_no_home_of_its_own_and_devices_of_an_unknown_node_have_one() {
        let (two, _folder) = machine("0-1", &["-1", "-1", "1", "0"]);
        let it = Homes::new(Way::Auto, Numa::Auto, &two).unwrap();
        let never = || -> Option<String> { panic!("the driver was asked for it") };
        assert_eq!(it.of(Device(-1), never), Home(0));
        assert_eq!(at(&it, 0), None);
        assert_eq!(homes(&it, &[0, 1, 2]), [0, 0, 1]);
        assert_eq!((at(&it, 0), at(&it, 1)), (Some((0, None)), Some((2, Some(1)))));
        assert_eq!(homes(&it, &[3]), [0], "there are two");
        assert_eq!(at(&it, 0), Some((3, Some(0))), "the first has no node");
    }

    #[test]
    fn one_node_or_another_setting_makes_one_home() {
        let (one, _folder) = machine("0", &["0", "0"]);
        assert!(Homes::new(Way::Auto, Numa::Auto, &one).is_none());
        let (two, _folder) = machine("0-1", &["0", "1"]);
        for asked in [Numa::Off, Numa::Node(1)] {
            assert!(Homes::new(Way::Auto, asked, &two).is_none());
        }
        assert!(Homes::new(Way::Cuda, Numa::Auto, &two).is_none());
        let (three, _folder) = machine("0,2,4", &[]);
        assert_eq!(Homes::new(Way::Auto, Numa::Auto, &three).unwrap().most(), 4);
        let cpus = "sys/devices/system/node/has_cpu";
        for (of_processors, most) in [("0", None), ("0-1", Some(2)), ("0-2,4", Some(4))] {
            let (some, _folder) = made_up(&[(HAS_MEMORY, "0-2,8"), (cpus, of_processors)]);
            let homes = Homes::new(Way::Auto, Numa::Auto, &some);
            assert_eq!(homes.map(|it| it.most()), most);
        }
        let (many, _folder) = machine("0-99", &[]);
        assert_eq!(Homes::new(Way::Auto, Numa::Auto, &many).unwrap().most(), 16);
    }
}
