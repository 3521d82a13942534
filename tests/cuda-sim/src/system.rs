//! System calls of the library that is tested, in front of libc's: they fail where a plan of faults says so.
//!
//! A preloaded library's `mmap` is everybody's, and so it does what libc's does. Only while there is a plan of faults
//! does it look at who calls, and only libtorch_pinbuddy.so's calls are counted and made to fail. Names in plans:
//! `mmap`, `madvise`, `mbind`, `move_pages`, `memfd_create`, `open`, `open(FILE)`, `read`, `write`, `fsync`, `rename`.
//! What writes to files is also noted (`writes`).

use std::arch::asm;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};

use crate::fault::{self, Outcome};
use crate::hazard;
use crate::stack::Stack;
use crate::writes;

/// Whose calls fail.
const TESTED: &str = "libtorch_pinbuddy";

thread_local! {
    /// Whether this thread's calls are the simulator's own, which looks at who called, for instance.
    static LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this thread's calls are the simulator's own.
#[derive(Debug)]
pub(crate) struct Unwatched {
    before: bool,
}

impl Unwatched {
    pub(crate) fn begin() -> Self {
        Self { before: LOOKING.replace(true) }
    }
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        LOOKING.set(self.before);
    }
}

/// What becomes of a call that goes by these names.
fn fault_of(names: &[&str]) -> Option<Outcome> {
    if !fault::is_about_system_calls() || !is_by_the_tested() {
        return None;
    }
    let _unwatched = Unwatched::begin();
    fault::of_system_call(names)
}

/// Whether the call that is under way is the tested library's.
pub(crate) fn is_by_the_tested() -> bool {
    if LOOKING.get() {
        return false;
    }
    let _unwatched = Unwatched::begin();
    Stack::caller().is_some_and(|it| it.starts_with(TESTED))
}

/// The same for a call that can only fail.
fn error_of(name: &str) -> Option<c_int> {
    match fault_of(&[name])? {
        Outcome::Number(number) => c_int::try_from(number).ok(),
        Outcome::Short | Outcome::File(_) => None,
    }
}

/// Ask the kernel; a failure is -1, and the reason in `errno`.
///
/// # Safety
///
/// As for the call itself.
pub(crate) unsafe fn ask(number: c_long, arguments: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the caller vouches for the call; the kernel keeps all registers but these.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match answer {
        -4095..=-1 => fail(-answer as c_int),
        answer => answer,
    }
}

fn fail(error: c_int) -> isize {
    // SAFETY: each thread has its own place for the error, which is always valid.
    unsafe { *libc::__errno_location() = error };
    -1
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let found = match error_of("mmap") {
        Some(error) => fail(error),
        // SAFETY: the caller's promise is the call's.
        None => unsafe {
            let numbers = [protection as usize, flags as usize, file as usize];
            let [protection, flags, file] = numbers;
            let arguments = [address.addr(), bytes, protection, flags, file, offset as usize];
            ask(libc::SYS_mmap, arguments)
        },
    };
    std::ptr::with_exposed_provenance_mut(found as usize)
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise is the same.
    unsafe { mmap(address, bytes, protection, flags, file, offset) }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    if !LOOKING.get() {
        let _unwatched = Unwatched::begin();
        hazard::unmapped(address.addr(), bytes);
    }
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_munmap, [address.addr(), bytes, 0, 0, 0, 0]) as c_int }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if let Some(error) = error_of("madvise") {
        return fail(error) as c_int;
    }
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_madvise, [address.addr(), bytes, advice as usize, 0, 0, 0]) as c_int }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn memfd_create(name: *const c_char, flags: c_uint) -> c_int {
    if let Some(error) = error_of("memfd_create") {
        return fail(error) as c_int;
    }
    let arguments = [name.addr(), flags as usize, 0, 0, 0, 0];
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_memfd_create, arguments) as c_int }
}

/// libc's has a list of arguments without an end; in C they come in the same registers.
///
/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    let name = match number {
        libc::SYS_mbind => Some("mbind"),
        libc::SYS_move_pages => Some("move_pages"),
        _ => None,
    };
    if let Some(error) = name.and_then(error_of) {
        return fail(error) as c_long;
    }
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(number, [a, b, c, d, e, f]) as c_long }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller gives a C string.
    unsafe { writes::will_open(path, flags) };
    let outcome = if fault::is_about_system_calls() && !path.is_null() {
        // SAFETY: the caller gives a C string, and it is not null.
        let name = unsafe { CStr::from_ptr(path) }.to_string_lossy();
        fault_of(&["open", &format!("open({name})")])
    } else {
        None
    };
    let other = match outcome {
        Some(Outcome::Number(error)) => return fail(error as c_int) as c_int,
        Some(Outcome::File(file)) => CString::new(file).ok(),
        Some(Outcome::Short) | None => None,
    };
    let path = other.as_deref().map_or(path, CStr::as_ptr);
    let here = libc::AT_FDCWD as usize;
    let arguments = [here, path.addr(), flags as usize, mode as usize, 0, 0];
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_openat, arguments) as c_int }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { open64(path, flags, mode) }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn read(file: c_int, buffer: *mut c_void, bytes: usize) -> isize {
    // SAFETY: the caller's promise is the call's.
    unsafe { transfer("read", libc::SYS_read, [file as usize, buffer.addr(), bytes]) }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, buffer: *const c_void, bytes: usize) -> isize {
    // SAFETY: the caller's promise is the call's.
    unsafe { transfer("write", libc::SYS_write, [file as usize, buffer.addr(), bytes]) }
}

/// Reads or writes, all of it or a byte at a time.
///
/// # Safety
///
/// As that of the system call with this number: file, buffer, bytes.
unsafe fn transfer(name: &str, number: c_long, [file, buffer, bytes]: [usize; 3]) -> isize {
    let bytes = match fault_of(&[name]) {
        Some(Outcome::Number(error)) => return fail(error as c_int),
        Some(Outcome::Short) => bytes.min(1),
        Some(Outcome::File(_)) | None => bytes,
    };
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(number, [file, buffer, bytes, 0, 0, 0]) }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(file: c_int) -> c_int {
    if let Some(error) = error_of("fsync") {
        return fail(error) as c_int;
    }
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_fsync, [file as usize, 0, 0, 0, 0, 0]) as c_int }
}

/// # Safety
///
/// As libc's.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller gives C strings.
    unsafe { writes::will("rename", to) };
    if let Some(error) = error_of("rename") {
        return fail(error) as c_int;
    }
    // SAFETY: the caller's promise is the call's.
    unsafe { ask(libc::SYS_rename, [from.addr(), to.addr(), 0, 0, 0, 0]) as c_int }
}
