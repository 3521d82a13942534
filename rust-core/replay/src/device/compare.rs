//! A training with PyTorch's allocator, and with a plan that was made of another run of it.
//!
//! The plan is made of a run with one seed; the runs that are compared have another: experts get other tokens. Beside a
//! run that is like the one that was planned, there are runs that differ from it.

use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;
use serde::Serialize;

use super::planned::Counts;
use super::replay::{Outcome, Replay};
use super::training::{Differs, Training};
use super::{Act, Device, Kind};

/// Steps of the run that is planned, and of those that are compared.
const RECORDED: u32 = 6;
const REPLAYED: u32 = 8;

/// A run with each allocator. Efficiency is the most that was requested over the most that was reserved.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Run {
    /// How it differs from the run that was planned.
    pub differs: &'static str,
    /// PyTorch's allocator as it comes.
    pub stock: Outcome,
    /// With `expandable_segments:True`.
    pub expandable: Outcome,
    /// The plan in front of the first.
    pub plan: Outcome,
    /// The plan in front of the second.
    pub plan_expandable: Outcome,
    /// What became of requests that are planned, with the plan in front of the first.
    pub planned: Counts,
}

/// See the module's documentation.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The training's name.
    pub training: &'static str,
    /// Whether sizes differ from step to step.
    pub varies: bool,
    /// Bytes of the plan's regions.
    pub regions: u64,
    /// The first is like the one that was planned.
    pub runs: Vec<Run>,
}

/// The runs that are compared.
fn runs() -> [(&'static str, Differs); 5] {
    let changed = |changed| Differs { changed, ..Differs::default() };
    let evaluates = Differs { evaluates: true, ..Differs::default() };
    let of_length = |length| Differs { length, ..Differs::default() };
    [
        ("nothing", Differs::default()),
        ("5 % of the requests", changed(50)),
        ("an evaluation", evaluates),
        ("a shorter batch", of_length(75)),
        ("a longer batch", of_length(125)),
    ]
}

/// Compares one; planning asks `stop`.
///
/// # Errors
///
/// Why the plan cannot be used.
pub fn compare(training: &Training, seed: u64, stop: &(dyn Fn() -> bool + Sync)) -> Result<Comparison, String> {
    let recorded = training.acts(seed, RECORDED, Differs::default());
    let options = Options { threads: 1, ..Options::default() };
    // As a process makes one, which knows its own allocator.
    let plan_for = |kind: Kind| {
        let mut record = DeviceRecord::of(&recorded);
        record.behind(kind);
        record.plan(&options, stop)
    };
    let plans = Kind::ALL.map(plan_for);
    let runs = runs().into_iter().map(|(name, differs)| {
        let acts = training.acts(seed + 1, REPLAYED, differs);
        let with = |kind: Kind| {
            let planned = plans[kind as usize].before(0, kind.model());
            let model = planned.map_err(|why| why.to_string())?;
            Ok::<_, String>(replayed(&acts, model))
        };
        let planned = with(Kind::Torch)?;
        Ok(Run {
            differs: name,
            stock: replayed(&acts, Kind::Torch.model()).outcome(),
            expandable: replayed(&acts, Kind::TorchExpandable.model()).outcome(),
            plan_expandable: with(Kind::TorchExpandable)?.outcome(),
            plan: planned.outcome(),
            planned: planned.model().counts(),
        })
    });
    Ok(Comparison {
        training: training.name,
        varies: training.varies(),
        regions: plans[Kind::Torch as usize].reserved(),
        runs: runs.collect::<Result<_, String>>()?,
    })
}

fn replayed<D: Device>(acts: &[Act], model: D) -> Replay<D> {
    let mut replay = Replay::new(model);
    acts.iter().for_each(|act| replay.step(*act));
    replay
}
