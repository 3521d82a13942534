//! How much is said on standard error. The value alone; `log` in the bridge speaks.

words! {
    /// The level of messages; each includes those before it.
    pub enum Level {
        /// Nothing.
        Off = "off",
        /// Messages that a user should act on.
        Warn = "warn",
        /// Milestones: a warm-up, growth, a cleared cache.
        Info = "info",
        /// Every pin and unpin, with its time.
        Debug = "debug",
    }
}
