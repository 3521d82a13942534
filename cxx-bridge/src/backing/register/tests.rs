//! The chain with a driver that refuses when a test asks it to.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use super::super::Foreground;
use super::super::machine::tests::{HERE, made_up, with_pools};
use super::super::mapping::lead;
use super::*;
use crate::config::MIB;
use crate::config::of_pairs as read;
use crate::sync::Dial;

/// A driver that keeps registrations in a list, and hands out numbers as allocations.
#[derive(Debug, Default)]
pub(in crate::backing) struct Fake {
    pub(in crate::backing) registered: Mutex<Vec<Region>>,
    segments: Mutex<Vec<Region>>,
    allocated: Mutex<Vec<Region>>,
    refuses_to_register: Dial<bool>,
    pub(in crate::backing) refuses_to_unregister: Dial<bool>,
    pub(in crate::backing) sees_it_elsewhere: Dial<bool>,
    refuses_to_allocate: Dial<bool>,
    /// It registers only what one mapping holds.
    pub(super) takes_one_mapping: Dial<bool>,
    unpins: Dial<usize>,
}

impl Driver for Fake {
    fn available(&self) -> bool {
        true
    }

    fn device(&self) -> Device {
        Device(0)
    }

    fn initialise(&self, _: Device) -> Result<(), String> {
        Ok(())
    }

    fn pci_address(&self, _device: Device) -> Option<String> {
        None
    }

    fn pin(&self, bytes: usize, _device: Device) -> Result<usize, String> {
        if self.refuses_to_allocate.get() {
            return Err("CUDA error: out of memory".to_owned());
        }
        let mut allocated = self.allocated.lock().unwrap();
        let base = 0x1000_0000 * (allocated.len() + 1);
        allocated.push(Region { base, bytes });
        Ok(base)
    }

    fn unpin(&self, region: Region) -> Result<(), String> {
        let mut allocated = self.allocated.lock().unwrap();
        let at = allocated.iter().position(|it| *it == region).ok_or("never allocated")?;
        allocated.swap_remove(at);
        Ok(())
    }

    fn register(&self, region: Region, _device: Device) -> Result<(), String> {
        if self.takes_one_mapping.get() && is_mapped(region.base + lead()) {
            return Err("CUDA error: invalid argument".to_owned());
        }
        if self.refuses_to_register.get() {
            return Err("CUDA error: operation not permitted".to_owned());
        }
        self.registered.lock().unwrap().push(region);
        Ok(())
    }

    fn check(&self, _region: Region) -> Result<(), String> {
        let elsewhere = self.sees_it_elsewhere.get();
        let why = || "CUDA error: invalid argument".to_owned();
        elsewhere.then(why).map_or(Ok(()), Err)
    }

    fn unregister(&self, region: Region) -> Result<(), String> {
        if self.refuses_to_unregister.get() {
            return Err("CUDA error: unspecified launch failure".to_owned());
        }
        let mut registered = self.registered.lock().unwrap();
        let at = registered.iter().position(|it| *it == region).ok_or("not registered")?;
        registered.swap_remove(at);
        Ok(())
    }

    fn pinned(&self, region: Region, _taken: Duration) {
        self.segments.lock().unwrap().push(region);
    }

    fn goes(&self, region: Region) {
        self.segments.lock().unwrap().retain(|it| *it != region);
    }

    fn gone(&self, _taken: Duration) {
        self.unpins.add(1);
    }
}

impl Fake {
    pub(super) fn registers(&self, succeeds: bool) {
        self.refuses_to_register.set(!succeeds);
    }

    /// How many regions it allocated.
    pub(super) fn allocated(&self) -> usize {
        self.allocated.lock().unwrap().len()
    }

    pub(super) fn refuses_to_allocate(&self) {
        self.refuses_to_allocate.set(true);
    }

    /// From now on every call fails.
    pub(super) fn is_gone(&self) {
        self.registers(false);
        self.refuses_to_allocate();
    }

    /// Whether it has nothing, and no report was made to it.
    pub(super) fn is_as_new(&self) -> bool {
        let lists = [&self.registered, &self.segments, &self.allocated];
        let are_empty = lists.into_iter().all(|it| it.lock().unwrap().is_empty());
        are_empty && self.unpins.get() == 0
    }
}

pub(super) fn pin(chain: &Chain<Fake>, bytes: usize) -> Region {
    let pinned = chain.pin(bytes, DEVICE, Source::Ordinary, &Foreground);
    Region { base: pinned.unwrap().base, bytes }
}

/// Whether a region is mapped, as others before it.
fn maps_others(chain: &Chain<Fake>) -> bool {
    let region = pin(chain, MIB);
    let is_mapped = is_mapped(region.base);
    chain.unpin(region).unwrap();
    is_mapped
}

pub(super) fn chain(variables: &[(&str, &str)]) -> Chain<Fake> {
    chain_on(&made_up(&[]).0, variables)
}

/// A chain with these settings on a machine whose files are there as long as they are needed.
pub(super) fn chain_on(machine: &Machine, variables: &[(&str, &str)]) -> Chain<Fake> {
    let (config, warnings) = read(variables);
    assert!(warnings.is_empty(), "{warnings:?}");
    Chain::on(machine.clone(), &config, Fake::default())
}

/// Why a pin of such memory fails.
fn refusal(chain: &Chain<Fake>, bytes: usize, source: Source) -> String {
    let refusal = chain.pin(bytes, DEVICE, source, &Foreground).unwrap_err();
    refusal.to_string()
}

pub(super) fn is_mapped(base: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.starts_with(&format!("{base:x}-")))
}

pub(in crate::backing) const DEVICE: Device = Device(0);
// Of a length that no other test's areas have.
const BYTES: usize = 3 * MIB + 5 * 4096;

/// How many areas are as long, to the byte, as a region of `bytes`.
pub(super) fn areas(bytes: usize) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let length = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |it| usize::from_str_radix(it, 16).ok();
        Some(number(end)? - number(start)?)
    };
    let as_long = |line: &&str| length(line) == Some(bytes);
    maps.lines().filter(as_long).count()
}

#[test]
fn memory_is_mapped_registered_and_unpinned_whole() {
    for way in ["auto", "pages"] {
        let chain = chain(&[("BUDDY_BACKING", way)]);
        let region @ Region { base, bytes } = pin(&chain, 2 * MIB);
        let registered = Region { base: base - lead(), bytes: bytes + lead() };
        assert_eq!(*chain.driver.registered.lock().unwrap(), [registered]);
        assert_eq!(*chain.driver.segments.lock().unwrap(), [region]);
        let (placement, again) = (chain.placements(&[region]), chain.placements(&[region]));
        assert_eq!(placement, again);
        assert_eq!(placement[0].backing, "pages");
        assert_eq!(placement[0].page_bytes, Some(4096), "the made-up machine has no others");
        assert!(is_mapped(base));
        chain.unpin(region).unwrap();
        assert!(!is_mapped(base) && chain.driver.registered.lock().unwrap().is_empty());
        assert!(chain.driver.segments.lock().unwrap().is_empty());
        assert_eq!(chain.driver.unpins.get(), 1);
        assert!(chain.regions.lock().is_empty());
    }
}

#[test]
fn what_cannot_be_registered_is_unmapped_and_allocated_from_then_on() {
    let chain = chain(&[]);
    let first = pin(&chain, MIB);
    chain.driver.registers(false);
    let second = pin(&chain, BYTES);
    assert_eq!(areas(BYTES), 0, "still mapped");
    chain.driver.registers(true);
    let third = pin(&chain, MIB);
    assert_eq!(chain.driver.allocated(), 2, "the chain does not go back");
    // Each is unpinned in the way that it was pinned.
    for region in [first, second, third] {
        chain.unpin(region).unwrap();
    }
    assert_eq!(chain.driver.allocated(), 0);
    assert!(chain.driver.registered.lock().unwrap().is_empty());
}

#[test]
fn where_neither_works_the_pin_is_refused_and_nothing_is_decided() {
    let chain = chain(&[]);
    chain.driver.registers(false);
    chain.driver.refuses_to_allocate();
    let refusal = refusal(&chain, MIB, Source::Ordinary);
    assert!(refusal.contains("out of memory"), "{refusal}");
    chain.driver.registers(true);
    assert!(maps_others(&chain));
}

#[test]
fn what_cannot_be_unregistered_stays_mapped() {
    let chain = chain(&[]);
    let region = pin(&chain, MIB);
    let refuses = &chain.driver.refuses_to_unregister;
    refuses.set(true);
    assert!(chain.unpin(region).unwrap_err().contains("launch failure"));
    assert!(is_mapped(region.base), "a device may still write to it");
    // It is still known, and goes as soon as the driver lets it.
    refuses.set(false);
    assert!(chain.unpin(region).is_ok() && !is_mapped(region.base));
}

#[test]
fn memory_that_cannot_be_mapped_is_refused_like_a_region_too_long() {
    let made = chain(&[]).make(1 << 50, DEVICE, Source::Ordinary, &Foreground);
    let Err(Refusal::NotThis(why)) = made else { panic!("{made:?}") };
    assert!(why.contains("could not map 1"), "{why}");
}

const LONG: usize = 512 << 30;

#[test]
fn cuda_allocates_where_that_is_asked_for_or_a_region_is_too_long_for_a_registration() {
    let asked = chain(&[("BUDDY_BACKING", "cuda")]);
    let region = pin(&asked, MIB);
    assert_eq!(asked.placements(&[region]), [Placement::CUDA]);
    asked.unpin(region).unwrap();
    assert_eq!(asked.driver.allocated(), 0);
    let chain = chain(&[]);
    let region = pin(&chain, LONG);
    assert_eq!(chain.driver.allocated(), 1);
    chain.unpin(region).unwrap();
    assert!(maps_others(&chain));
}

#[test]
fn memory_that_is_not_there_is_not_asked_of_cuda_either() {
    let (machine, _folder) = made_up(&[("proc/meminfo", "MemAvailable: 8192 kB\n")]);
    let chain = chain_on(&machine, &[]);
    assert_eq!(refusal(&chain, 16 * MIB, Source::Ordinary), "8 MiB is left of MemAvailable");
    assert_eq!(chain.driver.allocated(), 0);
    assert!(maps_others(&chain));
}

#[test]
fn what_is_set_aside_is_offered_until_cuda_has_to_allocate() {
    let (machine, _folder) = with_pools([(2048, 1024, 0)], HERE);
    let offered = |variables: &[(&str, &str)]| {
        let chain = chain_on(&machine, variables);
        (chain.source(1 << 30), chain.set_aside(1 << 30), chain)
    };
    let nothing = (Source::Ordinary, 0);
    let (source, bytes, chain) = offered(&[]);
    assert_eq!((source, bytes), (Source::SetAside, 2 << 30));
    chain.fallen.store(true, Ordering::Relaxed);
    assert_eq!((chain.source(1 << 30), chain.set_aside(1 << 30)), nothing);
    let refusal = refusal(&chain, MIB, Source::SetAside);
    assert!(refusal.contains("set aside"), "{refusal}");
    for other in [("BUDDY_BACKING", "cuda"), ("BUDDY_HUGE_PAGES", "thp")] {
        let (source, bytes, _) = offered(&[other]);
        assert_eq!((source, bytes), nothing);
    }
}

#[test]
fn a_pool_that_does_not_keep_its_promise_is_left_alone_for_a_moment() {
    let (machine, _folder) = with_pools([(1 << 20, 1 << 40, 0)], HERE);
    let chain = chain_on(&machine, &[]);
    // More than any machine has.
    let bytes = 1 << 46;
    assert_eq!(chain.source(bytes), Source::SetAside);
    refusal(&chain, bytes, Source::SetAside);
    assert_eq!(chain.driver.allocated(), 0, "CUDA's is ordinary");
    assert_eq!(chain.source(bytes), Source::Ordinary);
}
