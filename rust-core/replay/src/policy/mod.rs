//! Models of allocators: what each pins for a sequence of requests. One file a model.
//!
//! | policy | what it is |
//! |---|---|
//! | [`stock`] | PyTorch's caching host allocator, as it comes |
//! | `stock-tuned` | the same with `pinned_max_round_threshold_mb:1` |
//! | [`buddy_181094`] | the proposal of pytorch/pytorch#181094 |
//! | [`pinbuddy`] | our engine, driven as the bridge drives it |
//! | `pinbuddy-exact` | the same with `BUDDY_WARMUP=off BUDDY_GROWTH=exact` |
//!
//! A policy knows requests and times; nothing of traces, nor how much is live, which [`crate::replay`]
//! counts. Memory is numbers: nothing is pinned, and pins take no time.
//!
//! Invariant: `pinned` is always the sum of what was pinned and not unpinned.

pub mod buddy_181094;
pub mod pinbuddy;
pub mod stock;

mod pending;

use std::fmt::Debug;

use crate::streams::Until;

pub(crate) use pending::{Order, Pending};

/// A model of an allocator. Numbers of blocks are those of [`crate::step::Act`].
pub trait Policy: Debug {
    /// A request of `bytes` bytes, 1 or more; the block is called `block` until it is freed. Returns
    /// whether the request had to wait for the driver.
    fn allocate(&mut self, at: u64, block: u32, bytes: u64) -> bool;

    /// The block is freed, and may be used again once each of these streams has reached its time.
    fn free(&mut self, block: u32, until: &[Until]);

    /// `empty_cache`.
    fn clear(&mut self, at: u64);

    /// What was pinned so far.
    fn pins(&self) -> Pins;

    /// Where a live block is, if the model has addresses.
    fn place(&self, _block: u32) -> Option<Place> {
        None
    }

    /// Notes down from now on what is pinned and unpinned, if the model has addresses.
    fn watch(&mut self) {}

    /// What was noted down since the last call.
    fn changes(&mut self) -> Vec<Change> {
        Vec::new()
    }

    /// Checks that the model's state is consistent: for tests, and slow.
    ///
    /// # Errors
    ///
    /// What is inconsistent.
    fn audit(&self) -> Result<(), String>;
}

/// Bytes of memory, at an address of the model's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Where they begin. No address is pinned twice.
    pub address: u64,
    /// How many they are.
    pub bytes: u64,
}

/// Memory was pinned or unpinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// All of what was pinned at once.
    pub place: Place,
    /// Else it was unpinned.
    pub pinned: bool,
}

/// What was pinned and unpinned, if somebody watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Option<Vec<Change>>);

impl Changes {
    pub(crate) fn watch(&mut self) {
        self.0.get_or_insert_default();
    }

    #[inline]
    pub(crate) fn note(&mut self, place: Place, pinned: bool) {
        if let Some(changes) = &mut self.0 {
            changes.push(Change { place, pinned });
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Change> {
        self.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// What a policy asked of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// Calls that pinned.
    pub pins: u64,
    /// Calls that unpinned.
    pub unpins: u64,
    /// Bytes pinned now.
    pub bytes: u64,
    /// The most bytes that were pinned at once.
    pub peak: u64,
}

impl Pins {
    /// One more region. A trace may make sums overflow: they stop at the largest `u64`.
    pub(crate) fn pin(&mut self, bytes: u64) {
        self.pins += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.peak = self.peak.max(self.bytes);
    }

    /// Both together; `peak` is the most that they had pinned at once.
    pub(crate) fn with(self, other: Self, peak: u64) -> Self {
        Self {
            pins: self.pins + other.pins,
            unpins: self.unpins + other.unpins,
            bytes: self.bytes.saturating_add(other.bytes),
            peak,
        }
    }

    /// One region less.
    pub(crate) fn unpin(&mut self, bytes: u64) {
        self.unpins += 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Which policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// See [`stock`].
    Stock,
    /// Stock with rounding up to 1 MiB only.
    StockTuned,
    /// See [`buddy_181094`].
    Buddy181094,
    /// See [`pinbuddy`]; with the settings given, by default the bridge's.
    Pinbuddy,
    /// `pinbuddy` with no warm-up and exact growth.
    PinbuddyExact,
}

impl Kind {
    /// All of them, in the order in which they are compared.
    pub const ALL: [Self; 5] = [Self::Stock, Self::StockTuned, Self::Buddy181094, Self::Pinbuddy, Self::PinbuddyExact];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::StockTuned => "stock-tuned",
            Self::Buddy181094 => "buddy-181094",
            Self::Pinbuddy => "pinbuddy",
            Self::PinbuddyExact => "pinbuddy-exact",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// A vector's place for a block; the vector grows as needed.
#[inline]
pub(crate) fn place<T: Default>(places: &mut Vec<T>, block: u32) -> &mut T {
    let index = block as usize;
    if index >= places.len() {
        places.resize_with(index + 1, T::default);
    }
    &mut places[index]
}

#[cfg(test)]
mod tests;
