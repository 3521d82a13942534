//! Errors, with the numbers that show them.
//!
//! There are three kinds: a region that cannot be adopted, a false claim of the caller's about a block,
//! and a broken invariant of the engine. Exhaustion is no error but a decision
//! ([`crate::Decision::Pin`]).

use crate::kind::SegmentKind;
use crate::units::{GRANULE, MAX_REGION, Region, SegmentId};
use thiserror::Error;

/// Why a region was not adopted. The region is still the caller's, to unpin.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AdoptError {
    /// The region holds no whole granule.
    #[error("a region of {bytes} bytes holds no granule of {GRANULE} bytes")]
    TooSmall {
        /// Length of the region in bytes.
        bytes: usize,
    },
    /// The region is larger than [`MAX_REGION`].
    #[error("a region of {bytes} bytes is larger than {MAX_REGION} bytes")]
    TooLarge {
        /// Length of the region in bytes.
        bytes: usize,
    },
    /// The end of the region is beyond the address space.
    #[error("a region of {bytes} bytes at {base:#x} ends beyond the address space")]
    EndOverflows {
        /// Address of the first byte.
        base: usize,
        /// Length of the region in bytes.
        bytes: usize,
    },
    /// The region overlaps one adopted before.
    #[error(
        "a region of {} bytes at {:#x} overlaps segment {segment}: {} bytes at {:#x}",
        region.bytes, region.base, adopted.bytes, adopted.base
    )]
    Overlaps {
        /// The region refused.
        region: Region,
        /// The segment that it overlaps.
        segment: SegmentId,
        /// That segment's region.
        adopted: Region,
    },
    /// There are as many segments as the engine can name.
    #[error("no more than {segments} segments can be adopted")]
    TooManySegments {
        /// How many there are.
        segments: usize,
    },
}

/// A false claim about a block. Nothing was changed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Misuse {
    /// No segment has this id, or not any more.
    #[error("no segment {segment}: its region was unpinned, or never adopted")]
    UnknownSegment {
        /// The id claimed.
        segment: SegmentId,
    },
    /// No block starts there: it was released already, or never handed out.
    #[error("no block at offset {offset} of segment {segment}: released twice, or never handed out")]
    NotABlock {
        /// The segment claimed.
        segment: SegmentId,
        /// The offset claimed, in bytes.
        offset: usize,
    },
    /// A block of another size starts there.
    #[error("the block at offset {offset} of segment {segment} has {actual} bytes, not {claimed}")]
    WrongSize {
        /// The segment claimed.
        segment: SegmentId,
        /// The offset claimed, in bytes.
        offset: usize,
        /// The size claimed, in bytes.
        claimed: usize,
        /// The size of the block, in bytes.
        actual: usize,
    },
    /// The block is pending already, not live.
    #[error("the block of {bytes} bytes at offset {offset} of segment {segment} is pending already")]
    AlreadyPending {
        /// The segment claimed.
        segment: SegmentId,
        /// The offset claimed, in bytes.
        offset: usize,
        /// The size of the block, in bytes.
        bytes: usize,
    },
    /// The block is live, not pending: it waits for no events.
    #[error("the block of {bytes} bytes at offset {offset} of segment {segment} is not pending")]
    NotPending {
        /// The segment claimed.
        segment: SegmentId,
        /// The offset claimed, in bytes.
        offset: usize,
        /// The size of the block, in bytes.
        bytes: usize,
    },
}

/// A broken invariant, found by [`crate::Engine::audit`]: a defect of the engine. Offsets and
/// lengths are granules unless a field says bytes.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// I1: the buddy tree and the records disagree about whether a granule is free.
    #[error("I1: granule {granule} of segment {segment}: free in the tree {tree}, in no block {records}")]
    Ownership {
        /// The segment.
        segment: SegmentId,
        /// The granule.
        granule: u32,
        /// Whether the buddy tree says that it is free.
        tree: bool,
        /// Whether the records say that no block holds it.
        records: bool,
    },
    /// I2: a block starts before the one in front of it ends.
    #[error("I2: the block at granule {granule} of segment {segment} overlaps the one that ends at {end}")]
    BlocksOverlap {
        /// The segment.
        segment: SegmentId,
        /// Where the block starts.
        granule: u32,
        /// Where the one in front of it ends.
        end: u32,
    },
    /// I2: a block ends beyond its segment.
    #[error("I2: a block ends at granule {end} of segment {segment}, which has {granules}")]
    BlockLeavesSegment {
        /// The segment.
        segment: SegmentId,
        /// Where the block ends.
        end: u32,
        /// Granules of the segment.
        granules: u32,
    },
    /// I2: two segments share bytes.
    #[error("I2: segments {first} and {second} overlap")]
    SegmentsOverlap {
        /// The one at the lower address.
        first: SegmentId,
        /// The other.
        second: SegmentId,
    },
    /// I3: a node of the tree does not sum up its granules: free buddies that did not merge are a node that is needlessly mixed.
    #[error(
        "I3: the node at granule {granule}, length {length}, of segment {segment}: {what} is {found}, not {expected}"
    )]
    Summary {
        /// The segment.
        segment: SegmentId,
        /// Where the node starts.
        granule: u32,
        /// Its length.
        length: u32,
        /// Which of its numbers.
        what: &'static str,
        /// What the node says.
        found: u32,
        /// What its granules say.
        expected: u32,
    },
    /// I8: a count of one segment is wrong.
    #[error("I8: {what} of segment {segment}: {found}, counted {expected}")]
    SegmentCount {
        /// The segment.
        segment: SegmentId,
        /// Which count.
        what: &'static str,
        /// What the segment says.
        found: u64,
        /// What its records say.
        expected: u64,
    },
    /// I8: a statistic is wrong.
    #[error("I8: {what}: {found}, counted {expected}")]
    Statistic {
        /// Which statistic.
        what: &'static str,
        /// What the statistics say.
        found: u64,
        /// What the segments say.
        expected: u64,
    },
    /// The order in which segments are filled does not match the segments.
    #[error("the fill order is wrong at place {place}: {what}")]
    FillOrder {
        /// Index into the order.
        place: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// A segment contradicts its kind: it is of a class and has no block, or idle and has one; it is
    /// dedicated and not longer than a segment, or the other way round; it is dedicated and has more
    /// than one block, or one that does not start at its start.
    #[error("segment {segment} is not what its kind says: {kind:?}")]
    Kind {
        /// The segment.
        segment: SegmentId,
        /// Its kind.
        kind: SegmentKind,
    },
    /// The index of idle dedicated regions does not match them.
    #[error("the dedicated index is wrong about slot {slot}: {what}")]
    DedicatedIndex {
        /// The slot of the segment's id.
        slot: usize,
        /// What is wrong about it.
        what: &'static str,
    },
}
