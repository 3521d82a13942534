//! The provisioner's settings, fixed when it is made.

use std::time::Duration;

/// How much to pin when nothing fits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Growth {
    /// More than the request, up to a segment, as demand shows.
    #[default]
    Segment,
    /// No more than the request, unless requests keep growing a little.
    Exact,
}

/// When segments are pinned ahead of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WarmUp {
    /// By a worker, from the first request that misses.
    #[default]
    Background,
    /// All of them, by that request.
    Sync,
    /// Not at all.
    Off,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size of a segment, in bytes; regions of several requests are no longer.
    pub segment_bytes: usize,
    /// The smallest request that is served, in bytes; with 0, all but empty ones.
    pub threshold_bytes: usize,
    /// How much to pin when nothing fits.
    pub growth: Growth,
    /// When to pin ahead.
    pub warm_up: WarmUp,
    /// How many segments to pin ahead. Unset: as demand shows, or [`Settings::UNSET_COUNT`] with
    /// [`WarmUp::Sync`] and for an explicit warm-up.
    pub count: Option<usize>,
    /// After so long without use memory goes back; unset: never.
    pub idle: Option<Duration>,
}

impl Settings {
    /// How many segments an explicit or synchronous warm-up pins if no number was set.
    pub const UNSET_COUNT: usize = 8;
}
