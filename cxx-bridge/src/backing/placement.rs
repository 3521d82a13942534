//! Where a region's memory lies: its backing, its pages as the kernel reports them, its node.
//!
//! Reads `/proc/self/smaps`, which takes milliseconds and the kernel's lock on the address space: only
//! for reports, once a region, never while memory is being pinned.

use std::fs::File;
use std::io::BufReader;

use pinbuddy_core::Region;
use pinbuddy_machine::smaps;

use super::numa;
use super::pages;

/// A region's placement, as in the statistics. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `cuda` or `pages`.
    pub backing: &'static str,
    /// The size of most of its pages, if known.
    pub page_bytes: Option<usize>,
    /// How much of it has pages of more than the smallest size, if known.
    pub huge_bytes: Option<usize>,
    /// The NUMA node of all of it, if that is known and only one.
    pub numa_node: Option<u32>,
}

impl Placement {
    /// Memory that CUDA allocated: nothing else is known of it.
    pub(super) const CUDA: Self = Self { backing: "cuda", page_bytes: None, huge_bytes: None, numa_node: None };
}

/// The placement of these regions of our own, in their order.
pub(super) fn look(regions: &[Region]) -> Vec<Placement> {
    let ranges: Vec<_> = regions.iter().map(|it| it.base..it.base + it.bytes).collect();
    let found =
        File::open("/proc/self/smaps").map(|file| smaps::read(BufReader::new(file), &ranges)).unwrap_or_default();
    let placement = |(n, region): (usize, &Region)| {
        let sizes = pages::sizes();
        let pages = found.get(n).and_then(|it| it.pages(region.bytes, sizes.page, sizes.large));
        let lies = numa::where_it_lies(region.base, region.bytes);
        Placement {
            backing: "pages",
            page_bytes: pages.map(|(page, _)| page),
            huge_bytes: pages.map(|(_, huge)| huge),
            numa_node: lies.filter(|it| it.percent == 100).map(|it| it.node),
        }
    };
    regions.iter().enumerate().map(placement).collect()
}
