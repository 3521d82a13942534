//! What allocators that do not know the future would have pinned for the same requests.

use pinbuddy_events::MOST_BYTES;
use pinbuddy_plan::Block;
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::replay::{self, Outcome, Run};
use pinbuddy_replay::step::{Act, Step};
use serde::Serialize;

use crate::effort::gap_percent;

/// What one of them came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// The most that it had pinned at once.
    pub peak: u64,
    /// How far that is above the lower bound, which is the most that lived at once where nothing is placed.
    pub gap_percent: f64,
    /// The most that lived at once over `peak`.
    pub efficiency: f64,
    /// Processor time of the model.
    pub seconds: f64,
    /// Calls to the driver that pinned.
    pub pins: u64,
    /// Requests that waited for the driver.
    pub waits: u64,
    /// It pinned more than 2 TiB and was replayed no further.
    pub stopped: bool,
}

impl Baseline {
    /// What a replay came to, beside a lower bound.
    pub fn new(outcome: &Outcome, lower_bound: u64) -> Self {
        Self {
            peak: outcome.peak_pinned_bytes,
            gap_percent: gap_percent(outcome.peak_pinned_bytes, lower_bound),
            efficiency: ratio(outcome.largest_live_bytes, outcome.peak_pinned_bytes),
            seconds: outcome.seconds,
            pins: outcome.pins,
            waits: outcome.misses,
            stopped: stopped(outcome),
        }
    }
}

/// One over the other; 1 where both are 0.
pub fn ratio(one: u64, other: u64) -> f64 {
    match other {
        0 => 1.0,
        _ => one as f64 / other as f64,
    }
}

/// Stock, and the engine as it comes, which serves requests of so many bytes and more.
pub fn runs(threshold_bytes: u64) -> [Box<dyn Run>; 2] {
    let settings = Settings { threshold_bytes, ..Settings::default() };
    [Kind::Stock, Kind::Pinbuddy].map(|it| replay::on(it, settings))
}

/// A model that pins more is replayed no further: no machine has so much, and a model takes memory in proportion.
pub(crate) const MOST_PINNED: u64 = 2 << 40;

/// Steps of a batch: few enough to stay in a core's cache.
const BATCH: usize = 1 << 14;

/// Replays that get the same steps, a batch at a time.
pub(crate) struct Replays {
    runs: Vec<Tried>,
    batch: Vec<Step>,
    /// Requested by the batch.
    bytes: u64,
}

/// A replay, or what it came to until it pinned too much.
enum Tried {
    Goes(Box<dyn Run>),
    Stopped(Outcome),
}

impl Replays {
    pub(crate) fn new(runs: Vec<Box<dyn Run>>) -> Self {
        Self { runs: runs.into_iter().map(Tried::Goes).collect(), batch: Vec::with_capacity(BATCH), bytes: 0 }
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.batch.push(step);
        if let Act::Alloc { bytes, .. } = step.act {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if self.batch.len() == BATCH || self.bytes > MOST_PINNED / 4 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        for tried in &mut self.runs {
            if let Tried::Goes(run) = tried {
                run.batch(&self.batch);
                let outcome = run.outcome();
                if outcome.pinned_bytes_at_end > MOST_PINNED {
                    *tried = Tried::Stopped(outcome);
                }
            }
        }
        self.batch.clear();
        self.bytes = 0;
    }

    /// What each came to.
    pub(crate) fn outcomes(mut self) -> Vec<Outcome> {
        self.flush();
        let each = self.runs.into_iter().map(|tried| match tried {
            Tried::Goes(run) => run.outcome(),
            Tried::Stopped(outcome) => outcome,
        });
        each.collect()
    }
}

/// Whether a replay was ended early.
pub(crate) fn stopped(outcome: &Outcome) -> bool {
    outcome.pinned_bytes_at_end > MOST_PINNED
}

/// Both on blocks that live once: what ends at a moment does so before anything begins. None where sizes are no bytes of
/// any machine. The engine serves blocks of all sizes.
pub(crate) fn of_blocks(blocks: &[Block], bound: u64) -> Option<[Baseline; 2]> {
    if bound > MOST_PINNED || blocks.iter().any(|it| it.size > MOST_BYTES) {
        return None;
    }
    let mut events = Vec::with_capacity(blocks.len() * 2);
    for (number, block) in (0_u32..).zip(blocks) {
        events.push((block.lower, true, number));
        events.push((block.upper, false, number));
    }
    events.sort_unstable();
    let mut replays = Replays::new(runs(0).into());
    for (at, begins, block) in events {
        let bytes = blocks[block as usize].size;
        let act = match begins {
            true => Act::Alloc { block, bytes },
            false => Act::Free { block },
        };
        replays.push(Step { at, act });
    }
    let outcomes = replays.outcomes();
    Some([0, 1].map(|it| Baseline::new(&outcomes[it], bound)))
}
