//! An allocator's model, replayed step by step: what it had pinned at each moment, when requests waited for the driver,
//! and where blocks were.

use pinbuddy_replay::replay::{Run, State};
use pinbuddy_replay::step::Step;

use super::curve::{COARSE, Curve, FINE};
use super::map::{Map, Mapping};
use super::recording::Recording;
use crate::baseline::MOST_PINNED;

/// What was seen.
#[derive(Debug)]
pub(super) struct Seen {
    /// Bytes pinned.
    pub(super) pinned: Curve,
    /// Requests so far that waited for the driver.
    pub(super) waits: Curve,
    pub(super) last: State,
    /// It pinned more than 2 TiB and was replayed no further.
    pub(super) stopped: bool,
}

/// Replays all steps.
pub(super) fn observe(run: &mut dyn Run, steps: &[Step]) -> Seen {
    watch(run, steps, &mut |_, _| {})
}

/// The same, and where `shown` are.
pub(super) fn observe_with_map(run: &mut dyn Run, recording: &Recording, shown: &[usize]) -> (Seen, Map) {
    let (mut mapping, mut next) = (Mapping::default(), 0);
    let mut at_step = 0;
    run.policy().watch();
    let seen = watch(run, &recording.steps, &mut |run, step| {
        mapping.follow(&run.policy().changes(), step.at);
        while let Some(row) = recording.rows.get(next)
            && row.step <= at_step
        {
            mapping.place(run.policy().place(row.number));
            next += 1;
        }
        at_step += 1;
    });
    // A replay that was stopped left the rest out.
    (seen, mapping.end(recording, shown))
}

fn watch(run: &mut dyn Run, steps: &[Step], also: &mut dyn FnMut(&mut dyn Run, &Step)) -> Seen {
    let mut seen =
        Seen { pinned: Curve::new(FINE), waits: Curve::new(COARSE * 4), last: State::default(), stopped: false };
    for step in steps {
        run.step(*step);
        let state = run.state();
        seen.pinned.push(step.at, state.pinned);
        seen.waits.push(step.at, state.misses);
        seen.last = state;
        also(run, step);
        if state.pinned > MOST_PINNED {
            seen.stopped = true;
            break;
        }
    }
    seen
}
