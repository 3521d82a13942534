//! What planning came to, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use pinbuddy_plan::{Plan, check_plan};
use serde::Serialize;

use super::Read;
use crate::baseline::{self, Baseline};
use crate::effort::Ended;
use crate::show;

const STOCK: &str = "stock";
const ENGINE: &str = "pinbuddy without a plan";
const PLAN: &str = "plan";

/// What is said of each plan. Sizes are in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Common {
    /// Requests at or above the threshold; of device memory, those that plans may have places for.
    pub requests: u64,
    /// Requests below it, which are left to PyTorch's own allocator.
    pub requests_below_threshold: u64,
    /// The threshold.
    pub threshold: u64,
    /// Iterations that were alike; 0 where nothing repeats, the plan has the whole record as one, or there is none.
    pub iterations: u64,
    /// The bytes of the plan's regions; 0 if no plan was made.
    pub peak: u64,
    /// The largest sum of live requests.
    pub peak_requested: u64,
    /// What takes least: `plan`, `stock`, `pinbuddy without a plan` or `expandable segments`.
    pub best: &'static str,
    /// How planning went.
    #[serde(flatten)]
    pub search: Search,
    /// Lengths of the plan's regions.
    pub regions: Vec<u64>,
    /// How many places the plan has; 0 where it has only amounts.
    pub slots: usize,
    /// How many threads made requests; of device memory, how many streams have a plan.
    pub lanes: usize,
    /// Where the plan was written to.
    pub out: Option<PathBuf>,
    /// Requests of the trace that get their place when it is replayed on the plan.
    pub hits: u64,
    /// What PyTorch's own allocator, as it comes, would have taken for these requests.
    pub stock: Baseline,
    /// The most that the run's own allocator had from the driver at once, as far as the file says.
    pub run_peak: Option<u64>,
}

impl Common {
    /// The last line: how the run gets the plan.
    pub(super) fn to_use(&self, f: &mut fmt::Formatter<'_>, variable: &str) -> fmt::Result {
        match &self.out {
            Some(out) => writeln!(f, "To use it: {variable}={}", out.display()),
            None => writeln!(f, "To use it: --out FILE, and {variable}=FILE in the run"),
        }
    }
}

/// What planning a trace came to.
#[derive(Debug, Serialize)]
pub(super) struct Planned {
    #[serde(flatten)]
    common: Common,
    /// `peak_requested` over `peak`.
    efficiency: f64,
    /// What the plan has: `places`, or `amounts` alone.
    made_of: &'static str,
    /// Why it has these.
    why: String,
    /// What pinbuddy's engine would have pinned for the requests, with no plan.
    engine: Baseline,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.common;
        let least = match of.threshold {
            0 => String::new(),
            least => format!(" of {} or more", show::bytes(least)),
        };
        writeln!(
            f,
            "{}{least}; peak {}; planned in {:.2} s",
            show::count(of.requests, "request"),
            show::bytes(of.peak_requested),
            of.search.seconds,
        )?;
        for (name, it) in [(STOCK, &of.stock), (ENGINE, &self.engine)] {
            let waits = show::count(it.waits, "wait");
            row(f, name, it.peak, Some(it.efficiency))?;
            writeln!(f, "; {waits} for the driver")?;
        }
        row(f, PLAN, of.peak, Some(self.efficiency))?;
        let regions = show::count(of.regions.len() as u64, "region");
        writeln!(f, ", in {regions}")?;
        if let Some(peak) = of.run_peak {
            row(f, "the recorded run", peak, None)?;
            writeln!(f)?;
        }
        writeln!(f, "  plan of {}: {}", self.made_of, self.why)?;
        if of.best != PLAN {
            let best = of.best;
            writeln!(f, "  {best} pins less; the plan is pinned before requests wait for it")?;
        }
        of.to_use(f, "BUDDY_PLAN")
    }
}

/// What one of them pins, without the line's end.
fn row(f: &mut fmt::Formatter<'_>, name: &str, pinned: u64, efficiency: Option<f64>) -> fmt::Result {
    write!(f, "  {name:<24} pinned {:>11}", show::bytes(pinned))?;
    match efficiency {
        Some(efficiency) => write!(f, ", efficiency {efficiency:.3}"),
        None => Ok(()),
    }
}

/// Why a plan has places, or none.
fn why(plan: &Plan, hits: u64) -> String {
    let facts = &plan.facts;
    if plan.slots.is_empty() {
        return "requests do not repeat in the record, or places for them would pin more or serve too few".to_owned();
    }
    if plan.comes_once() {
        return format!(
            "iterations that are alike would pin more; {hits} of {} have their places when they are replayed, and another run has room",
            show::count(facts.requests, "request"),
        );
    }
    let others = match facts.requests - hits.min(facts.requests) {
        0 => String::new(),
        others => format!("; for the other {others} there is an amount"),
    };
    format!(
        "{} are alike, and {} serve {hits} of {} when they are replayed{others}",
        show::count(facts.iterations, "iteration"),
        show::count(plan.slots.len() as u64, "place"),
        show::count(facts.requests, "request"),
    )
}

/// How the search for a plan went.
#[derive(Debug, Serialize)]
pub(super) struct Search {
    /// How long it took, without reading.
    pub seconds: f64,
    /// How long reading took, with the replays on models.
    pub reading_seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// How many threads searched.
    pub threads: usize,
}

impl Planned {
    /// What a search came to.
    pub(super) fn new(plan: &Plan, read: &Read, mut search: Search, out: Option<PathBuf>) -> Self {
        let (facts, peak) = (plan.facts, plan.reserved());
        if peak <= facts.peak.max(facts.lower_bound) {
            search.ended = Ended::Optimal;
        }
        let [stock, engine] = [0, 1].map(|it| Baseline::new(&read.outcomes[it], facts.peak));
        let hits = check_plan(&read.record, plan).hits;
        // Of equals the first, since a plan has its places as well.
        let others = [(peak, PLAN), (engine.peak, ENGINE), (stock.peak, STOCK)];
        let best = others.into_iter().min_by_key(|it| it.0);
        let best = best.map_or(PLAN, |it| it.1);
        let common = Common {
            requests: facts.requests,
            requests_below_threshold: read.left_out,
            threshold: plan.made_for.threshold,
            iterations: facts.iterations,
            peak,
            peak_requested: facts.peak,
            best,
            search,
            regions: plan.regions.clone(),
            slots: plan.slots.len(),
            lanes: plan.lanes.len(),
            out,
            hits,
            stock,
            run_peak: (read.run_peak > 0).then_some(read.run_peak),
        };
        Self {
            common,
            efficiency: baseline::ratio(facts.peak, peak),
            made_of: match plan.slots.is_empty() {
                true => "amounts",
                false if plan.comes_once() => "a place for each request",
                false => "places",
            },
            why: why(plan, hits),
            engine,
        }
    }
}
