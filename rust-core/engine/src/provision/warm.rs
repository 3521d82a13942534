//! The warm-up that the user asked for: how many segments are still to be pinned, and when those that
//! a clear gave back come again. Pure numbers; knows no region, no worker and no time.

use super::{Refusal, Settings, WarmUp};

/// How far the warm-up is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `cold`, `running`, `paused` (a clear came, and the rest waits for demand) or `done`.
    pub phase: &'static str,
    /// How many segments it has pinned, those after clears included.
    pub pinned: usize,
    /// How many are still to come.
    pub owed: usize,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Warm {
    /// Whether the user said how many segments.
    told: bool,
    /// How many are still to be pinned.
    owed: usize,
    /// Bytes that requests pinned by themselves, short of a segment.
    credit: usize,
    pinned: usize,
    /// Some were given back, and come again once requests have asked for this much.
    demanded: usize,
    /// Somebody has asked for it since.
    urged: bool,
    /// Nothing ahead of demand is to be tried until a clear: a pin was refused.
    refused: bool,
}

impl Warm {
    pub(super) fn new(settings: &Settings) -> Self {
        let told = settings.count.is_some() || settings.warm_up == WarmUp::Sync;
        Self {
            told,
            owed: settings.count.unwrap_or(Settings::UNSET_COUNT),
            credit: 0,
            pinned: 0,
            demanded: 0,
            urged: false,
            refused: false,
        }
    }

    /// Whether segments are to be pinned that the user asked for.
    pub(super) fn owes(&self) -> bool {
        self.told && self.owed > 0
    }

    /// Whether they wait for more demand after a clear.
    pub(super) fn stands_back(&self) -> bool {
        self.demanded > 0 && !self.urged
    }

    pub(super) fn is_urged(&self) -> bool {
        self.urged
    }

    /// Whether nothing ahead of demand is to be tried.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// The user wants what is owed now, whatever the mode.
    pub(super) fn urge(&mut self) {
        self.told = true;
        self.urged = true;
    }

    /// Cuts what is owed to `most` segments; returns what it was.
    pub(super) fn limit(&mut self, most: usize) -> usize {
        let owed = if self.owes() { self.owed } else { 0 };
        if owed > most {
            self.owed = most;
        }
        owed
    }

    /// How far it is, where `comes` says whether what is owed is to come at all.
    pub(super) fn progress(&self, at_work: bool, comes: bool, any_pinned: bool) -> Progress {
        let owed = if comes { self.owed } else { 0 };
        let phase = match (at_work, owed) {
            (true, _) => "running",
            (false, 0) if self.told || any_pinned => "done",
            _ if !any_pinned && self.pinned == 0 => "cold",
            _ => "paused",
        };
        Progress {
            phase,
            pinned: self.pinned,
            owed,
        }
    }

    /// What the user asked to have ready, in bytes.
    pub(super) fn told_bytes(&self, settings: &Settings) -> usize {
        if self.told {
            let count = settings.count.unwrap_or(Settings::UNSET_COUNT);
            settings.segment_bytes.saturating_mul(count)
        } else {
            0
        }
    }

    /// A request of `bytes` was pinned by itself: so much less is owed, in whole segments.
    pub(super) fn count_request(&mut self, bytes: usize, settings: &Settings) {
        if bytes > settings.segment_bytes {
            return;
        }
        self.demanded = self.demanded.saturating_sub(bytes);
        if self.owed > 0 {
            self.credit += bytes;
            self.owed = self
                .owed
                .saturating_sub(self.credit / settings.segment_bytes);
            self.credit %= settings.segment_bytes;
        }
    }

    pub(super) fn count_segment(&mut self, bytes: usize, settings: &Settings) {
        if self.owes() && bytes >= settings.segment_bytes {
            self.owed -= 1;
            self.pinned += 1;
        }
    }

    /// `bytes` were given back. A quarter of that has to be asked for before they come again.
    pub(super) fn clear(&mut self, bytes: usize, settings: &Settings) {
        let most = settings.count.unwrap_or(Settings::UNSET_COUNT);
        if self.told && most > 0 {
            self.owed = (self.owed + bytes / settings.segment_bytes).min(most);
            self.demanded = bytes / 4;
        }
        self.urged = false;
        self.refused = false;
    }

    /// Nothing more can be pinned.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        if refusal != Refusal::Stopped {
            self.owed = 0;
            self.refused = true;
        }
    }
}
