//! Units and names: granules, regions, blocks and the ids of segments.
//!
//! All arithmetic on callers' sizes is checked here, once, so that the layers above work on numbers
//! that cannot overflow.

use std::fmt;

/// The unit of splitting, in bytes, on every machine: its pages may be larger.
pub const GRANULE: usize = 4096;

/// The largest region that the engine adopts and the largest request that it serves, in bytes
/// (1 TiB). NVIDIA's driver already fails at one registration of 512 GiB, and the cap lets every count
/// of granules inside a segment be a `u32` with a bit to spare.
pub const MAX_REGION: usize = 1 << 40;

/// A count of granules, or a place counted in granules from the start of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Granules(u32);

impl Granules {
    pub(crate) const fn new(count: u32) -> Self {
        Self(count)
    }

    /// The granules that hold `bytes`, rounded up; `None` above [`MAX_REGION`].
    pub(crate) fn holding(bytes: usize) -> Option<Self> {
        Self::try_from_count(bytes, bytes.div_ceil(GRANULE))
    }

    /// The granules inside `bytes`, rounded down; `None` above [`MAX_REGION`].
    pub(crate) fn inside(bytes: usize) -> Option<Self> {
        Self::try_from_count(bytes, bytes / GRANULE)
    }

    /// Exactly `bytes`; `None` if that is no whole number of granules or above [`MAX_REGION`].
    pub(crate) fn exactly(bytes: usize) -> Option<Self> {
        bytes.is_multiple_of(GRANULE).then(|| Self::inside(bytes)).flatten()
    }

    fn try_from_count(bytes: usize, count: usize) -> Option<Self> {
        (bytes <= MAX_REGION).then(|| u32::try_from(count).ok()).flatten().map(Self)
    }

    pub(crate) const fn get(self) -> u32 {
        self.0
    }

    pub(crate) const fn bytes(self) -> usize {
        self.0 as usize * GRANULE
    }
}

/// `bytes` rounded up to a multiple of `unit`; `None` where that overflows.
pub(crate) fn round_up(bytes: usize, unit: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(unit)
}

/// A contiguous range of host memory pinned by one call. A plain number: never dereferenced here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Address of the first byte. Any alignment.
    pub base: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl Region {
    /// The address after the last byte; `None` where it overflows.
    pub(crate) fn end(self) -> Option<usize> {
        self.base.checked_add(self.bytes)
    }
}

/// Where a region lies, where the caller tells places apart: a label that is compared and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Home(pub u8);

/// Names a segment. Opaque: a slot and a generation, so that the id of a removed segment does not name
/// its successor in the slot (until 4096 reuses).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(
    // 32 bits used, but as wide as its neighbours in a `Block`: with padding a block was written in
    // quarters and read as a whole, a stall that cost an eighth of a request.
    u64,
);

impl SegmentId {
    const SLOT_BITS: u32 = 20;
    /// How many segments there can be at once. The last number is no segment's.
    pub(crate) const SLOTS: usize = Self::NOBODYS as usize;
    const NOBODYS: u32 = (1 << Self::SLOT_BITS) - 1;

    /// `slot` is below [`Self::SLOTS`]; only the low 12 bits of `generation` count.
    pub(crate) fn new(slot: u32, generation: u32) -> Self {
        debug_assert!((slot as usize) < Self::SLOTS);
        Self::from_u32(generation << Self::SLOT_BITS | slot)
    }

    pub(crate) fn slot(self) -> usize {
        self.0 as usize & Self::NOBODYS as usize
    }

    /// An id that no segment of any engine ever has, for blocks of memory that is none of its own; `number` is below
    /// 4096.
    pub const fn outside(number: u32) -> Self {
        Self((number << Self::SLOT_BITS | Self::NOBODYS) as u64)
    }

    /// The number of such an id; `None` for a segment's.
    #[inline]
    pub fn number_outside(self) -> Option<u32> {
        let number = self.0 as u32 >> Self::SLOT_BITS;
        (self.slot() == Self::NOBODYS as usize).then_some(number)
    }

    /// The id as a number, to carry through a C interface.
    pub fn to_u32(self) -> u32 {
        self.0 as u32
    }

    /// The id that [`Self::to_u32`] gave. Any other number names no segment, or another one; the
    /// engine answers it with [`crate::Misuse`].
    pub fn from_u32(id: u32) -> Self {
        Self(u64::from(id))
    }
}

impl fmt::Debug for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SegmentId({self})")
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot(), self.0 >> Self::SLOT_BITS)
    }
}

/// A part of a segment, handed to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The segment that it is a part of.
    pub segment: SegmentId,
    /// Bytes from the start of the segment; a multiple of [`GRANULE`].
    pub offset: usize,
    /// Length in bytes: the request rounded up to granules.
    pub bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granules_round_as_their_names_say() {
        let g = |count| Some(Granules::new(count));
        assert_eq!([0, 1, GRANULE, GRANULE + 1].map(Granules::holding), [0, 1, 1, 2].map(g));
        assert_eq!([GRANULE - 1, 2 * GRANULE + 1].map(Granules::inside), [0, 2].map(g));
        assert_eq!([2 * GRANULE, 2 * GRANULE + 1].map(Granules::exactly), [g(2), None]);
    }

    #[test]
    fn sizes_above_the_cap_are_no_granules_and_rounding_up_reports_overflow() {
        assert_eq!(Granules::holding(MAX_REGION).map(Granules::bytes), Some(MAX_REGION));
        for bytes in [MAX_REGION + 1, usize::MAX - GRANULE, usize::MAX] {
            let found = [Granules::holding, Granules::inside, Granules::exactly].map(|of| of(bytes));
            assert_eq!(found, [None; 3], "{bytes}");
        }
        assert_eq!([0, 5, usize::MAX].map(|it| round_up(it, 4)), [Some(0), Some(8), None]);
    }

    #[test]
    fn an_id_survives_the_c_interface_and_tells_generations_apart() {
        let id = SegmentId::new(5, 3);
        assert_eq!(SegmentId::from_u32(id.to_u32()), id);
        assert_eq!(id.slot(), 5);
        assert_ne!(id, SegmentId::new(5, 4));
        assert_eq!(format!("{id} {id:?}"), "5.3 SegmentId(5.3)");
        assert_eq!(id.number_outside(), None);
        let outside = SegmentId::outside(1);
        assert_eq!(SegmentId::from_u32(outside.to_u32()).number_outside(), Some(1));
    }
}
