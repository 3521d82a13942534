//! Files without a path, which end with their process: what others find in `/proc`.
//!
//! Knows no content.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::process;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Nameless {
    /// Never closed when dropped: a program may have closed descriptors that it does not know, and the number may
    /// be another file's by now.
    file: ManuallyDrop<File>,
    device: u64,
    inode: u64,
    process: u32,
}

impl Nameless {
    /// A file that is empty; `name` is what `/proc/PID/fd` shows.
    pub(crate) fn new(name: &CStr) -> io::Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends in a zero, and the kernel returns a descriptor or -1.
        let make = |flags| unsafe { libc::memfd_create(name.as_ptr(), flags) };
        // Kernels from 6.3 on may be set to refuse files that could be executed; older ones refuse this flag.
        let descriptor = match make(flags | libc::MFD_NOEXEC_SEAL) {
            -1 => make(flags),
            descriptor => descriptor,
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made just now, and nothing else owns it.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        let (device, inode) = file.metadata().map(|it| (it.dev(), it.ino()))?;
        Ok(Self { file, device, inode, process: process::id() })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Its device and number.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the descriptor still is this file, and this process made it.
    pub(crate) fn is_still_there(&self) -> bool {
        self.process == process::id() && self.file.metadata().is_ok_and(|it| self.is(&it))
    }

    /// In a child of a fork: closes what the parent made.
    pub(crate) fn close_inherited(self) {
        if self.file.metadata().is_ok_and(|it| self.is(&it)) {
            // SAFETY: the descriptor is this file's, and nothing uses it after this.
            unsafe { libc::close(self.file.as_raw_fd()) };
        }
    }

    fn is(&self, metadata: &Metadata) -> bool {
        (metadata.dev(), metadata.ino()) == (self.device, self.inode)
    }
}
