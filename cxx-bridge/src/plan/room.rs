//! Whether a plan can be made in what memory this process may still take: one that gets none ends, and its program with it.

use std::path::Path;

use pinbuddy_machine::{ADDRESS_SPACE, Files, room};

use crate::log::Bytes;

/// What a plan takes at most: this, and so much a request. Measured: 10 MiB, and up to 690 bytes.
const LEAST: u64 = 16 << 20;
const EACH: u64 = 768;

/// What a thread takes of the address space: its stack, and its heap, which glibc maps twice to align it (`HEAP_MAX_SIZE`). Where it
/// cannot have one of its own, a list of a few bytes can be a page, and the figures above do not hold.
const THREAD: u64 = (2 + 2 * 64) << 20;

/// Why so many plans of so many requests cannot be made at once, if so; one of them in a new thread, if that is asked.
pub(super) fn lack_of_room(requests: usize, plans: u64, in_a_thread: bool) -> Option<String> {
    let (left, limit) = room(&Files::below(Path::new("/")))?;
    let thread = if in_a_thread && limit == ADDRESS_SPACE { THREAD } else { 0 };
    let needed = plans * (LEAST + EACH * requests as u64) + thread;
    (left < needed).then(|| {
        let (needed, left) = (Bytes(needed), Bytes(left));
        format!(
            "to plan {requests} requests takes up to {needed}, and {limit} leaves {left}: raise that, or record a trace and plan it \
             elsewhere (pinbuddy plan TRACE --out FILE)"
        )
    })
}

#[cfg(test)]
mod tests;
