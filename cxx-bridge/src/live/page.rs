//! The page in memory, and the file that others find it in.
//!
//! Invariants: the file can neither grow nor shrink, and nobody writes to it but through this mapping, where the kernel
//! can see to that (Linux 5.1); a child does not have the mapping.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use pinbuddy_live::{LENGTH, NAME, Page, SEQUENCE, WORDS};

use crate::nameless::Nameless;

/// A mapped page, for one writer. Never unmapped.
#[derive(Debug)]
pub(super) struct Words(&'static [AtomicU64; WORDS]);

/// A page in which nothing stands yet.
pub(super) fn make() -> io::Result<(Nameless, Words)> {
    let file = Nameless::new(&CString::new(NAME)?)?;
    match map(&file) {
        Ok(words) => Ok((file, words)),
        Err(why) => {
            file.close_inherited();
            Err(why)
        }
    }
}

fn map(file: &Nameless) -> io::Result<Words> {
    let descriptor = file.file().as_raw_fd();
    file.file().set_len(LENGTH as u64)?;
    // SAFETY: a fresh mapping of a file that is as long; the kernel chooses the address.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), LENGTH, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, descriptor, 0)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the whole mapping, which nothing uses yet.
    if unsafe { libc::madvise(address, LENGTH, libc::MADV_DONTFORK) } != 0 {
        let why = io::Error::last_os_error();
        // SAFETY: as above.
        unsafe { libc::munmap(address, LENGTH) };
        return Err(why);
    }
    // Readers never map the file, and the program itself has no reason to write: these are for the case that somebody
    // does. An older kernel refuses the first.
    let sizes = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    let seal = |seals: libc::c_int| {
        // SAFETY: numbers only.
        unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) == 0 }
    };
    let _sealed = seal(libc::F_SEAL_FUTURE_WRITE | sizes | libc::F_SEAL_SEAL) || seal(sizes);
    let _ = file.file().set_permissions(Permissions::from_mode(0o400));
    // SAFETY: the mapping is aligned, longer than that, never unmapped, and only used through atomics.
    Ok(Words(unsafe { &*address.cast() }))
}

impl Words {
    /// Replaces what the page says. A reader meanwhile sees that it must read again.
    pub(super) fn publish(&self, page: &Page) {
        let sequence = &self.0[SEQUENCE];
        // Even: one writer, which always ends.
        let before = sequence.load(Ordering::Relaxed);
        sequence.store(before.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (index, (to, word)) in self.0.iter().zip(page.words()).enumerate() {
            if index != SEQUENCE {
                to.store(word, Ordering::Relaxed);
            }
        }
        sequence.store(before.wrapping_add(2), Ordering::Release);
    }
}
