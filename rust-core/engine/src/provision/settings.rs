//! What the provisioner is told once, when it is made. Knows no request.

/// How much to pin when nothing fits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Growth {
    /// More than the request, up to a segment, as demand shows.
    #[default]
    Segment,
    /// No more than the request, unless it comes again and again a little larger.
    Exact,
}

/// When segments are pinned ahead of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WarmUp {
    /// By a worker, from the first request on that finds no room.
    #[default]
    Background,
    /// All of them, by that request.
    Sync,
    /// Not at all.
    Off,
}

/// What the provisioner is told once.
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
    /// How many segments to pin ahead. Unset, as much as demand shows; where all are to be pinned
    /// before anything else, [`Settings::UNSET_COUNT`].
    pub count: Option<usize>,
}

impl Settings {
    /// How many segments an explicit warm-up pins where nobody said how many.
    pub const UNSET_COUNT: usize = 8;
}
