//! The readers of the kernel's long lists, as functions of what they read: for `tests/fuzz`.

use std::ops::Range;

/// What `/proc/self/smaps` says about each of these ranges: whether it is listed, and the bytes in
/// transparent huge pages.
pub fn smaps(text: &[u8], ranges: &[Range<usize>]) -> Vec<(bool, usize)> {
    crate::backing::placement_of(text, ranges)
}

/// Which processes hold how many bytes, by `/proc/locks`.
pub fn locks(text: &str) -> Vec<(u32, u64)> {
    crate::budget::claims_in(text)
}
