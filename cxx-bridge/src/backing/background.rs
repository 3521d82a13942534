//! What a thread does behind a program that goes on, it does with few threads and at low priority.

#![allow(unsafe_code)]

use std::cell::Cell;

thread_local! {
    static BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Where all cores are busy the program's own threads get three parts and these one: no less, since a
/// request may come to wait for what they do.
const NICE: libc::c_int = 5;

/// From now on this thread, and those that it starts, work behind the program.
pub(crate) fn enter() {
    BEHIND.set(true);
    // SAFETY: a number for the kernel; on Linux it is for the calling thread alone, which must not
    // be one of the program's. In the worst case the priority stays as it is.
    unsafe { libc::nice(NICE) };
}

/// Whether this thread does.
pub(super) fn entered() -> bool {
    BEHIND.get()
}
