//! Times of second runs, those with a plan: the first iteration, and a pair of allocate and free.
//!
//! Memory is counted, so that any size fits any machine, and pins take a driver's time ([`PACE`]). Small workloads
//! run with pages locked for real, too. What is pinned is in the part `memory`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pinbuddy_events::Op;
use pinbuddy_replay::workload::{Sizes, WORKLOADS, Workload};
use serde_json::{Value, json};

use super::context;
use super::effort::Effort;
use super::figure::{Results, Target};
use super::fixture::Fixture;
use super::harness::{Answer, Harness, in_turns};
use super::matrix::Matrix;
use super::planned::Planned;
use super::stats::{median, ratio_of_turns};
use super::subject::{Memory, Settings, Subject};
use super::trace::Compact;
use xtask_support::paths;
use xtask_support::progress::Step;
use xtask_support::scratch::Scratch;

/// Milliseconds that the simulated driver takes for a GiB.
const PACE: u32 = 300;
/// Inputs of the run that is recorded, and of the second one.
const RECORDED_SEED: u64 = 1;
const OTHER_SEED: u64 = 2;
/// Each round takes minutes, most of them pins of stock's.
const MOST_ROUNDS: usize = 3;
/// Workloads with at most so many bytes live run with pages locked, too. Stock pins up to two and a half times as much.
const LOCKED: u64 = 3 << 29;
/// Patterns of requests that repeat: the name, and the name in the harness.
const PATTERNS: [(&str, &str); 4] = [
    ("8MiB", "8388608"),
    ("mixed", "mixed"),
    ("50-sizes", "50-sizes"),
    ("event", "event"),
];
const PAIRS: u32 = 4_000;
/// So many pairs are recorded. Nothing else happens between them, and many more would overrun the recorder.
const RECORDED: u32 = 2_000;

/// A figure's rounds by workload or pattern.
type Rounds = BTreeMap<&'static str, Vec<f64>>;

/// The times of a run.
struct Times {
    /// Nanoseconds within the allocator, by iteration.
    iterations: Vec<f64>,
}

#[derive(Default)]
struct Seen {
    /// Stock's first iteration over the planned one's: warm before it, and with the warm-up within it.
    ready: Rounds,
    cold: Rounds,
    /// The same as `ready`, with pages locked; not of workloads whose plan the machine had no room for in some round.
    locked: Rounds,
    no_room: BTreeSet<&'static str>,
    /// Seconds of the warm-up at the driver's pace, and of both first iterations.
    warm_up: Rounds,
    stocks_first: Rounds,
    first: Rounds,
    /// A pair's time over stock's: with a plan, and with the defaults.
    pair: Rounds,
    default_pair: Rounds,
}

/// Measures the named workloads alone, or all of them and the patterns.
pub fn run(fixture: &Fixture, names: &[&str], step: &Step, results: &mut Results) -> Result<()> {
    let mut seen = Seen::default();
    let workloads: Vec<&'static Workload> = WORKLOADS
        .iter()
        .filter(|it| fixture.effort != Effort::Smoke || it.name == "tensors-155")
        .filter(|it| names.is_empty() || names.contains(&&*format!("plan/{}", it.name)))
        .collect();
    for workload in &workloads {
        whole(fixture, workload, step, &mut seen)?;
    }
    let patterns = match fixture.effort {
        _ if !names.is_empty() => &[],
        Effort::Smoke => &PATTERNS[..1],
        _ => &PATTERNS[..],
    };
    for &(name, requests) in patterns {
        step.say(format!("pairs, {name}"));
        pairs(fixture, name, requests, &mut seen)?;
    }
    record(&mut seen, results);
    Ok(())
}

/// A workload from its first request to its last.
fn whole(
    fixture: &Fixture,
    workload: &'static Workload,
    step: &Step,
    seen: &mut Seen,
) -> Result<()> {
    let steps = match fixture.effort {
        Effort::Smoke => workload.steps.min(4),
        _ => workload.steps,
    };
    // Where sizes vary, those of the run that was recorded never come again.
    let seed = match workload.sizes {
        Sizes::Fixed => RECORDED_SEED,
        Sizes::Vary => OTHER_SEED,
    };
    let recorded = trace(workload, RECORDED_SEED, steps, false)?;
    let all = trace(workload, seed, steps, false)?;
    let first = trace(workload, seed, steps, true)?;
    let recorded_file = Scratch::file(&paths::target().join("bench/plan-recorded"))?;
    let all_file = Scratch::file(&paths::target().join("bench/plan-trace"))?;
    let first_file = Scratch::file(&paths::target().join("bench/plan-first"))?;
    recorded.write(recorded_file.path())?;
    all.write(all_file.path())?;
    first.write(first_file.path())?;
    step.say(format!("{}, the first run", workload.name));
    // Waits for the warm-up before each request, as fast as a program: else the recorder would be overrun.
    let slowly = format!("replay {} free", recorded_file.path().display());
    let planned = Planned::of_a_run(fixture, |it| it.ask(&slowly).map(drop))?;
    let paced = || vec![("PINBUDDY_SIM_PIN_MS_PER_GB", PACE.to_string())];
    for round in 1..=fixture.effort.rounds().min(MOST_ROUNDS) {
        step.say(format!("{}, round {round}", workload.name));
        let mut add = |to: fn(&mut Seen) -> &mut Rounds, value: f64| {
            to(seen).entry(workload.name).or_default().push(value);
        };
        let mut stock = fixture.start(Subject::Stock, Memory::Counted, paced())?;
        let stock = Times::of(&stock.ask(&replay(all_file.path()))?)?;
        let mut ready = planned.start(fixture, Memory::Counted, paced())?;
        let warm_up = ready.ask("warm-up")?.number("ns")?;
        let ready = Times::of(&ready.ask(&replay(all_file.path()))?)?;
        let mut cold = planned.start(fixture, Memory::Counted, paced())?;
        let cold = Times::of(&cold.ask(&replay(first_file.path()))?)?;
        let mut default = fixture.start(Subject::Pinbuddy, Memory::Counted, Settings::new())?;
        let default = Times::of(&default.ask(&replay(all_file.path()))?)?;
        add(|it| &mut it.ready, stock.first()? / ready.first()?);
        add(|it| &mut it.cold, stock.first()? / cold.first()?);
        add(|it| &mut it.warm_up, warm_up / 1e9);
        add(|it| &mut it.stocks_first, stock.first()? / 1e9);
        add(|it| &mut it.first, ready.first()? / 1e9);
        if let Some((ready, default)) = ready.over(&stock).zip(default.over(&stock)) {
            add(|it| &mut it.pair, ready);
            add(|it| &mut it.default_pair, default);
        }
        if first.peak_live() <= LOCKED && fixture.effort != Effort::Smoke {
            let locked = locked(fixture, &planned, first_file.path(), first.peak_live())?;
            match locked {
                Some(locked) => add(|it| &mut it.locked, locked),
                None => _ = seen.no_room.insert(workload.name),
            }
        }
    }
    Ok(())
}

fn replay(file: &Path) -> String {
    format!("replay {} timed", file.display())
}

/// All of a workload, or its first iteration.
fn trace(workload: &Workload, seed: u64, steps: u32, first: bool) -> Result<Compact> {
    let mut over = false;
    Compact::of(workload.events(seed, steps).take_while(|event| {
        let before = over;
        over |= matches!(event.op, Op::Iteration);
        !(first && before)
    }))
}

/// How many times less the first iteration takes than stock's, with pages locked; `None` where the machine has no room for
/// the plan. How much of it the plan may have is said: by default that is a share of what other programs leave, and a
/// refused plan is no second run.
fn locked(fixture: &Fixture, planned: &Planned, trace: &Path, live: u64) -> Result<Option<f64>> {
    let amount = planned.bytes()?;
    if context::available_memory()? < amount + amount / 2 {
        return Ok(None);
    }
    let first = |mut harness: Harness, ready: bool| {
        // A virtual machine has to ask its host for memory that was not in use lately.
        harness.ask(&format!("use {}", live / 2 * 5))?;
        if ready {
            harness.ask("warm-up")?;
            let pinned = harness.ask("pins")?.number("bytes")? as u64;
            ensure!(
                pinned >= amount,
                "{pinned} of the plan's {amount} bytes are pinned"
            );
        }
        Times::of(&harness.ask(&replay(trace))?)?.first()
    };
    let stock = fixture.start(Subject::Stock, Memory::Locked, Settings::new())?;
    let stock = first(stock, false)?;
    let allowed = (amount >> 20) + 1;
    let allowed = vec![("BUDDY_MAX_MB", allowed.to_string())];
    let ready = planned.start(fixture, Memory::Locked, allowed)?;
    Ok(Some(stock / first(ready, true)?))
}

impl Times {
    fn of(answer: &Answer) -> Result<Self> {
        let iterations = answer.list("iteration_ns")?.to_vec();
        Ok(Self { iterations })
    }

    fn first(&self) -> Result<f64> {
        let first = self.iterations.first().copied();
        first.context("the trace has no iteration")
    }

    /// The later iterations' times over those of `other`; `None` if there are none. The last one is the program's end.
    fn over(&self, other: &Self) -> Option<f64> {
        let later = |it: &Self| {
            let last = it.iterations.len().saturating_sub(1).max(1);
            it.iterations[1..last].to_vec()
        };
        let (of, over) = (later(self), later(other));
        (!of.is_empty() && of.len() == over.len()).then(|| ratio_of_turns(&of, &over))
    }
}

/// Allocate and free in a pattern that repeats.
fn pairs(
    fixture: &Fixture,
    name: &'static str,
    requests: &'static str,
    seen: &mut Seen,
) -> Result<()> {
    let ask = |harness: &mut Harness, pairs: u32| {
        harness.ask(&format!("requests {requests}"))?;
        harness.ask(&format!("pairs {pairs}")).map(drop)
    };
    let planned = Planned::of_a_run(fixture, |harness| ask(harness, RECORDED))?;
    for _ in 0..fixture.effort.rounds() {
        let start = |subject, more| fixture.start(subject, Memory::Counted, more);
        let mut harnesses = vec![
            start(Subject::Stock, Settings::new())?,
            planned.start(fixture, Memory::Counted, Settings::new())?,
            start(Subject::Pinbuddy, vec![("BUDDY_WARMUP", "sync".to_owned())])?,
        ];
        harnesses.iter().try_for_each(Harness::pin_to_one_core)?;
        let mut all = harnesses.iter_mut();
        all.try_for_each(|harness| ask(harness, 4 * PAIRS))?;
        let times = in_turns(&mut harnesses, fixture.effort.turns(), |harness| {
            harness.ask(&format!("pairs {PAIRS}"))?.number("ns")
        })?;
        let own = seen.pair.entry(name).or_default();
        own.push(ratio_of_turns(&times[1], &times[0]));
        let default = seen.default_pair.entry(name).or_default();
        default.push(ratio_of_turns(&times[2], &times[0]));
    }
    Ok(())
}

fn record(seen: &mut Seen, results: &mut Results) {
    for name in &seen.no_room {
        seen.locked.remove(name);
        results.skip(
            &format!("plan/locked_first_iteration_speedup/{name}"),
            "the machine has no room for its plan",
        );
    }
    let figures = [
        (
            "first_iteration_speedup",
            &seen.ready,
            Some(Target::AtLeast(50.0)),
        ),
        (
            "locked_first_iteration_speedup",
            &seen.locked,
            Some(Target::AtLeast(50.0)),
        ),
        ("cold_first_iteration_speedup", &seen.cold, None),
        ("pair_ratio", &seen.pair, Some(Target::AtMost(0.6))),
        ("default_pair_ratio", &seen.default_pair, None),
    ];
    for (key, rounds, target) in figures {
        for (name, rounds) in rounds {
            results.rounds(&["plan", key, name], rounds, target);
        }
    }
    let medians = |rounds: &Rounds| -> Value {
        let all = rounds.iter().map(|(name, it)| (*name, median(it)));
        json!(all.collect::<BTreeMap<_, _>>())
    };
    results.detail(
        "plan",
        json!({
            "pace_ms_per_gib": PACE,
            "warm_up_s": medians(&seen.warm_up),
            "first_iteration_s": {"stock": medians(&seen.stocks_first), "plan": medians(&seen.first)},
        }),
    );
    results.tables.push(table(seen).to_string());
}

fn table(seen: &Seen) -> Matrix {
    let columns = [
        "first, faster",
        "cold, faster",
        "locked, faster",
        "warm-up, s",
        "stock's first, s",
        "pair",
        "default",
    ];
    let mut table = Matrix::new("with a plan, over stock", columns);
    let names: BTreeSet<_> = seen.ready.keys().chain(seen.pair.keys()).collect();
    for &name in names {
        let cell = |rounds: &Rounds| rounds.get(name).map(|it| median(it));
        let cells = [
            &seen.ready,
            &seen.cold,
            &seen.locked,
            &seen.warm_up,
            &seen.stocks_first,
            &seen.pair,
            &seen.default_pair,
        ]
        .map(cell);
        table.row(name, cells, 2);
    }
    table
}
