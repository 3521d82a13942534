//! What planning a device's memory came to, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use pinbuddy_plan::How;
use pinbuddy_plan::device::{Chosen, THRESHOLDS, Tried};
use pinbuddy_plan::file::device::DevicePlan;
use serde::Serialize;

use super::Search;
use super::device::Read;
use super::models::Models;
use crate::baseline::Baseline;
use crate::show;

/// Sizes are in bytes. All requests count in what is reserved and in efficiency, which is the most that was requested at once
/// over the most that was reserved.
#[derive(Debug, Serialize)]
pub(super) struct DevicePlanned {
    /// The device.
    pub device: u32,
    /// Requests that plans may have places for.
    pub requests: u64,
    /// Smaller ones, which PyTorch's allocator serves.
    pub requests_below_threshold: u64,
    /// The smallest request that plans have places for.
    pub threshold: u64,
    /// The most that was requested and not freed at one moment.
    pub peak_requested: u64,
    /// Bytes of blocks that were there before the record begins and are freed in it. They are in no other figure.
    pub live_before: u64,
    /// The bytes of the plan's regions; 0 if no plan was made.
    pub peak: u64,
    /// What reserves least: `plan`, `expandable segments` or `stock`.
    pub best: &'static str,
    /// PyTorch's allocator as it comes.
    pub stock: Baseline,
    /// With expandable segments.
    pub expandable: Baseline,
    /// The plan in front of the first; none if no plan was made.
    pub plan_before_stock: Option<Baseline>,
    /// In front of the second.
    pub plan_before_expandable: Option<Baseline>,
    /// The plans that were made, one a stream at most.
    pub chosen: Vec<Candidate>,
    /// All that were tried, in order.
    pub tried: Vec<Candidate>,
    /// Plans that were not made, since more would be reserved with the iterations in another order, or more often.
    pub needs_order: usize,
    /// Iterations that the plan knows; 0 if it has the whole record as one, or there is no plan.
    pub iterations: u64,
    /// Requests that get their place when the record is replayed on the plan.
    pub hits: u64,
    /// How many places the plan has.
    pub slots: usize,
    /// How many streams have a plan.
    pub lanes: usize,
    /// Lengths of the plan's regions.
    pub regions: Vec<u64>,
    /// How planning went.
    #[serde(flatten)]
    pub search: Search,
    /// Where the plan was written to.
    pub out: Option<PathBuf>,
    /// The most that the run's own allocator had from the driver at once, as far as the file says.
    pub run_peak: Option<u64>,
}

/// A plan that was tried on the record and on a longer run of its last iteration.
#[derive(Debug, Serialize)]
pub(super) struct Candidate {
    /// The stream's number, in the order of first requests.
    pub stream: u32,
    /// How many iterations it was made of; 0 for one that has the whole record as one.
    pub iterations: u64,
    /// The most that was reserved in front of PyTorch's allocator as it comes.
    pub reserved_stock: u64,
    /// The same in front of expandable segments.
    pub reserved_expandable: u64,
}

impl From<&Tried> for Candidate {
    fn from(it: &Tried) -> Self {
        Self {
            stream: it.stream,
            iterations: match it.how {
                How::Whole => 0,
                How::Iterations(count) => count as u64,
            },
            reserved_stock: it.reserved.stock,
            reserved_expandable: it.reserved.expandable,
        }
    }
}

impl Candidate {
    fn name(&self) -> String {
        match self.iterations {
            0 => "made of the whole record as one iteration".to_owned(),
            it => format!("made of {}", show::count(it, "iteration")),
        }
    }

    fn reserved(&self) -> u64 {
        self.reserved_stock.min(self.reserved_expandable)
    }
}

impl DevicePlanned {
    pub(super) fn new(
        made: &DevicePlan,
        read: &Read,
        chosen: &Chosen,
        models: Models,
        search: Search,
        out: Option<PathBuf>,
    ) -> Self {
        let plans = || made.plans.iter().map(|(_, plan)| plan);
        let plan = models.plan.map_or([None, None], |it| it.map(Some));
        let [plan_before_stock, plan_before_expandable] = plan;
        let best = match &plan_before_stock {
            Some(_) => "plan",
            None if models.expandable.peak < models.stock.peak => "expandable segments",
            None => "stock",
        };
        let threshold = match made.threshold() {
            0 => THRESHOLDS[0],
            own => own,
        };
        let requests = read.sizes.range(threshold..).map(|it| it.1).sum();
        let smaller = read.sizes.range(..threshold).map(|it| it.1).sum();
        let chosen_ones: Vec<Candidate> = chosen.best.iter().map(Candidate::from).collect();
        let iterations = chosen_ones.iter().map(|it| it.iterations);
        Self {
            device: read.device,
            requests,
            requests_below_threshold: smaller,
            threshold,
            peak_requested: models.peak_requested,
            live_before: read.live_before,
            peak: made.reserved(),
            best,
            stock: models.stock,
            expandable: models.expandable,
            plan_before_stock,
            plan_before_expandable,
            iterations: iterations.max().unwrap_or(0),
            chosen: chosen_ones,
            tried: chosen.tried.iter().map(Candidate::from).collect(),
            needs_order: chosen.needs_order,
            hits: read.record.hits(made),
            slots: plans().map(|it| it.slots.len()).sum(),
            lanes: made.plans.len(),
            regions: plans().flat_map(|it| it.regions.clone()).collect(),
            search,
            out,
            run_peak: (read.run_peak > 0).then_some(read.run_peak),
        }
    }

    /// What somebody should do who gets no plan.
    pub(super) fn instead(&self) -> String {
        let [stock, expandable] = [&self.stock, &self.expandable].map(|it| it.efficiency);
        let needs =
            "a plan would reserve more when batches come in another order, or phases last longer";
        let better = match self.needs_order {
            0 => "no plan is better",
            _ => needs,
        };
        let has = "has an efficiency of";
        match self.best {
            "stock" => {
                format!("nothing: PyTorch's allocator as it comes {has} {stock:.3}, and {better}")
            }
            _ => format!(
                "PYTORCH_ALLOC_CONF=expandable_segments:True {has} {expandable:.3} (stock {stock:.3}), and {better}"
            ),
        }
    }

    /// Which plan won, and what the next best would have reserved.
    fn won(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for won in &self.chosen {
            let others = self.tried.iter().filter(|it| it.stream == won.stream);
            let other = others
                .filter(|it| it.iterations != won.iterations)
                .min_by_key(|it| it.reserved());
            write!(f, "  plan of stream {}: {}; ", won.stream, won.name())?;
            let Some(other) = other else {
                writeln!(f, "no other was tried")?;
                continue;
            };
            let (name, bytes) = (other.name(), show::bytes(other.reserved()));
            writeln!(f, "one {name} would reserve {bytes}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DevicePlanned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, of which plans have places for {}; peak {}; planned in {:.2} s",
            show::count(self.requests + self.requests_below_threshold, "request"),
            self.requests,
            show::bytes(self.peak_requested),
            self.search.seconds,
        )?;
        let (before_stock, before_expandable) =
            (&self.plan_before_stock, &self.plan_before_expandable);
        let rows = [
            ("stock", Some(&self.stock)),
            ("expandable segments", Some(&self.expandable)),
            ("plan, stock behind it", before_stock.as_ref()),
            (
                "plan, expandable segments behind it",
                before_expandable.as_ref(),
            ),
        ];
        for (name, it) in rows {
            let Some(it) = it else { continue };
            let (peak, efficiency) = (show::bytes(it.peak), it.efficiency);
            writeln!(
                f,
                "  {name:<36} reserved {peak:>10}, efficiency {efficiency:.3}"
            )?;
        }
        if let Some(peak) = self.run_peak {
            let (name, peak) = ("the recorded run", show::bytes(peak));
            writeln!(f, "  {name:<36} reserved {peak:>10}")?;
        }
        if self.live_before > 0 {
            let before = show::bytes(self.live_before);
            writeln!(
                f,
                "  {before} more were in use when the record began, as far as it shows; they come on top of all figures"
            )?;
        }
        self.won(f)?;
        match &self.out {
            _ if self.best != "plan" => writeln!(f, "No plan is made. To do: {}", self.instead()),
            Some(out) => writeln!(f, "To use it: BUDDY_DEVICE_PLAN={}", out.display()),
            None => writeln!(
                f,
                "To use it: --out FILE, and BUDDY_DEVICE_PLAN=FILE in the run"
            ),
        }
    }
}
