//! This process's user and this library's file: what the settings' files are found and judged by.
//!
//! Knows no settings.

#![cfg_attr(not(feature = "torch"), allow(dead_code))]
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::config::Surroundings;

/// Of this process.
pub(crate) fn here() -> Surroundings {
    Surroundings { user: user(), library: library() }
}

/// The effective user.
pub(crate) fn user() -> u32 {
    // SAFETY: it has no conditions.
    unsafe { libc::geteuid() }
}

/// The file that this code was loaded from.
fn library() -> Option<PathBuf> {
    let mut found = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let of_ours: fn() -> Surroundings = here;
    // SAFETY: any address may be asked for, and `found` is written only.
    let known = unsafe { libc::dladdr(of_ours as *const libc::c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's name of a loaded file ends in a zero, and lives as long as this code.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_the_file_that_runs() {
        let found = here();
        let (found, this) = (found.library.unwrap(), std::env::current_exe().unwrap());
        assert_eq!(found.canonicalize().unwrap(), this.canonicalize().unwrap());
    }
}
