//! Regions of real memory, on made-up machines and on this one.

#![allow(unsafe_code)]

use std::fs;
use std::path::Path;

use pinbuddy_machine::{Shared, smaps};

use super::super::Foreground;
use super::super::machine::tests::{ENABLED, HAS_MEMORY, HERE, SHARED, made_up, with_pools};
use super::super::pages::sizes;
use super::*;
use crate::config::MIB;
use crate::config::of_pairs as read;

fn maker(variables: &[(&str, &str)], machine: Machine) -> Maker {
    let (config, warnings) = read(variables);
    assert!(warnings.is_empty(), "{warnings:?}");
    Maker::new(config.memory, 64 * MIB, machine)
}

/// The size of most of its pages, and how much of it has larger ones than the smallest.
fn pages(mapping: &Mapping, bytes: usize) -> (usize, usize) {
    let text = fs::read("/proc/self/smaps").unwrap();
    let range = mapping.base()..mapping.base() + mapping.len();
    let found = smaps::read(&*text, std::slice::from_ref(&range))[0];
    found.pages(bytes, sizes().page, sizes().large).unwrap()
}

/// The flags of the area at this address, as the kernel abbreviates them.
fn flags(address: usize) -> Option<String> {
    let text = fs::read_to_string("/proc/self/smaps").unwrap();
    let (_, rest) = text.split_once(&format!("{address:x}-"))?;
    let line = rest.lines().find_map(|it| it.strip_prefix("VmFlags:"))?;
    Some(line.to_owned())
}

fn made(maker: &Maker, bytes: usize) -> Mapping {
    maker.make(bytes, Source::Ordinary, &Foreground, || None).unwrap().mapping
}

#[test]
fn a_region_is_all_there_shared_with_children_or_kept_from_them() {
    let (machine, _folder) = made_up(&[(ENABLED, HERE)]);
    for (asked, fork) in [("off", "share"), ("thp", "share"), ("off", "hide"), ("thp", "hide")] {
        let asks = [("BUDDY_HUGE_PAGES", asked), ("BUDDY_FORK", fork)];
        let maker = maker(&asks, machine.clone());
        let mapping = made(&maker, 5 * MIB + 1);
        assert_eq!(mapping.len(), 5 * MIB + sizes().page);
        let unit = if asked == "thp" { sizes().large } else { sizes().page };
        assert_eq!(mapping.base() % unit, 0);
        let flags = flags(mapping.base()).unwrap();
        let has = |flag: &str| flags.split_whitespace().any(|it| it == flag);
        assert!(has("dd"), "in core dumps:{flags}");
        assert_eq!(has("sh"), fork == "share", "shared:{flags}");
        assert_eq!(has("dc"), fork == "hide", "not in children:{flags}");
        assert_eq!(maker.hides(), fork == "hide");
        let (page, huge) = pages(&mapping, mapping.len());
        if asked == "off" {
            assert_eq!((page, huge), (sizes().page, 0));
        }
        let lies = numa::where_it_lies(mapping.base(), mapping.len());
        assert!(lies.is_none_or(|it| it.percent == 100), "{lies:?}");
        mapping.unmap().unwrap();
    }
}

#[test]
fn a_kernel_that_puts_nothing_together_gives_shared_memory_in_pages_of_4_kib() {
    let never = [(ENABLED, "[madvise]"), (SHARED, "[never]")];
    let (machine, _folder) = made_up(&never);
    let old = Machine { collapses: false, ..machine.clone() };
    let small = made(&maker(&[], old), 6 * MIB);
    assert_eq!(pages(&small, 6 * MIB), (sizes().page, 0));
    small.unmap().unwrap();
    if Machine::here().shared() == Shared::Collapsed {
        let maker = maker(&[], machine);
        // The kernel collapses all of it, or a part if memory is fragmented.
        let huge = made(&maker, 64 * MIB + sizes().page);
        let (_, bytes) = pages(&huge, 64 * MIB + sizes().page);
        assert!(bytes == 64 * MIB || !maker.said.has_said_nothing(), "{bytes}");
        huge.unmap().unwrap();
    }
}

#[test]
fn neighbours_stay_areas_of_their_own() {
    let (machine, _folder) = made_up(&[]);
    let maker = maker(&[("BUDDY_HUGE_PAGES", "off")], machine);
    for mapping in [(); 3].map(|()| made(&maker, MIB)) {
        let text = fs::read_to_string("/proc/self/maps").unwrap();
        let (start, end) = (mapping.base(), mapping.base() + mapping.len());
        assert!(text.contains(&format!("{start:x}-{end:x} rw-s")), "{text}");
        mapping.unmap().unwrap();
    }
}

#[test]
fn pages_that_the_pool_says_it_has_and_has_not_fall_back() {
    let real = Machine::here().pool(Pages::Large).map_or(0, |it| it.free + it.more);
    let (machine, _folder) = with_pools([(2048, real + 100_000, 0)], "[never]");
    let maker = maker(&[("BUDDY_HUGE_PAGES", "2M")], machine);
    let bytes = (real + 2) * sizes().large;
    if real < 100 {
        let mapping = made(&maker, bytes);
        assert_eq!(pages(&mapping, bytes), (sizes().page, 0));
        mapping.unmap().unwrap();
    }
    assert!(maker.make(bytes, Source::SetAside, &Foreground, || None).is_err());
}

#[test]
fn more_than_there_is_is_not_touched() {
    // A control group of 64 MiB of which 40 are in use, on a large machine.
    let (machine, _folder) = made_up(&[
        ("proc/meminfo", "MemAvailable: 4000000000 kB\n"),
        ("proc/self/cgroup", "0::/job\n"),
        ("sys/fs/cgroup/job/memory.max", "67108864\n"),
        ("sys/fs/cgroup/job/memory.current", "41943040\n"),
    ]);
    let maker = maker(&[], machine);
    let why = maker.make(24 * MIB, Source::Ordinary, &Foreground, || None).unwrap_err();
    let Refusal::Short(why) = why else { panic!("{why:?}") };
    assert_eq!(why, "24 MiB is left of memory that the control group leaves");
    made(&maker, 16 * MIB).unmap().unwrap();
}

#[test]
fn a_node_that_does_not_exist_leaves_memory_where_it_is() {
    // The machine says two nodes, and the kernel allows one.
    let (machine, _folder) = made_up(&[(HAS_MEMORY, "0,63"), (ENABLED, "[madvise]")]);
    for node in ["7", "63", "0", "auto"] {
        let maker = maker(&[("BUDDY_NUMA", node)], machine.clone());
        let mapping = made(&maker, MIB);
        assert!(node == "0" || !maker.said.has_said_nothing(), "{node}");
        mapping.unmap().unwrap();
    }
}

#[test]
fn huge_pages_go_back_to_the_pool() {
    let free = || -> Option<usize> {
        let text = fs::read_to_string(Path::new("/proc/meminfo")).ok()?;
        let line = text.lines().find_map(|it| it.strip_prefix("HugePages_Free:"))?;
        line.trim().parse().ok()
    };
    let Some(before) = free().filter(|it| *it >= 4) else {
        // This machine has set none aside; `tests/python/test_backing.py` tries to.
        return;
    };
    let maker = maker(&[("BUDDY_HUGE_PAGES", "2M")], Machine::here());
    let mapping = made(&maker, 4 * sizes().large);
    let all = 4 * sizes().large;
    assert_eq!(pages(&mapping, all), (sizes().large, all));
    assert_eq!(free(), Some(before - 4));
    mapping.unmap().unwrap();
    assert_eq!(free(), Some(before));
}
