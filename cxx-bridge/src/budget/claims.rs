//! What processes of this kind hold on this machine, where no launcher counts them: test runners,
//! notebooks, `mp.spawn`.
//!
//! Each process has a file of its own that has no name (`memfd`), and read-locks two ranges of it that
//! lie where nobody else locks anything. How long the one is says how many MiB it has pinned, how long
//! the other when it last pinned more. `/proc/locks` lists all ranges with who holds them, for every
//! user. So there is no daemon, no path to agree on, no permission to have, nothing to clean up: the
//! kernel drops the locks with the process, whatever ends it; a forked child never has them (they are
//! the process's, not the descriptor's); and each number changes in one step. Files in /dev/shm or
//! sockets outlive their process, need rights that other users lack, or are inherited.
//!
//! Knows no policy. Seen are processes whose ids this one can see: those of this container and below,
//! of all of them on the host. Where the kernel lists no locks, nobody is seen. Anybody may lock such
//! ranges: numbers are read with distrust, and who decides must bound them. Invariant: what is told is
//! never less than what was added and not taken away, rounded up to a MiB.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process;
use std::time::SystemTime;

use crate::lock::Lock;

/// Where the range begins that is as long as there are MiB pinned. It spells a name.
pub(super) const HELD: i64 = i64::from_be_bytes(*b"pinbuddy");
/// Where the one begins that is as long as seconds have passed since 1970.
pub(super) const TIME: i64 = HELD + (1 << 48);
/// No number is larger.
const LONGEST: i64 = 1 << 40;
/// So much of the list is read, and so many processes are heard.
const MOST_TEXT: u64 = 1 << 20;
const MOST_CLAIMS: usize = 4096;

const MIB: u64 = 1 << 20;

/// What this process tells others, and what it hears of them.
#[derive(Debug, Default)]
pub(crate) struct Claims(Lock<Told>);

/// What another process says it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) process: u32,
    pub(crate) bytes: u64,
    /// When it last pinned more, in seconds since 1970; 0 where it did not say.
    pub(crate) grew: u64,
}

#[derive(Debug, Default)]
struct Told {
    bytes: u64,
    file: Option<Nameless>,
    /// How long the locked ranges are.
    held: i64,
    time: i64,
}

impl Claims {
    /// This process has pinned so much more.
    pub(crate) fn add(&self, bytes: usize) {
        let mut told = self.0.lock();
        told.bytes = told.bytes.saturating_add(bytes as u64);
        told.tell(true);
    }

    /// So much is pinned no more.
    pub(crate) fn take_away(&self, bytes: usize) {
        let mut told = self.0.lock();
        told.bytes = told.bytes.saturating_sub(bytes as u64);
        told.tell(false);
    }

    /// What this process has pinned.
    pub(crate) fn pinned(&self) -> u64 {
        self.0.lock().bytes
    }

    /// What others hold, as the list below `root` has it.
    pub(crate) fn of_others(&self, root: &Path) -> Vec<Claim> {
        let mine = self.0.lock().file.as_ref().map(Nameless::listed_as);
        let mut text = String::new();
        let read = File::open(root.join("proc/locks"))
            .and_then(|file| file.take(MOST_TEXT).read_to_string(&mut text));
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

/// What a list of locks says, without those on the file that is listed as `mine`.
fn claims(locks: &str, mine: Option<&str>) -> Vec<Claim> {
    let mut claims: BTreeMap<&str, Claim> = BTreeMap::new();
    for line in locks.lines() {
        // 1: POSIX  ADVISORY  READ 27696 00:01:1024 8100127873469539449 8100127873469539525
        let mut words = line.split_whitespace().skip(1);
        if [words.next(), words.next(), words.next()]
            != [Some("POSIX"), Some("ADVISORY"), Some("READ")]
        {
            continue;
        }
        let (Some(process), Some(file)) = (words.next(), words.next()) else {
            continue;
        };
        let mut number = || words.next()?.parse::<i64>().ok();
        let (Some(first), Some(last), Ok(process)) = (number(), number(), process.parse()) else {
            continue;
        };
        // The last one is in it.
        let length = last.checked_sub(first).map_or(0, |it| it + 1);
        let is_known = claims.len() < MOST_CLAIMS || claims.contains_key(file);
        if !(1..LONGEST).contains(&length) || Some(file) == mine || !is_known {
            continue;
        }
        match first {
            HELD => claims.entry(file).or_default().bytes = length.unsigned_abs() * MIB,
            TIME => claims.entry(file).or_default().grew = length.unsigned_abs(),
            _ => continue,
        }
        claims.entry(file).or_default().process = process;
    }
    claims.into_values().filter(|it| it.bytes > 0).collect()
}

impl Told {
    /// Has the ranges as long as the numbers are now. What cannot be told is not.
    fn tell(&mut self, grew: bool) {
        if self.file.as_ref().is_none_or(|it| !it.is_still_there()) {
            (self.held, self.time) = (0, 0);
            self.file = if self.bytes > 0 {
                Nameless::new().ok()
            } else {
                None
            };
        }
        let Some(file) = &self.file else { return };
        let held = as_length(self.bytes.div_ceil(MIB));
        let time = if grew { as_length(now()) } else { self.time };
        // A range that is locked further, or shorter, is one range at every moment.
        let told = file.lengthen(TIME, self.time, time);
        let told = told.and_then(|()| file.lengthen(HELD, self.held, held));
        if told.is_ok() {
            (self.held, self.time) = (held, time);
        }
    }
}

fn as_length(number: u64) -> i64 {
    i64::try_from(number).map_or(LONGEST - 1, |it| it.min(LONGEST - 1))
}

/// A file that has no name, and is gone with the process.
#[derive(Debug)]
struct Nameless {
    /// A program may close descriptors that it does not know, and the number may be another file's
    /// by now: it is never closed here.
    file: ManuallyDrop<File>,
    device: u64,
    inode: u64,
    process: u32,
}

impl Nameless {
    fn new() -> io::Result<Self> {
        let name = c"pinbuddy".as_ptr();
        // SAFETY: the name is a string with its end, and the kernel answers with a descriptor or -1.
        // Kernels that know the second flag may insist on it, and others refuse it.
        let descriptor = unsafe {
            match libc::memfd_create(name, libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL) {
                -1 => libc::memfd_create(name, libc::MFD_CLOEXEC),
                descriptor => descriptor,
            }
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made just now, and nobody else knows it.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        let (device, inode) = file.metadata().map(|it| (it.dev(), it.ino()))?;
        Ok(Self {
            file,
            device,
            inode,
            process: process::id(),
        })
    }

    /// Whether the descriptor is still this file's, and this process the one that made it.
    fn is_still_there(&self) -> bool {
        let is_this = |it: std::fs::Metadata| (it.dev(), it.ino()) == (self.device, self.inode);
        self.process == process::id() && self.file.metadata().is_ok_and(is_this)
    }

    /// As the kernel's list names it.
    fn listed_as(&self) -> String {
        let (major, minor) = (libc::major(self.device), libc::minor(self.device));
        format!("{major:02x}:{minor:02x}:{}", self.inode)
    }

    /// Has the locked range from `start`, of length `old`, be `new` long.
    fn lengthen(&self, start: i64, old: i64, new: i64) -> io::Result<()> {
        let (kind, from, length) = match new - old {
            0 => return Ok(()),
            more @ 1.. => (libc::F_RDLCK, start + old, more),
            less => (libc::F_UNLCK, start + new, -less),
        };
        // SAFETY: numbers only, of which none is a valid record, too.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = kind as libc::c_short;
        range.l_whence = libc::SEEK_SET as libc::c_short;
        (range.l_start, range.l_len) = (from, length);
        // SAFETY: the record lives until the call returns, and the kernel keeps no address of it.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETLK, &raw const range) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
