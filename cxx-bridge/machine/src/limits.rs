//! What the kernel leaves: on the machine, in this process's control group, for locking.
//!
//! Knows no policy. A limit that cannot be read counts as none.

use serde::Serialize;

use crate::cgroup::Cgroup;
use crate::files::{Files, field, kib_field};
use crate::lock::LockLimit;

/// One limit, with its name for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is left under it, in bytes.
    pub bytes: u64,
    /// Its name for people.
    pub name: &'static str,
    /// Whose memory counts in it.
    pub of: Of,
    /// Whether GPUs take their own memory from it, too.
    pub of_gpus_too: bool,
}

/// Whose memory counts in a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// All memory on the machine.
    Machine,
    /// The memory of a control group.
    Group,
    /// This process's only; the kernel's number does not subtract what it has.
    Process,
}

/// The limits, in bytes; `None` if there is no such limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// `MemAvailable`: what the machine can give without swapping.
    pub available: Option<u64>,
    /// `MemTotal`: what the machine has.
    pub total: Option<u64>,
    /// The control group that leaves least, of this process's and all above it.
    pub cgroup: Option<Cgroup>,
    /// `RLIMIT_MEMLOCK`.
    #[serde(flatten)]
    pub lock: LockLimit,
    /// Whether the machine's memory is a GPU's, too. No file says so.
    pub shared_with_gpus: bool,
}

impl Limits {
    /// Reads the limits. Whether GPUs share the memory is left to the caller.
    pub fn read(files: &Files) -> Self {
        let meminfo = files.text("proc/meminfo").unwrap_or_default();
        Self {
            available: kib_field(&meminfo, "MemAvailable:"),
            total: kib_field(&meminfo, "MemTotal:"),
            cgroup: Cgroup::tightest(files),
            lock: LockLimit::read(files),
            shared_with_gpus: false,
        }
    }

    /// The limits that exist.
    pub fn all(&self) -> impl Iterator<Item = Limit> {
        let group = "memory that the control group leaves";
        let named = [
            (self.available, "MemAvailable", Of::Machine),
            (self.cgroup.as_ref().map(Cgroup::left), group, Of::Group),
            (self.lock.binding(), "RLIMIT_MEMLOCK", Of::Process),
        ];
        named.into_iter().filter_map(|(bytes, name, of)| {
            Some(Limit { bytes: bytes?, name, of, of_gpus_too: self.shared_with_gpus && of != Of::Process })
        })
    }

    /// The most that a process on the machine could ever have, and who has it: the machine's memory, or what
    /// its control groups allow, if that is less.
    pub fn whole(files: &Files) -> Option<(u64, &'static str)> {
        let meminfo = files.text("proc/meminfo").unwrap_or_default();
        let machine = kib_field(&meminfo, "MemTotal:").map(|it| (it, "this machine has"));
        let group = Cgroup::least_limit(files).map(|it| (it, "the control group allows"));
        machine.into_iter().chain(group).min()
    }

    /// The lowest limit.
    pub fn least(&self) -> Option<Limit> {
        self.all().min_by_key(|limit| limit.bytes)
    }
}

/// The name of the limit that counts what is mapped, though it is not used.
pub const ADDRESS_SPACE: &str = "RLIMIT_AS (ulimit -v)";

/// What this process may still allocate, in bytes: the least that its own limits and its control groups leave, and whose that is.
pub fn room(files: &Files) -> Option<(u64, &'static str)> {
    let limits = files.text("proc/self/limits").unwrap_or_default();
    let status = files.text("proc/self/status").unwrap_or_default();
    let own =
        [("Max data size", "VmData:", "RLIMIT_DATA (ulimit -d)"), ("Max address space", "VmSize:", ADDRESS_SPACE)];
    let own = own.into_iter().filter_map(|(limit, used, name)| {
        // The soft one; "unlimited" is no number.
        let soft = field(&limits, limit)?.split_whitespace().next()?;
        let soft: u64 = soft.parse().ok()?;
        Some((soft.saturating_sub(kib_field(&status, used)?), name))
    });
    let group = Cgroup::tightest(files).map(|it| (it.left(), "the control group"));
    own.chain(group).min()
}

#[cfg(test)]
mod tests;
