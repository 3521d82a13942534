//! `BUDDY_PLAN`: whether this process uses a plan, makes one, or neither.
//!
//! A program that has run before does what it did then. So the first run with a new file name is recorded, planned and
//! written ([`record`], [`planner`]); later ones read the file, and what it says is pinned before it is needed.
//!
//! Small requests are planned, too: unless the user has set a threshold, a run is recorded for a plan of all requests,
//! and a plan brings its own threshold. The run that is recorded keeps the default one.
//!
//! A first run may have ended early, with an error after a few steps. So a plan of few requests is used, and the run is recorded
//! beside it: where it makes many more, its plan replaces that one ([`to_record`]), if both are the same program's ([`fit`]).
//!
//! Invariants: a plan that cannot be used costs one warning and nothing else; the plan of another run or program is replaced
//! only if the user asks for that, and a file of another kind never. Knows no engine.

pub(crate) mod auto;
pub(crate) mod fit;
mod none;
pub(crate) mod planner;
pub(crate) mod record;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
mod renew;
mod room;
mod unusable;

use pinbuddy_core::{Growth, Settings, WarmUp};
use pinbuddy_plan::Plan;
use pinbuddy_plan::file::{GRANULE, MadeFor};
use pinbuddy_slots::{Layout, Slots};
use pinbuddy_store::{Memory, body};

use crate::backing::pages::sizes;
use crate::config::{Config, MIB, Origin};
use crate::log;
use pinbuddy_store::launcher;

#[cfg_attr(not(feature = "torch"), allow(unused_imports))]
pub(crate) use auto::Chosen;
pub use auto::Place;
use none::NoPlan;
pub use record::Recording;
#[cfg_attr(not(feature = "torch"), allow(unused_imports))]
pub(crate) use renew::Fate;
pub(crate) use unusable::Unusable;
use unusable::text;

/// A plan of so many requests is a whole run's. Another one is replaced by that of a run with so many times its requests.
const WHOLE: u64 = 4096;
const TIMES: u64 = 4;

/// A run that is recorded, and where its plan is written.
#[derive(Clone, Debug)]
pub struct ToRecord {
    /// The file.
    pub place: Place,
    /// The run.
    pub run: MadeFor,
    /// Only a run of more requests is planned.
    pub above: usize,
    /// The plan that is there, and that this run uses.
    pub beside: Option<Box<Beside>>,
}

/// The plan that a run uses which is recorded all the same.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What it has places for.
    pub plan: Plan,
    /// Whether it may be replaced if it does not fit this run.
    pub update: bool,
}

impl ToRecord {
    /// This run, where there is no plan yet.
    #[cfg(test)]
    pub(crate) fn new(path: std::path::PathBuf, run: MadeFor) -> Self {
        Self::at(Place::named(path), run)
    }

    fn at(place: Place, run: MadeFor) -> Self {
        Self { place, run, above: 0, beside: None }
    }
}

/// What becomes of a variable that names a plan's file, or has one chosen.
#[derive(Debug)]
pub enum Choice<P = Plan> {
    /// It is not set, or its file cannot be used and is not to be replaced.
    Nothing,
    /// This plan is used.
    Use(P),
    /// The run is recorded, and its plan written to the file.
    Record(ToRecord),
}

/// What becomes of a variable, where its file is, and a warning if that cannot be used.
pub type Decided<P = Plan> = (Choice<P>, Option<Place>, Option<String>);

/// Decides for pinned memory, in a run with this release of PyTorch.
pub fn choose(config: &Config, torch: &str) -> Decided {
    let place = Place::of(config.plan.value.as_deref(), Memory::Pinned, config, torch);
    at(place, |place| choose_at(place, config, torch))
}

/// Decides for what is found at a place; where there is none, for nothing.
pub(crate) fn at<P>(
    place: Result<Option<Place>, String>,
    decide: impl FnOnce(&Place) -> (Choice<P>, Option<String>),
) -> Decided<P> {
    match place {
        Ok(None) => (Choice::Nothing, None, None),
        Ok(Some(place)) => {
            let (choice, said) = decide(&place);
            (choice, Some(place), said)
        }
        Err(why) => (Choice::Nothing, None, Some(why)),
    }
}

fn choose_at(place: &Place, config: &Config, torch: &str) -> (Choice, Option<String>) {
    if config.guard.value {
        let why = "BUDDY_PLAN has no effect beside BUDDY_GUARD=1, which looks for mistakes".to_owned();
        return (Choice::Nothing, Some(why));
    }
    // Unless the user has set a threshold, requests of all sizes are planned.
    let threshold = match config.threshold_mb.origin {
        Origin::Default => 0,
        _ => config.threshold_bytes() as u64,
    };
    let run = this_run(torch, threshold);
    decide(place, config, run, |text, run| {
        let plan = Plan::read(text)?;
        let mut run = run.clone();
        run.threshold = own_threshold(&plan, config).unwrap_or(run.threshold);
        plan.fits(&run)?;
        Ok(plan)
    })
}

/// How this run is recorded, if it is: for its first plan, or beside one of few requests, or beside one that is to be replaced if it
/// does not fit, for as long as it takes to see whether it does.
pub fn to_record(choice: &Choice, config: &Config, place: Option<&Place>) -> Option<ToRecord> {
    let plan = match choice {
        Choice::Record(first) => return Some(first.clone()),
        Choice::Use(plan) => plan,
        Choice::Nothing => return None,
    };
    let requests = plan.facts.requests;
    // A kept plan is renewed where runs of its program come to differ.
    let update = config.plan_update.value || place.is_some_and(Place::is_kept);
    // None: not a recorded run's.
    let above = match requests {
        1..WHOLE => (TIMES * requests) as usize,
        WHOLE.. if update => usize::MAX,
        _ => return None,
    };
    let plan = plan.clone();
    let place = place?.clone();
    place.prepare().ok()?;
    Some(ToRecord { place, run: plan.made_for.clone(), above, beside: Some(Box::new(Beside { plan, update })) })
}

/// This run, with this release of PyTorch; requests of `threshold` bytes or more are planned.
pub(crate) fn this_run(torch: &str, threshold: u64) -> MadeFor {
    let (rank, world_size) = launcher::rank_of_all().unwrap_or((0, 1));
    MadeFor { torch: torch.to_owned(), world_size: world_size as u32, rank: rank as u32, threshold }
}

/// Decides for the file at this place, whose text `read` reads and compares with the run.
///
/// Nobody names a kept file, so nobody removes one that cannot be used: it is made anew, whatever is in it. Nor has anybody asked for
/// this program's plan: that there is none is a milestone.
pub(crate) fn decide<P>(
    place: &Place,
    config: &Config,
    run: MadeFor,
    read: impl FnOnce(&str, &MadeFor) -> Result<P, Unusable>,
) -> (Choice<P>, Option<String>) {
    let run = place.run(run);
    let path = &place.path;
    let read = |text: String| {
        let read = place.check(&text).and_then(|()| {
            let own = body(&text);
            match NoPlan::read(own, &run) {
                Some(none) => none.map(Err),
                None => read(own, &run).map(Ok),
            }
        });
        read.map_err(|why| why.unless_ours(&text))
    };
    let text = match place.has_folder() {
        true => text(path),
        false => Ok(None),
    };
    match text.and_then(|text| text.map(read).transpose()) {
        Ok(Some(Ok(plan))) => {
            place.touch();
            (Choice::Use(plan), None)
        }
        Ok(Some(Err(_))) if config.plan_update.value => to_be_recorded(place, run, None),
        Ok(Some(Err(NoPlan { requests, why, .. }))) => {
            place.touch();
            let line = format!(
                "{} says that there is no plan for this program: of {requests} requests {why}. Nothing is planned or recorded; \
                 BUDDY_PLAN_UPDATE=1 records it anew",
                path.display()
            );
            if place.is_kept() {
                log::info(|| line);
                return (Choice::Nothing, None);
            }
            (Choice::Nothing, Some(line))
        }
        Ok(None) => to_be_recorded(place, run, None),
        Err(Unusable { why, to_do }) if place.is_ours() || (to_do.is_none() && config.plan_update.value) => {
            let line = format!("the plan in {} is made anew: {why}", path.display());
            to_be_recorded(place, run, Some(line))
        }
        Err(Unusable { why, to_do }) => {
            let to_do = match place.is_kept() {
                true => format!("remove what is there, or {}", auto::TO_DO),
                false => to_do.unwrap_or("BUDDY_PLAN_UPDATE=1 has it made anew").to_owned(),
            };
            let line = format!(
                "the plan in {} is not used: {why}. The program runs as without a plan; {to_do}",
                path.display()
            );
            (Choice::Nothing, Some(line))
        }
    }
}

/// This run is recorded, if its plan can be written, which of a kept one shows when it is; returns `said`, or that it cannot.
pub(crate) fn to_be_recorded<P>(place: &Place, run: MadeFor, said: Option<String>) -> (Choice<P>, Option<String>) {
    let prepared = match place.is_kept() {
        true => Ok(()),
        false => place.prepare(),
    };
    match prepared {
        Ok(()) => {
            let recorded = ToRecord::at(place.clone(), place.run(run));
            (Choice::Record(recorded), said)
        }
        Err(why) => {
            let line = format!("this run is not recorded for a plan in {}: {why}", place.path.display());
            (Choice::Nothing, Some(line))
        }
    }
}

/// The plan's own threshold, if it is the one to use: the user has set none, and it is one that can be set.
fn own_threshold(plan: &Plan, config: &Config) -> Option<u64> {
    let own = plan.made_for.threshold;
    let is_free = config.threshold_mb.origin == Origin::Default;
    (is_free && own.is_multiple_of(MIB as u64)).then_some(own)
}

/// What the provisioner is set to beside a plan, and what the plan's slots are. The threshold becomes the plan's.
///
/// Regions that slots name are the plan's own; all others are segments that the warm-up pins. Nothing is pinned ahead
/// beyond them, unless the user says so.
pub fn apply(plan: &Plan, config: &mut Config) -> Option<(Settings, Slots)> {
    if let Some(own) = own_threshold(plan, config) {
        config.threshold_mb.value = own as usize / MIB;
    }
    let own = plan.with_slots();
    let as_set = config.of_the_provisioner();
    let engines = &plan.regions[own..];
    let settings = Settings {
        segment_bytes: each_of(engines).unwrap_or(as_set.segment_bytes),
        count: Some(engines.len()),
        growth: unless_set(config.growth.origin, Growth::Exact, as_set.growth),
        warm_up: unless_set(config.warm_up.origin, WarmUp::Sync, as_set.warm_up),
        ..as_set
    };
    // A plan that was read has no mistake.
    Some((settings, Slots::new(&whole(plan.layout(own), unit())).ok()?))
}

/// The unit in which regions are pinned: the machine's page, or the engine's unit where that is larger. Regions of a plan
/// from elsewhere may end within a page, and are as long as they count.
fn unit() -> usize {
    (GRANULE as usize).max(sizes().page)
}

/// The same slots, in regions of whole units.
fn whole(mut layout: Layout, unit: usize) -> Layout {
    for bytes in &mut layout.regions {
        *bytes = bytes.next_multiple_of(unit);
    }
    layout
}

/// Segments are equally long, as a planner's regions for them are; where they are not, their sum is what counts.
fn each_of(regions: &[u64]) -> Option<usize> {
    let sum: u64 = regions.iter().sum();
    let each = sum.checked_div(regions.len() as u64)?;
    Some((each as usize).next_multiple_of(unit()))
}

fn unless_set<T>(origin: Origin, planned: T, set: T) -> T {
    match origin.is_set() {
        true => set,
        false => planned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backing::pages::tests::KERNELS;
    use crate::config::of_pairs as read;

    #[test]
    fn regions_of_a_plan_are_whole_pages() {
        for page in KERNELS.map(|it| it.page) {
            let layout = Layout { regions: vec![2 * page + GRANULE as usize, 2 * page], ..Layout::default() };
            assert_eq!(whole(layout, page).regions, [3 * page, 2 * page]);
        }
    }

    #[test]
    fn the_warm_up_pins_what_the_plan_says_and_no_more() {
        const GIB: u64 = 1 << 30;
        for regions in [vec![], vec![3 * GIB], vec![64 * GIB, GIB], vec![40 * GIB; 3]] {
            let sum: u64 = regions.iter().sum();
            let plan = Plan { regions, ..Plan::default() };
            let (mut config, _) = read(&[]);
            let (settings, _) = apply(&plan, &mut config).unwrap();
            let count = settings.count.unwrap() as u64;
            let pinned = settings.segment_bytes as u64 * count;
            assert!((sum..=sum + count * GRANULE).contains(&pinned), "{settings:?} for {sum}");
            assert!(settings.segment_bytes as u64 <= 64 * GIB, "{settings:?}");
        }
    }

    #[test]
    fn beside_a_plan_of_few_requests_the_run_is_recorded() {
        let place = Place::named("plan.json".into());
        let (config, _) = read(&[("BUDDY_PLAN", "plan.json")]);
        let above = |config: &Config, requests| {
            let mut plan = Plan::default();
            plan.facts.requests = requests;
            to_record(&Choice::Use(plan), config, Some(&place)).map(|it| it.above)
        };
        // The third is no recorded run's.
        let found = [1, 4095, 0, 4096, 1 << 40].map(|it| above(&config, it));
        assert_eq!(found, [Some(4), Some(4 * 4095), None, None, None]);
        let (update, _) = read(&[("BUDDY_PLAN", "plan.json"), ("BUDDY_PLAN_UPDATE", "1")]);
        assert_eq!([0, 1, 4096].map(|it| above(&update, it)), [None, Some(4), Some(usize::MAX)]);
        assert!(to_record(&Choice::Nothing, &config, Some(&place)).is_none());
    }
}
