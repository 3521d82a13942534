//! How much is said on standard error. The value alone; `log` in the bridge speaks.

use serde::Serialize;

/// The level of messages; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing.
    Off,
    /// Messages that a user should act on.
    Warn,
    /// Milestones: a warm-up, growth, a cleared cache.
    Info,
    /// Every pin and unpin, with its time.
    Debug,
}

impl Level {
    /// The values of `BUDDY_LOG`.
    pub(crate) const WORDS: [(&str, Self); 4] = [
        ("off", Self::Off),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];
}
