//! What the tested library does to the file system, noted for tests.
//!
//! `PINBUDDY_SIM_WRITES` names a file. Before each call of the library's that may make, change, rename or remove a file,
//! a line with the call and its path is appended to it: `open /tmp/plan`. Files without a path (`memfd_create`) are none.
//!
//! Invariant: other libraries' calls, and the simulator's own, are only passed on.

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use crate::note;
use crate::system::{Unwatched, ask, is_by_the_tested};

/// What an `open` of a file that is only read has none of.
const WRITES: c_int = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Notes a call, if anybody wants to know.
///
/// # Safety
///
/// `path` is null or a C string.
pub(crate) unsafe fn will(call: &str, path: *const c_char) {
    // Asked anew each time: the environment of a forked child is set after the fork.
    // SAFETY: the name is a C string.
    let log = unsafe { libc::getenv(c"PINBUDDY_SIM_WRITES".as_ptr()) };
    if log.is_null() || path.is_null() || !is_by_the_tested() {
        return;
    }
    let _unwatched = Unwatched::begin();
    // SAFETY: neither is null, the environment's values are C strings, and the caller vouches for the path.
    let (log, path) = unsafe { (CStr::from_ptr(log), CStr::from_ptr(path)) };
    let line = [call.as_bytes(), b" ", path.to_bytes(), b"\n"].concat();
    let file = OpenOptions::new().create(true).append(true).open(OsStr::from_bytes(log.to_bytes()));
    if let Err(why) = file.and_then(|mut file| file.write_all(&line)) {
        note::always(&format!("a write cannot be noted: {why}"));
    }
}

/// The same for a call that opens a file, if it may write to it.
///
/// # Safety
///
/// `path` is null or a C string.
pub(crate) unsafe fn will_open(path: *const c_char, flags: c_int) {
    if flags & WRITES != 0 {
        // SAFETY: the caller's promise is the same.
        unsafe { will("open", path) };
    }
}

/// Calls with a path, and then at most one argument that is passed on.
macro_rules! calls {
    ($($name:ident $number:ident;)*) => {$(
        /// # Safety
        ///
        /// As libc's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, other: usize) -> c_int {
            // SAFETY: the caller's promise is the call's.
            unsafe {
                will(stringify!($name), path);
                ask(libc::$number, [path.addr(), other, 0, 0, 0, 0]) as c_int
            }
        }
    )*};
}

calls! {
    chmod SYS_chmod;
    link SYS_link;
    mkdir SYS_mkdir;
    rmdir SYS_rmdir;
    symlink SYS_symlink;
    truncate SYS_truncate;
    truncate64 SYS_truncate;
    unlink SYS_unlink;
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let arguments = [folder as usize, path.addr(), flags as usize, mode as usize, 0, 0];
    // SAFETY: the caller's promise is the call's.
    unsafe {
        will_open(path, flags);
        ask(libc::SYS_openat, arguments) as c_int
    }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { openat64(folder, path, flags, mode) }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let arguments = [folder as usize, path.addr(), flags as usize, 0, 0, 0];
    // SAFETY: the caller's promise is the call's.
    unsafe {
        will("unlinkat", path);
        ask(libc::SYS_unlinkat, arguments) as c_int
    }
}
