//! How the sizes of a program's requests are drawn. Pure numbers.

use crate::{GIB, MIB};

/// How sizes are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One of so many fixed sizes.
    Fixed(u8),
    /// Any from 4 MiB to 1 GiB, each doubling equally often.
    Mixed,
    /// A little larger each time.
    Growing,
    /// A little smaller each time.
    Shrinking,
    /// Any up to 200 MiB, to the byte: hardly any repeats.
    Never,
    /// From a little below a segment to a little above.
    Around,
    /// Fixed sizes, which change with each phase; between two phases all is freed.
    Phases,
    /// From 1 to 8 GiB.
    Huge,
    /// From 4 KiB to 4 MiB.
    Small,
    /// Any from 50 to 400 MiB, in rounds with a barrier: each thread asks for so many blocks, all threads
    /// meet, and all blocks are freed.
    Rounds(u8),
}

impl Sizes {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Fixed(1),
        Self::Fixed(5),
        Self::Fixed(30),
        Self::Mixed,
        Self::Growing,
        Self::Shrinking,
        Self::Never,
        Self::Around,
        Self::Phases,
        Self::Huge,
        Self::Small,
        Self::Rounds(1),
        Self::Rounds(6),
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed(1) => "one size",
            Self::Fixed(_) => "some sizes",
            Self::Mixed => "mixed",
            Self::Growing => "growing",
            Self::Shrinking => "shrinking",
            Self::Never => "never twice",
            Self::Around => "around a segment",
            Self::Phases => "phases",
            Self::Huge => "1 to 8 GiB",
            Self::Small => "below 4 MiB",
            Self::Rounds(1) => "a block a round",
            Self::Rounds(_) => "blocks in rounds",
        }
    }

    /// The length of request `number`, from the random number `drawn`.
    pub(super) fn size(self, number: u32, drawn: u16) -> u64 {
        let part = |least: u64, most: u64| least + (most - least) * u64::from(drawn) / 0xffff;
        // Each doubling equally often, and evenly within it.
        let doubling = |least: u64, doublings: u64| {
            let steps = u64::from(drawn) * doublings;
            let whole = least << (steps >> 16);
            whole + ((whole * (steps & 0xffff)) >> 16)
        };
        let fixed = |kinds: u64, of: u64| {
            let kind = u64::from(drawn) % kinds + of * kinds;
            // Sizes unrelated to powers of two.
            4 * MIB + (kind * 0x9e37_79b9 % 0x1_0000) * (296 * MIB) / 0x1_0000
        };
        match self {
            Self::Fixed(kinds) => fixed(kinds.into(), 0),
            Self::Mixed => doubling(4 * MIB, 8),
            Self::Growing => 8 * MIB + u64::from(number) * 300 * 1024 + part(0, 64 * 1024),
            Self::Shrinking => {
                let less = u64::from(number) * 300 * 1024;
                (450 * MIB).saturating_sub(less).max(4 * MIB) + part(0, 64 * 1024)
            }
            Self::Never => part(4 * MIB, 200 * MIB) + u64::from(number) * 4097,
            Self::Around => part(GIB * 8 / 10, GIB * 13 / 10),
            Self::Phases => fixed(5, u64::from(number / 100) % 5),
            Self::Huge => part(GIB, 8 * GIB),
            Self::Small => doubling(4096, 10),
            Self::Rounds(_) => part(50 * MIB, 400 * MIB),
        }
    }
}
