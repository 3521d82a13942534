//! What callers see of a segment and its blocks: plain numbers, for statistics and snapshots.

use crate::kind::SegmentKind;
use crate::units::{Home, SegmentId};

/// A segment as seen from outside. All sizes in bytes;
/// `free_bytes + tail_bytes + live_bytes + pending_bytes == bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// Its id.
    pub id: SegmentId,
    /// What it is used for.
    pub kind: SegmentKind,
    /// Where it lies.
    pub home: Home,
    /// Address of its region, as adopted.
    pub base: usize,
    /// Length of its region, as adopted.
    pub bytes: usize,
    /// Granules in no block.
    pub free_bytes: usize,
    /// A part of a granule at the end of the region: pinned, never used.
    pub tail_bytes: usize,
    /// The longest free run that a block can be cut from: the largest request that fits. 0 in a
    /// dedicated region that has its block.
    pub longest_free_run_bytes: usize,
    /// Granules in live blocks.
    pub live_bytes: usize,
    /// Granules in pending blocks.
    pub pending_bytes: usize,
    /// How many blocks are live.
    pub live_blocks: usize,
    /// How many blocks are pending.
    pub pending_blocks: usize,
}

impl SegmentView {
    /// Whether no block, live or pending, is left in it.
    pub fn is_idle(&self) -> bool {
        self.live_blocks == 0 && self.pending_blocks == 0
    }
}

/// A block as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockView {
    /// Bytes from the start of its segment.
    pub offset: usize,
    /// Length in bytes.
    pub bytes: usize,
    /// Whether the user freed it and events recorded on it are outstanding.
    pub pending: bool,
}
