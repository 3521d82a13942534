//! Whether a plan can be made in what memory this process may still take: one that gets none ends, and its program with it.

use std::path::Path;

use pinbuddy_machine::{Files, room};

use crate::log::Bytes;

/// What a plan takes at most: this, and so much a request. Measured: 10 MiB, and up to 690 bytes.
const LEAST: u64 = 16 << 20;
const EACH: u64 = 768;

/// Why so many plans of so many requests cannot be made at once, if so.
pub(super) fn lack_of_room(requests: usize, plans: u64) -> Option<String> {
    let (left, limit) = room(&Files::below(Path::new("/")))?;
    let needed = plans * (LEAST + EACH * requests as u64);
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
