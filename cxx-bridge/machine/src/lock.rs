//! `RLIMIT_MEMLOCK`, and whether it binds this process.

use serde::Serialize;

use crate::files::{Files, field};

/// The bit of `CAP_IPC_LOCK`, with which a process may lock any amount of memory.
const IPC_LOCK: u64 = 1 << 14;

/// In bytes; `None` if it is unlimited or cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LockLimit {
    /// The soft limit.
    #[serde(rename = "lock_soft")]
    pub soft: Option<u64>,
    /// The hard limit.
    #[serde(rename = "lock_hard")]
    pub hard: Option<u64>,
    /// `CAP_IPC_LOCK`: the limit does not bind.
    pub may_lock_all: bool,
}

impl LockLimit {
    /// Distributions and container engines set 64 KiB, 8 MiB or 64 MiB by default, enough for a few keys.
    /// CUDA's driver ignores the limit, so following such a default would turn the engine off for no reason.
    pub const DEFAULT: u64 = 64 << 20;

    /// Reads it.
    pub fn read(files: &Files) -> Self {
        let status = files.text("proc/self/status").unwrap_or_default();
        let capabilities = field(&status, "CapEff:");
        let capabilities = capabilities.and_then(|it| u64::from_str_radix(it, 16).ok());
        let limits = files.text("proc/self/limits").unwrap_or_default();
        // Soft, hard, unit; "unlimited" is no number.
        let line = field(&limits, "Max locked memory").unwrap_or_default();
        let mut numbers = line.split_whitespace().map(|it| it.parse().ok());
        Self {
            soft: numbers.next().flatten(),
            hard: numbers.next().flatten(),
            may_lock_all: capabilities.is_some_and(|it| it & IPC_LOCK != 0),
        }
    }

    /// The soft limit, if it was chosen on purpose: `None` if the process may exceed it or it is a default.
    pub fn binding(&self) -> Option<u64> {
        let soft = self.soft.filter(|soft| *soft > Self::DEFAULT);
        soft.filter(|_| !self.may_lock_all)
    }
}
