//! One plan for runs of a program that differ from one another, such as those with inputs of two shapes.
//!
//! Only one of them is under way at a time. So each keeps its lanes and slots, in the same regions; a thread gets a lane that begins
//! as it does. Knows no file.

use crate::file::{Lane, Plan};
use crate::record::Record;
use crate::trial::try_out;

/// A plan for several reserves at most so many hundredths of what each of them needs: else one of a much larger run would pin for
/// nothing in all others.
const MOST_RESERVED: u64 = 125;

/// It serves at least so many hundredths of the requests that the newest run's own plan serves.
const FEWEST_HITS: u64 = 98;

/// It has at most so many times the lanes of the newest run's own plan: of about so many runs. Older ones go with the whole.
const MOST_RUNS: usize = 4;

/// The plan to keep behind a run with this record, which its own plan `new` was made of and `kept` did not fit: one for both, where a
/// replay shows that it serves this run as well, else `new`.
#[must_use]
pub fn for_several(record: &Record, new: Plan, kept: &Plan) -> Plan {
    let Some(joined) = joined(&new, kept) else {
        return new;
    };
    let (own, both) = (try_out(record, &new), try_out(record, &joined));
    let is_as_good = both.pins <= own.pins && both.hits * 100 >= own.hits * FEWEST_HITS;
    if is_as_good { joined } else { new }
}

/// The lanes of both, those of `new` first; none where that would be too much, or where no lane of one of them comes again.
fn joined(new: &Plan, kept: &Plan) -> Option<Plan> {
    let repeats = |it: &Plan| !it.slots.is_empty() && !it.comes_once();
    let lanes = new.lanes.len() + kept.lanes.len();
    let is_small = lanes <= MOST_RUNS * new.lanes.len();
    if !(repeats(new) && repeats(kept) && is_small && new.made_for == kept.made_for) {
        return None;
    }
    let (own, theirs) = (new.regions.split_at(new.with_slots()), kept.regions.split_at(kept.with_slots()));
    let mut regions = longest(own.0, theirs.0);
    regions.extend(longest(own.1, theirs.1));
    let past = new.slots.len() as u32;
    let moved = |steps: &[u32]| steps.iter().map(|slot| slot + past).collect();
    let others = kept.lanes.iter().map(|lane| Lane {
        prologue: moved(&lane.prologue),
        period: moved(&lane.period),
        ..lane.clone()
    });
    let mut facts = new.facts;
    facts.peak = facts.peak.max(kept.facts.peak);
    facts.lower_bound = facts.lower_bound.max(kept.facts.lower_bound);
    let plan = Plan {
        made_for: new.made_for.clone(),
        regions,
        slots: [&new.slots[..], &kept.slots[..]].concat(),
        lanes: new.lanes.iter().cloned().chain(others).collect(),
        classes: new.classes.max(kept.classes),
        facts,
    };
    let least = new.reserved().min(kept.reserved());
    let most = least.saturating_mul(MOST_RESERVED) / 100;
    (plan.reserved() <= most && plan.check().is_ok()).then_some(plan)
}

/// By place, the longer region of the two.
fn longest(one: &[u64], other: &[u64]) -> Vec<u64> {
    let length = |regions: &[u64], at: usize| regions.get(at).copied().unwrap_or(0);
    let places = 0..one.len().max(other.len());
    places.map(|at| length(one, at).max(length(other, at))).collect()
}
