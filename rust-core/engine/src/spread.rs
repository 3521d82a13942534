//! Whether blocks are cut beside cached ones from idle segments, too.
//!
//! As long as they are cut from segments in use, the others stay idle and can be unpinned. With sizes in random order
//! that leaves the caches too little room: they are flushed again and again, and few requests find a block of their
//! size. So idle segments are tried once a flush that made room follows more cuts than requests that cached blocks have
//! served; where that is so again, they are left alone until the cache is cleared. They are used only while no more than
//! half of what is pinned was ever needed at once: blocks that live on are scattered by it, and more would have to be
//! pinned in the end. Knows counts only.

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    use_of_idle: UseOfIdle,
    /// Since the caches were flushed: blocks that were cut beside cached ones, and whether none had room.
    cuts: u64,
    lacked: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum UseOfIdle {
    #[default]
    Untried,
    Helps,
    HelpsNot,
}

impl Spread {
    /// Whether the next block may come from an idle segment.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.use_of_idle == UseOfIdle::Helps
    }

    /// A block was cut beside cached ones, or none had room.
    #[inline]
    pub(crate) fn cut(&mut self, is_cut: bool) {
        self.cuts += u64::from(is_cut);
        self.lacked |= !is_cut;
    }

    /// The caches are flushed, which have `served` requests since they were last. `roomy`: no more than half of what is
    /// pinned was ever needed at once.
    pub(crate) fn flushed(&mut self, served: u64, roomy: bool) {
        if self.lacked {
            let few = self.cuts > served;
            self.use_of_idle = match self.use_of_idle {
                UseOfIdle::Untried if few && roomy => UseOfIdle::Helps,
                UseOfIdle::Helps if few || !roomy => UseOfIdle::HelpsNot,
                as_before => as_before,
            };
        }
        (self.cuts, self.lacked) = (0, false);
    }
}
