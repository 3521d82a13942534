//! Pools of huge pages that an administrator has reserved, by size and node.

use serde::Serialize;

use super::finding::Finding;
use super::memory::Memory;
use super::setting::Setting;
use crate::show::size;
use pinbuddy_machine::{self as machine, Files, POOLS, is_node, kib_field, page_bytes};

const MIB2: u64 = 2 << 20;
const GIB1: u64 = 1 << 30;

#[derive(Debug, Serialize)]
pub(super) struct HugePages {
    /// By page size, smallest first; only sizes that the processor has.
    pub pools: Vec<Pool>,
    /// The smallest pages' size, in bytes.
    pub page: u64,
    /// The page size that `vm.nr_hugepages` counts, in bytes.
    pub default: Option<u64>,
}

/// The pages of one size.
#[derive(Debug, Serialize)]
pub(super) struct Pool {
    /// In bytes.
    pub page: u64,
    /// On the whole machine.
    #[serde(flatten)]
    pub count: machine::Pool,
    /// By node, if there are several.
    pub nodes: Vec<OnNode>,
}

/// A node's part of a pool.
#[derive(Debug, Serialize)]
pub(super) struct OnNode {
    /// `node0`.
    pub node: String,
    /// Its pages.
    #[serde(flatten)]
    pub count: machine::Pool,
}

impl HugePages {
    /// Reads the pools.
    pub(super) fn read(files: &Files) -> Self {
        let mut nodes = files.names("sys/devices/system/node");
        nodes.retain(|it| is_node(it));
        let pool = |name: &String| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let in_node = |node: &String| {
                let folder = format!("sys/devices/system/node/{node}/hugepages/{name}");
                let (node, count) = (node.clone(), count(files, &folder));
                OnNode { node, count }
            };
            Some(Pool {
                page: kib.parse::<u64>().ok()? << 10,
                count: count(files, &format!("{POOLS}/{name}")),
                nodes: match nodes.len() {
                    0 | 1 => Vec::new(),
                    _ => nodes.iter().map(in_node).collect(),
                },
            })
        };
        let mut pools: Vec<_> = files.names(POOLS).iter().filter_map(pool).collect();
        pools.sort_by_key(|pool| pool.page);
        let info = files.text("proc/meminfo").unwrap_or_default();
        let default = kib_field(&info, "Hugepagesize:");
        let page = page_bytes(files) as u64;
        Self { pools, page, default }
    }

    /// Judges the sizes and each pool. `transparent`: whether the kernel makes huge pages by itself, so that no
    /// pool is needed.
    pub(super) fn findings(&self, memory: &Memory, setting: Setting, transparent: bool) -> Vec<Finding> {
        let sizes = self.pools.iter().map(|pool| size(pool.page));
        let sizes: Vec<_> = std::iter::once(size(self.page)).chain(sizes).collect();
        let mut findings = vec![Finding::ok("page sizes", sizes.join(", "))];
        for pool in &self.pools {
            let finding = match (pool.page, pool.count.total) {
                (GIB1, 0) => Finding::ok(pool.name(), "none set aside; smaller ones are enough"),
                (page, 0) if page != MIB2 => continue,
                (_, 0) => self.empty(pool, memory, setting, transparent),
                _ => self.filled(pool, memory, setting),
            };
            findings.push(finding);
        }
        findings
    }

    fn empty(&self, pool: &Pool, memory: &Memory, setting: Setting, transparent: bool) -> Finding {
        let value = match transparent {
            true => "none set aside; transparent ones stand in",
            false => "none set aside",
        };
        let wanted = Memory::warm_up();
        if !memory.affords(wanted) {
            return Finding::ok(pool.name(), value);
        }
        let (finding, pages) = (Finding::note(pool.name(), value), wanted.div_ceil(pool.page));
        self.reserve(finding, pool, pages, setting)
    }

    fn filled(&self, pool: &Pool, memory: &Memory, setting: Setting) -> Finding {
        let machine::Pool { total, free, .. } = pool.count;
        let bytes = pool.free();
        let mut value = format!("{free} of {total} free");
        if free > 0 {
            value += &format!(" ({} on top of the budget)", size(bytes));
        }
        for (number, OnNode { node, count }) in pool.nodes.iter().enumerate() {
            let separator = if number == 0 { ":" } else { "," };
            let node = node.trim_start_matches("node");
            value += &format!("{separator} {} on node {node}", count.free);
        }
        let most = pool.nodes.iter().map(|it| it.count.total).max();
        let most = most.unwrap_or(0);
        if let Some(OnNode { node, .. }) = pool.nodes.iter().find(|it| it.count.total == 0)
            && memory.affords((most as u64).saturating_mul(pool.page))
        {
            let folder = format!("/sys/devices/system/node/{node}/hugepages");
            let command = format!("echo {most} > {folder}/{}/nr_hugepages", pool.folder());
            return Finding::note(pool.name(), value).machine_root(setting, command);
        }
        // One pool large enough for the warm-up is enough.
        let best = self.pools.iter().map(Pool::free).max().unwrap_or(0);
        let more = Memory::warm_up().saturating_sub(bytes);
        if best >= Memory::warm_up() || !memory.affords(more) {
            return Finding::ok(pool.name(), value);
        }
        let pages = total as u64 + more.div_ceil(pool.page);
        self.reserve(Finding::note(pool.name(), value), pool, pages, setting)
    }

    fn reserve(&self, finding: Finding, pool: &Pool, pages: u64, setting: Setting) -> Finding {
        let command = if self.default == Some(pool.page) {
            format!("sysctl vm.nr_hugepages={pages}")
        } else {
            format!("echo {pages} > /{POOLS}/{}/nr_hugepages", pool.folder())
        };
        finding.machine_root(setting, command)
    }
}

impl Pool {
    /// In bytes.
    fn free(&self) -> u64 {
        (self.count.free as u64).saturating_mul(self.page)
    }

    fn name(&self) -> String {
        format!("{} pages", size(self.page))
    }

    fn folder(&self) -> String {
        format!("hugepages-{}kB", self.page >> 10)
    }
}

/// The pages in a folder; none where there is no such pool.
fn count(files: &Files, folder: &str) -> machine::Pool {
    machine::Pool::read(files, folder).unwrap_or_default()
}
