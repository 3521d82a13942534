//! The warm-up that the user asked for: how many segments are missing (the *deficit*), and when
//! segments that a clear unpinned are pinned again.
//!
//! Pure numbers; knows no region, no worker and no time.

use super::{Refusal, Settings, WarmUp};

/// Progress of the warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `cold`, `running`, `paused` (after a clear, until demand shows) or `done`.
    pub phase: &'static str,
    /// Segments that the warm-up has pinned, including those pinned again after a clear.
    pub pinned: usize,
    /// Segments that are still missing.
    pub deficit: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Warm {
    /// Whether the user asked for a number of segments.
    told: bool,
    /// Segments that are still missing.
    deficit: usize,
    /// Bytes that were pinned and do not add up to a segment yet.
    credit: usize,
    pinned: usize,
    /// Bytes that requests must pin before segments that a clear unpinned are pinned again.
    demanded: usize,
    /// `warm_up()` was called since the last clear.
    urged: bool,
    /// A pin was refused: nothing is pinned ahead until the next clear.
    refused: bool,
}

impl Warm {
    pub(super) fn new(settings: &Settings) -> Self {
        let told = settings.count.is_some() || settings.warm_up == WarmUp::Sync;
        Self {
            told,
            deficit: settings.count.unwrap_or(Settings::UNSET_COUNT),
            credit: 0,
            pinned: 0,
            demanded: 0,
            urged: false,
            refused: false,
        }
    }

    /// Whether segments that the user asked for are missing.
    pub(super) fn has_deficit(&self) -> bool {
        self.told && self.deficit > 0
    }

    /// Whether the warm-up waits for demand after a clear.
    pub(super) fn stands_back(&self) -> bool {
        self.demanded > 0 && !self.urged
    }

    pub(super) fn is_urged(&self) -> bool {
        self.urged
    }

    /// Whether a refused pin has ended pinning ahead.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// The user wants the missing segments now, whatever the mode and whatever was refused before;
    /// `held` bytes are pinned.
    pub(super) fn urge(&mut self, held: usize, settings: &Settings) {
        self.told = true;
        self.urged = true;
        let count = settings.count.unwrap_or(Settings::UNSET_COUNT);
        let missing = count.saturating_sub(held / settings.segment_bytes);
        self.deficit = self.deficit.max(missing);
    }

    /// Cuts the deficit to `most` segments; returns the deficit before.
    pub(super) fn limit(&mut self, most: usize) -> usize {
        let deficit = if self.has_deficit() { self.deficit } else { 0 };
        if deficit > most {
            self.deficit = most;
        }
        deficit
    }

    /// The progress; `comes` says whether the missing segments will be pinned at all.
    pub(super) fn progress(&self, at_work: bool, comes: bool, any_pinned: bool) -> Progress {
        let deficit = if comes { self.deficit } else { 0 };
        let phase = match (at_work, deficit) {
            (true, _) => "running",
            (false, 0) if self.told || any_pinned => "done",
            _ if !any_pinned && self.pinned == 0 => "cold",
            _ => "paused",
        };
        Progress { phase, pinned: self.pinned, deficit }
    }

    /// Bytes that the user asked to have ready.
    pub(super) fn told_bytes(&self, settings: &Settings) -> usize {
        if self.told {
            let count = settings.count.unwrap_or(Settings::UNSET_COUNT);
            settings.segment_bytes.saturating_mul(count)
        } else {
            0
        }
    }

    /// A request pinned `bytes` itself: the deficit shrinks by as much, in whole segments.
    pub(super) fn count_request(&mut self, bytes: usize, settings: &Settings) {
        if bytes > settings.segment_bytes {
            return;
        }
        self.demanded = self.demanded.saturating_sub(bytes);
        if self.deficit > 0 {
            self.give_credit(bytes, settings);
        }
    }

    /// Returns how many whole segments there are more.
    fn give_credit(&mut self, bytes: usize, settings: &Settings) -> usize {
        self.credit += bytes;
        let segments = (self.credit / settings.segment_bytes).min(self.deficit);
        self.deficit -= segments;
        self.credit %= settings.segment_bytes;
        segments
    }

    /// The worker pinned a region of `bytes`.
    pub(super) fn count_segment(&mut self, bytes: usize, settings: &Settings) {
        if !self.has_deficit() {
            return;
        }
        if bytes >= settings.segment_bytes {
            self.deficit -= 1;
            self.pinned += 1;
        } else {
            self.pinned += self.give_credit(bytes, settings);
        }
    }

    /// A clear unpinned `bytes`.
    pub(super) fn clear(&mut self, bytes: usize, settings: &Settings) {
        self.demanded = 0;
        self.returned(bytes, settings);
        self.refused = false;
    }

    /// `bytes` were unpinned. They come again once requests have pinned a quarter of that.
    pub(super) fn returned(&mut self, bytes: usize, settings: &Settings) {
        let most = settings.count.unwrap_or(Settings::UNSET_COUNT);
        if self.told && most > 0 {
            self.deficit = (self.deficit + bytes / settings.segment_bytes).min(most);
            self.demanded += bytes / 4;
        }
        self.credit = 0;
        self.urged = false;
    }

    /// A pin was refused. Unless it was only stopped, nothing more is pinned ahead.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        if refusal != Refusal::Stopped {
            self.deficit = 0;
            self.refused = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::tests::settings;

    const MIB: usize = 1 << 20;

    fn four_of_64_mib() -> (Warm, Settings) {
        let settings = Settings { segment_bytes: 64 * MIB, warm_up: WarmUp::Off, count: Some(4), ..settings() };
        (Warm::new(&settings), settings)
    }

    #[test]
    fn what_requests_pinned_before_a_clear_counts_for_nothing_after_it() {
        let (mut warm, settings) = four_of_64_mib();
        for _ in 0..20 {
            warm.count_request(8 * MIB, &settings);
            warm.clear(64 * MIB, &settings);
            assert_eq!(warm.deficit, 4);
        }
    }

    #[test]
    fn who_calls_for_a_warm_up_gets_what_is_missing_whatever_was_refused() {
        let (mut warm, settings) = four_of_64_mib();
        warm.refused(Refusal::Driver);
        warm.urge(100 * MIB, &settings);
        assert_eq!(warm.deficit, 3);
        warm.urge(300 * MIB, &settings);
        assert_eq!(warm.deficit, 3, "less is never missing than was before");
    }
}
