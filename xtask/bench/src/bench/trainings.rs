//! Device memory of real trainings (`tests/python/device_trainings.py`): what PyTorch reserved, what its model says, and what a
//! plan reserves.
//!
//! Each training runs with the official wheel, with and without expandable segments, and writes a snapshot with its history. A
//! plan is made of the first one, as `pinbuddy plan` does, and replayed in front of the model of PyTorch's allocator. Then the
//! training runs with the fork and `BUDDY_DEVICE_PLAN`, recorded once and planned once. Sizes repeat from run to run to the byte,
//! so there are no rounds.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pinbuddy_events::Whose;
use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_replay::device::history::History;
use pinbuddy_replay::device::replay::{Outcome, Replay};
use pinbuddy_replay::device::{Device, Kind, Settings};
use pinbuddy_snapshot::Snapshot;
use serde_json::json;

use super::environments::Environments;
use super::figure::{Results, Target};
use super::matrix::Matrix;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

const TRAININGS: [&str; 6] = [
    "gpt2",
    "gpt2-for-each",
    "gpt2-recompute",
    "gpt2-accumulated",
    "resnet50",
    "resnet50-large",
];

/// The least that is to be in use, at most, of what a plan reserves; and by how many percent the model may be off.
const EFFICIENCY: f64 = 0.99;
const OFF: f64 = 1.0;

/// How long a plan is looked for.
const PATIENCE: Duration = Duration::from_secs(20);

/// The device's memory, of which none of them needs so much.
const GIB: &str = "80";

/// What a run says: the most that was reserved, what was at the end, and the most that was requested at once.
type Said = [u64; 3];

pub fn run(environments: &Environments, step: &Step, results: &mut Results) -> Result<()> {
    let mut table = Matrix::new(
        "device memory of trainings, most requested at once over most reserved, %",
        [
            "stock",
            "expandable",
            "plan",
            "plan + exp.",
            "a run with a plan",
        ],
    );
    let mut details = serde_json::Map::new();
    for name in TRAININGS {
        step.say(name);
        let folder = Scratch::folder(&paths::target().join("bench/trainings"))?;
        let file = |name: &str| folder.path().join(name);
        let [stock, expandable] = [false, true].map(|expandable| {
            let path = file(if expandable {
                "expandable.pickle"
            } else {
                "stock.pickle"
            });
            Seen::of(environments, name, expandable, &path)
        });
        let (stock, expandable) = (stock?, expandable?);
        let [plan, plan_expandable] = planned(&stock.history)?;
        let plans = file("device.plan");
        let with_plan = || {
            start(
                environments,
                name,
                true,
                &[("BUDDY_DEVICE_PLAN", &plans)],
                None,
            )
        };
        with_plan()?;
        ensure!(plans.is_file(), "the first run of {name} wrote no plan");
        let [reserved, ..] = with_plan()?;
        let ours = stock.said[2] as f64 / reserved as f64;
        for (way, value, target) in [
            ("stock", stock.efficiency(), None),
            ("expandable", expandable.efficiency(), None),
            ("plan", plan, Some(Target::AtLeast(EFFICIENCY))),
            ("plan_expandable", plan_expandable, None),
            ("run", ours, Some(Target::AtLeast(EFFICIENCY))),
        ] {
            results.value(&["training_efficiency", name, way], value, target);
        }
        for (way, it) in [("stock", &stock), ("expandable", &expandable)] {
            let target = Some(Target::AtMost(OFF));
            results.value(&["model_off_percent", name, way], it.off_percent(), target);
        }
        let all = [
            stock.efficiency(),
            expandable.efficiency(),
            plan,
            plan_expandable,
            ours,
        ];
        table.row(name, all.map(|it| Some(100.0 * it)), 2);
        let requested = stock.said[2];
        details.insert(
            name.to_owned(),
            json!({ "requested": requested, "acts": stock.history.acts.len() }),
        );
    }
    results.tables.push(table.to_string());
    results.detail("trainings", details.into());
    Ok(())
}

/// A training with the official wheel.
struct Seen {
    said: Said,
    history: History,
    /// What the model and the allocator reserved at most, and at the end.
    amounts: [(u64, u64); 2],
}

impl Seen {
    fn of(environments: &Environments, name: &str, expandable: bool, path: &Path) -> Result<Self> {
        let setting = format!(
            "expandable_segments:{}",
            if expandable { "True" } else { "False" }
        );
        let conf = Path::new(&setting);
        let said = start(
            environments,
            name,
            false,
            &[("PYTORCH_CUDA_ALLOC_CONF", conf)],
            Some(path),
        )?;
        let snapshot = Snapshot::read(BufReader::new(File::open(path)?))?;
        let history = History::of(snapshot.entries(Whose::Device(0)));
        let agreement = history.compare(Settings {
            expandable,
            ..Settings::default()
        });
        let [peak, end, _] = said;
        ensure!(
            (agreement.peak.1, agreement.end.1) == (peak, end),
            "the history of {name} is not whole: {agreement:?}, and PyTorch says {said:?}"
        );
        Ok(Self {
            said,
            history,
            amounts: [agreement.peak, agreement.end],
        })
    }

    fn efficiency(&self) -> f64 {
        let [peak, _, requested] = self.said;
        requested as f64 / peak as f64
    }

    /// By how much the model is off, the larger of the two.
    fn off_percent(&self) -> f64 {
        let off = |(model, real): (u64, u64)| 100.0 * model.abs_diff(real) as f64 / real as f64;
        self.amounts.map(off).into_iter().fold(0.0, f64::max)
    }
}

/// A plan of this history in front of the model, as it comes and with expandable segments.
fn planned(history: &History) -> Result<[f64; 2]> {
    let begun = Instant::now();
    let stop = || begun.elapsed() > PATIENCE;
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    let plan = DeviceRecord::of(&history.acts).plan(&options, &stop);
    let efficiency = |kind: Kind| -> Result<f64> {
        let model = plan.before(0, kind.model())?;
        let reached = replayed(history, model).efficiency;
        reached.context("a training that reserves memory")
    };
    Ok([efficiency(Kind::Torch)?, efficiency(Kind::TorchExpandable)?])
}

fn replayed(history: &History, model: impl Device) -> Outcome {
    let mut replay = Replay::new(model);
    history.acts.iter().for_each(|act| replay.step(*act));
    replay.outcome()
}

/// Runs a training, and reads what it says.
fn start(
    environments: &Environments,
    name: &str,
    fork: bool,
    variables: &[(&str, &Path)],
    snapshot: Option<&Path>,
) -> Result<Said> {
    let mut command = environments.command(environments.environment(fork).python())?;
    command
        .arg(paths::root().join("tests/python/device_trainings.py"))
        .arg(name)
        .args(snapshot)
        .envs(variables.iter().copied())
        .env("PINBUDDY_SIM_DEVICE_GB", GIB)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().context("running a training")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed:\n{complaint}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.trim().lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{name} said {line:?}"))
}
