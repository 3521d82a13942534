//! What planning came to, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use pinbuddy_plan::{Plan, check_plan};
use serde::Serialize;

use super::Read;
use crate::baseline::{self, Baseline};
use crate::effort::{Ended, gap_percent};
use crate::show;

/// What planning a trace came to. Sizes are in bytes.
#[derive(Debug, Serialize)]
pub struct Planned {
    /// Requests at or above the threshold.
    pub requests: u64,
    /// Requests below it, which are left to PyTorch's own allocator.
    pub requests_below_threshold: u64,
    /// The threshold.
    pub threshold: u64,
    /// Iterations that were alike; 0 where nothing repeats.
    pub iterations: u64,
    /// What the plan pins.
    pub peak: u64,
    /// The most that was requested and lived at once.
    pub peak_requested: u64,
    /// The least that any placement needs.
    pub lower_bound: u64,
    /// How far `peak` is above that.
    pub gap_percent: f64,
    /// `peak_requested` over `peak`.
    pub efficiency: f64,
    /// How long planning took, without reading.
    pub seconds: f64,
    /// How long reading took, with the replays on models.
    pub reading_seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// How many threads planned.
    pub threads: usize,
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
    /// What PyTorch's own allocator would have pinned for these requests.
    pub stock: Baseline,
    /// What pinbuddy's engine would have pinned for them, with no plan.
    pub engine: Baseline,
    /// The most that the run's own allocator had from the driver at once, as far as the file says.
    pub run_peak: Option<u64>,
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = match self.iterations {
            0 => "they do not repeat: a plan of amounts".to_owned(),
            it => format!(
                "{} alike: {}",
                show::count(it, "iteration"),
                show::count(self.slots as u64, "place")
            ),
        };
        let least = match self.threshold {
            0 => String::new(),
            least => format!(" of {} or more", show::bytes(least)),
        };
        writeln!(
            f,
            "{}{least}, at most {} at once; {repeats}",
            show::count(self.requests, "request"),
            show::bytes(self.peak_requested),
        )?;
        writeln!(
            f,
            "  the plan pins {} in {}, {:.2} % above the lower bound; {:.2} s",
            show::bytes(self.peak),
            show::count(self.regions.len() as u64, "region"),
            self.gap_percent,
            self.seconds,
        )?;
        if self.slots > 0 {
            let replayed = "replayed on the plan, of these requests get their place";
            writeln!(f, "  {replayed}: {} of {}", self.hits, self.requests)?;
        }
        if let Some(peak) = self.run_peak {
            let gap = gap_percent(peak, self.lower_bound);
            let peak = show::bytes(peak);
            writeln!(
                f,
                "  the run's own allocator had {peak}, {gap:.2} % above it"
            )?;
        }
        self.others(f)?;
        match &self.out {
            Some(out) => writeln!(f, "To use it: BUDDY_PLAN={}", out.display()),
            None => writeln!(f, "To use it: --out FILE, and BUDDY_PLAN=FILE in the run"),
        }
    }
}

impl Planned {
    /// What others would have had for the same requests.
    fn others(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = [
            ("stock", &self.stock),
            ("pinbuddy without a plan", &self.engine),
        ];
        for (name, it) in others {
            let (peak, gap, waits) = (
                show::bytes(it.peak),
                it.gap_percent,
                show::count(it.waits, "wait"),
            );
            writeln!(
                f,
                "  {name} pins {peak}, {gap:.2} % above it; {waits} for the driver"
            )?;
        }
        Ok(())
    }
}

/// How the search for a plan went.
#[derive(Debug)]
pub struct Search {
    /// How long it took.
    pub seconds: f64,
    /// How long reading took.
    pub reading_seconds: f64,
    /// Why it ended, whatever it found.
    pub ended: Ended,
    /// How many threads searched.
    pub threads: usize,
    /// Where the plan was written to.
    pub out: Option<PathBuf>,
}

impl Search {
    fn ended_with(&self, optimal: bool) -> Ended {
        match optimal {
            true => Ended::Optimal,
            false => self.ended,
        }
    }
}

impl Planned {
    /// What a search came to.
    pub fn new(plan: &Plan, read: &Read, search: Search) -> Self {
        let (facts, peak) = (plan.facts, plan.reserved());
        // Where nothing repeats there is no placement to be bounded but the largest live set.
        let lower_bound = if facts.lower_bound > 0 {
            facts.lower_bound
        } else {
            facts.peak
        };
        let [stock, engine] = [0, 1].map(|it| Baseline::new(&read.outcomes[it], lower_bound));
        Self {
            requests: facts.requests,
            requests_below_threshold: read.left_out,
            threshold: plan.made_for.threshold,
            iterations: facts.iterations,
            peak,
            peak_requested: facts.peak,
            lower_bound,
            gap_percent: gap_percent(peak, lower_bound),
            efficiency: baseline::ratio(facts.peak, peak),
            seconds: search.seconds,
            reading_seconds: search.reading_seconds,
            ended: search.ended_with(peak <= lower_bound),
            threads: search.threads,
            regions: plan.regions.clone(),
            slots: plan.slots.len(),
            lanes: plan.lanes.len(),
            out: search.out,
            hits: check_plan(&read.record, plan).hits,
            stock,
            engine,
            run_peak: (read.run_peak > 0).then_some(read.run_peak),
        }
    }
}
