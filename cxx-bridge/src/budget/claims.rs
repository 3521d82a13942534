//! How much other processes with this library hold, where no launcher counts them: test runners,
//! notebooks, `mp.spawn`.
//!
//! Each process has a nameless file (`memfd`) and read-locks two ranges of it, at offsets that no other
//! program locks. The length of one range is how many MiB the process has pinned; the length of the
//! other is when it last pinned more. `/proc/locks` lists all ranges with their holders, for every user.
//! So there is no daemon, no path to agree on, no permission to need and nothing to clean up. The kernel
//! drops the locks when the process ends, in whatever way; a child does not inherit them (they belong to
//! the process, not to the descriptor); and each number changes atomically. Files in /dev/shm or sockets
//! outlive their process, need rights that other users lack, or are inherited.
//!
//! Knows no policy. Sees the processes whose ids this one can see: of this container and below; on the
//! host, all. If the kernel lists no locks, it sees none. Anybody may lock such ranges: numbers are not
//! trusted, and the caller must bound them. Invariant: a claim is never less than what was added and not
//! taken away, rounded up to a MiB.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::SystemTime;

pub(crate) use pinbuddy_machine::claims::Claim;
pub(super) use pinbuddy_machine::claims::{HELD, TIME};
use pinbuddy_machine::claims::{LONGEST, claims};

use crate::lock::Lock;
use crate::nameless::Nameless;

/// At most so much of the list is read.
const MOST_TEXT: u64 = 1 << 20;

const MIB: u64 = 1 << 20;

/// This process's claim, and the claims of others.
#[derive(Debug, Default)]
pub(crate) struct Claims(Lock<Told>);

#[derive(Debug, Default)]
struct Told {
    bytes: u64,
    file: Option<Nameless>,
    /// The lengths of the locked ranges.
    held: i64,
    time: i64,
}

impl Claims {
    /// This process has pinned `bytes` more.
    pub(crate) fn add(&self, bytes: usize) {
        let mut told = self.0.lock();
        told.bytes = told.bytes.saturating_add(bytes as u64);
        told.tell(true);
    }

    /// This process has unpinned `bytes`.
    pub(crate) fn take_away(&self, bytes: usize) {
        let mut told = self.0.lock();
        told.bytes = told.bytes.saturating_sub(bytes as u64);
        told.tell(false);
    }

    /// Bytes that this process has pinned.
    pub(crate) fn pinned(&self) -> u64 {
        self.0.lock().bytes
    }

    /// The claims of others, from the list below `root`.
    pub(crate) fn of_others(&self, root: &Path) -> Vec<Claim> {
        let mine = self.0.lock().file.as_ref().map(listed_as);
        let mut text = String::with_capacity(1 << 16);
        let read = File::open(root.join("proc/locks")).and_then(|file| file.take(MOST_TEXT).read_to_string(&mut text));
        match read {
            Ok(_) => claims(&text, mine.as_deref()),
            Err(_) => Vec::new(),
        }
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| it.as_secs())
}

impl Told {
    /// Gives the ranges the lengths of the numbers. Errors are ignored: then others see the old claim.
    fn tell(&mut self, grew: bool) {
        if self.file.as_ref().is_none_or(|it| !it.is_still_there()) {
            (self.held, self.time) = (0, 0);
            self.file = if self.bytes > 0 { Nameless::new(c"pinbuddy").ok() } else { None };
        }
        let Some(file) = &self.file else { return };
        let held = as_length(self.bytes.div_ceil(MIB));
        let time = if grew { as_length(now()) } else { self.time };
        // Lengthening or shortening a locked range is atomic.
        let told = lengthen(file, TIME, self.time, time);
        let told = told.and_then(|()| lengthen(file, HELD, self.held, held));
        if told.is_ok() {
            (self.held, self.time) = (held, time);
        }
    }
}

fn as_length(number: u64) -> i64 {
    i64::try_from(number).map_or(LONGEST - 1, |it| it.min(LONGEST - 1))
}

/// Its name in the kernel's list.
fn listed_as(file: &Nameless) -> String {
    let (device, inode) = file.identity();
    let (major, minor) = (libc::major(device), libc::minor(device));
    format!("{major:02x}:{minor:02x}:{inode}")
}

/// Changes the length of the locked range of `file` at `start` from `old` to `new`.
fn lengthen(file: &Nameless, start: i64, old: i64, new: i64) -> io::Result<()> {
    let (kind, from, length) = match new - old {
        0 => return Ok(()),
        more @ 1.. => (libc::F_RDLCK, start + old, more),
        less => (libc::F_UNLCK, start + new, -less),
    };
    // SAFETY: the record has only numbers, for which zero is valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    (range.l_start, range.l_len) = (from, length);
    // SAFETY: the record outlives the call, and the kernel keeps no pointer to it.
    match unsafe { libc::fcntl(file.file().as_raw_fd(), libc::F_SETLK, &raw const range) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
