//! Which processes hold memory that the kernel cannot take back, as far as `/proc` says.
//!
//! What CUDA's driver pins is in no count of locked memory (seen on an H100 with driver 580). What it allocates is part of a process's
//! shared memory; what a program registers shows nowhere, but processes with pinbuddy say it. Invariants: no file is read for which
//! the kernel walks a process's memory (`smaps`), so that none waits for this one, which may wait for one that maps memory; a command
//! comes out as plain characters.

use std::io::{self, ErrorKind};

use serde::Serialize;

use crate::claims::{Claim, claims};
use crate::files::{Files, field, kib_field};

/// No more characters of a command are kept.
const LONGEST: usize = 200;

/// No more open files of a process are looked at.
const MOST_FILES: usize = 4096;

/// A process that holds memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Its id.
    pub pid: u32,
    /// Its user's id.
    pub user: Option<u32>,
    /// What it says that it has pinned with pinbuddy, in bytes.
    pub pinbuddy_bytes: u64,
    /// Its command line, or else its name.
    pub command: String,
    /// `VmLck`: locked by `mlock`, bytes.
    pub locked_bytes: u64,
    /// `VmPin`: pinned by parts of the kernel that say so, RDMA for instance; bytes.
    pub pinned_bytes: u64,
    /// `RssShmem` of a process that has a GPU open, in bytes: what CUDA allocated is part of it.
    pub shared_bytes: u64,
}

/// Who holds memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Who holds most comes first.
    pub processes: Vec<Holder>,
    /// Processes that cannot be read.
    pub unreadable: usize,
    /// `Mlocked` of the whole machine, bytes.
    pub mlocked_bytes: Option<u64>,
    /// `Unevictable` of the whole machine, bytes.
    pub unevictable_bytes: Option<u64>,
}

impl Holder {
    /// The largest of its numbers: one byte may count in several.
    pub fn bytes(&self) -> u64 {
        let Self { pinbuddy_bytes, locked_bytes, pinned_bytes, shared_bytes, .. } = *self;
        pinbuddy_bytes.max(locked_bytes).max(pinned_bytes).max(shared_bytes)
    }

    fn of(files: &Files, pid: u32, status: &str, claims: &[Claim]) -> Self {
        let bytes = |label| kib_field(status, label).unwrap_or(0);
        let mut holder = Self {
            pid,
            pinbuddy_bytes: claims.iter().filter(|it| it.process == pid).map(|it| it.bytes).max().unwrap_or(0),
            user: field(status, "Uid:").and_then(|it| it.split_whitespace().next()?.parse().ok()),
            locked_bytes: bytes("VmLck:"),
            pinned_bytes: bytes("VmPin:"),
            ..Self::default()
        };
        let shared = bytes("RssShmem:");
        if shared > 0 && has_gpu(files, pid) {
            holder.shared_bytes = shared;
        }
        if holder.bytes() > 0 {
            let line = files.text(&format!("proc/{pid}/cmdline"));
            let line = line.map(|it| it.replace('\0', " "));
            let line = line.as_deref().map(str::trim).filter(|it| !it.is_empty());
            holder.command = plain(line.or_else(|| field(status, "Name:")).unwrap_or_default());
        }
        holder
    }
}

impl Held {
    /// All processes but these.
    pub fn read(files: &Files, but: &[u32]) -> Self {
        let meminfo = files.text("proc/meminfo").unwrap_or_default();
        let mut held = Self {
            mlocked_bytes: kib_field(&meminfo, "Mlocked:"),
            unevictable_bytes: kib_field(&meminfo, "Unevictable:"),
            ..Self::default()
        };
        let claims = claims(&files.text("proc/locks").unwrap_or_default(), None);
        let names = files.names("proc").into_iter();
        for pid in names.filter_map(|it| it.parse().ok()) {
            if !but.contains(&pid) {
                let status = files.read(&format!("proc/{pid}/status"));
                held.add(status.map(|it| Holder::of(files, pid, &it, &claims)));
            }
        }
        held.processes.sort_by_key(|it| std::cmp::Reverse(it.bytes()));
        held
    }

    fn add(&mut self, holder: io::Result<Holder>) {
        match holder {
            Ok(holder) if holder.bytes() > 0 => self.processes.push(holder),
            Err(why) if why.kind() == ErrorKind::PermissionDenied => self.unreadable += 1,
            // It holds nothing, or has ended.
            _ => {}
        }
    }
}

/// Whether it has a file of NVIDIA's driver open, as far as this user may see that.
fn has_gpu(files: &Files, pid: u32) -> bool {
    let folder = format!("proc/{pid}/fd");
    let names = files.names(&folder);
    let is_gpu = |name: &String| {
        let target = files.link(&format!("{folder}/{name}"));
        target.is_some_and(|it| it.to_string_lossy().starts_with("/dev/nvidia"))
    };
    names.iter().take(MOST_FILES).any(is_gpu)
}

/// ASCII alone, each as wide as any: whoever names a process writes to terminals else.
fn plain(text: &str) -> String {
    let plain = |it: char| match it {
        ' '..='~' => it,
        _ => '?',
    };
    text.chars().take(LONGEST).map(plain).collect()
}

#[cfg(test)]
mod tests;
