//! How much memory the engine may pin, and which limit decides that.
//!
//! The rule is the engine's (cxx-bridge/src/budget): half of the least limit that `pinbuddy-machine` reads, a quarter where a
//! GPU has its memory from there, plus free reserved huge pages, which `pages` shows.

use serde::Serialize;

use super::finding::Finding;
use super::setting::Setting;
use crate::show::size;
use pinbuddy_machine::{Cgroup, Files, Limit, Limits, LockLimit, Of};

/// Blocks of 1 GiB that a warm-up should be able to pin.
const BLOCKS: u64 = 8;
const BLOCK: u64 = 1 << 30;

/// See the module's documentation.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    #[serde(flatten)]
    pub limits: Limits,
    /// What one process may pin, in bytes.
    pub budget: Option<u64>,
    /// The limit that decides.
    #[serde(skip)]
    deciding: Option<Limit>,
}

impl Memory {
    /// Reads it all.
    pub(super) fn read(files: &Files, shared_with_gpus: bool) -> Self {
        let limits = Limits { shared_with_gpus, ..Limits::read(files) };
        let deciding = limits.all().min_by_key(part);
        Self { limits, budget: deciding.as_ref().map(part), deciding }
    }

    /// Whether `bytes` can be reserved for huge pages without starving the rest. Neither the lock limit nor a
    /// memory control group counts these pools.
    pub(super) fn affords(&self, bytes: u64) -> bool {
        self.limits.available.is_none_or(|it| it / 2 >= bytes)
    }

    /// The size of such a warm-up, in bytes.
    pub(super) const fn warm_up() -> u64 {
        BLOCKS * BLOCK
    }

    /// Judges each limit, and the budget; `gpus` is how many processes torchrun would start here.
    pub(super) fn findings(&self, setting: Setting, gpus: usize) -> Vec<Finding> {
        vec![self.machine(), self.group(setting), self.lock(setting), self.allowance(gpus)]
    }

    fn machine(&self) -> Finding {
        let shown = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), size);
        let (available, total) = (shown(self.limits.available), shown(self.limits.total));
        Finding::ok("available", format!("{available} of {total}"))
    }

    fn group(&self, setting: Setting) -> Finding {
        let Some(group) = &self.limits.cgroup else {
            return Finding::ok("cgroup", "no limit");
        };
        let bytes = [group.left(), group.limit, group.used, group.cache];
        let ([left, limit, used, cache], version) = (bytes.map(size), group.version);
        let value = format!("{left} left: limit {limit} (v{version}), {used} in use, {cache} of it cache");
        // A multiple of the warm-up, since the budget is a part, plus what is in use.
        let left = parts(self.limits.shared_with_gpus) * Self::warm_up();
        if group.left() >= left {
            return Finding::ok("cgroup", value);
        }
        let wanted = group.used - group.cache.min(group.used) + left;
        let wanted = wanted.div_ceil(BLOCK);
        let finding = Finding::note("cgroup", value);
        let update = format!("docker update --memory={wanted}g --memory-swap={wanted}g CONTAINER");
        match setting.container {
            true => finding.host(update),
            false => finding.root(format!("echo {wanted}G > {}", group.file)),
        }
    }

    fn lock(&self, setting: Setting) -> Finding {
        let name = "memlock";
        let Some(soft) = self.limits.lock.soft else {
            return Finding::ok(name, "unlimited");
        };
        let shown = size(soft);
        if self.limits.lock.may_lock_all {
            return Finding::ok(name, format!("{shown}, passed by CAP_IPC_LOCK"));
        }
        if soft >= parts(false) * Self::warm_up() {
            return Finding::ok(name, shown);
        }
        if soft <= LockLimit::DEFAULT {
            let why = "the default, which CUDA's driver passes; the simulator cannot";
            return Finding::ok(name, format!("{shown}, {why}"));
        }
        let value = format!("{shown}, and no CAP_IPC_LOCK to pass it");
        let finding = Finding::note(name, value);
        if self.limits.lock.hard.is_none() {
            finding.run("ulimit -l unlimited")
        } else if setting.container {
            finding.host("docker run --ulimit memlock=-1 …")
        } else {
            finding.run("sudo prlimit --pid $$ --memlock=unlimited")
        }
    }

    fn allowance(&self, gpus: usize) -> Finding {
        let name = "budget";
        let Some(limit) = &self.deciding else {
            return Finding::ok(name, "no limit is known");
        };
        let what = match limit.of {
            Of::Machine => "what is available",
            Of::Group => "what the cgroup leaves",
            Of::Process => "memlock",
        };
        let budget = part(limit);
        let mut value = size(budget);
        value += &match limit.of_gpus_too {
            true => format!(" may be pinned, a quarter of {what}, as it is the GPU's, too"),
            false => format!(" may be pinned, half of {what}"),
        };
        if gpus > 1 {
            let share = size(budget / gpus as u64);
            value += &format!("; {share} by each of {gpus} ranks");
        }
        let blocks = budget / BLOCK;
        if blocks >= BLOCKS {
            return Finding::ok(name, value);
        }
        value += &format!("; the warm-up's {BLOCKS} blocks of 1 GiB do not fit");
        Finding::note(name, value).run(match (limit.of, (budget >> 20) / BLOCKS) {
            // As far as is known, the driver ignores this limit; only the engine keeps to it.
            (Of::Process, _) if self.beside_lock() > budget => {
                format!("export BUDDY_MAX_MB={}", self.beside_lock() >> 20)
            }
            _ if blocks > 0 => format!("export BUDDY_BLOCK_COUNT={blocks}"),
            (_, smaller @ 16..) => format!("export BUDDY_BLOCK_SIZE_MB={}", smaller & !1),
            _ => "export BUDDY_WARMUP=off BUDDY_GROWTH=exact".to_owned(),
        })
    }

    /// The budget without the lock limit.
    fn beside_lock(&self) -> u64 {
        self.left().unwrap_or(0) / parts(self.limits.shared_with_gpus)
    }

    /// Memory of processes that pin nothing, in bytes.
    pub(super) fn left(&self) -> Option<u64> {
        let group = self.limits.cgroup.as_ref().map(Cgroup::left);
        self.limits.available.into_iter().chain(group).min()
    }
}

/// One of so many parts may be pinned.
fn parts(of_gpus_too: bool) -> u64 {
    if of_gpus_too { 4 } else { 2 }
}

/// What may be pinned under a limit, in bytes.
fn part(limit: &Limit) -> u64 {
    limit.bytes / parts(limit.of_gpus_too)
}
