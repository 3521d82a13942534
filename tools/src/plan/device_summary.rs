//! What planning a device's memory came to, for people and for programs.

use std::fmt;
use std::path::PathBuf;

use pinbuddy_plan::How;
use pinbuddy_plan::device::{Chosen, THRESHOLDS, Tried};
use pinbuddy_plan::file::device::DevicePlan;
use serde::Serialize;

use super::device::{ALLOCATORS, Read};
use super::models::Models;
use super::summary::{Common, Search};
use crate::baseline::Baseline;
use crate::effort::Ended;
use crate::show;

/// All requests count in what is reserved and in efficiency, which is the most that was requested at once over the most that was
/// reserved.
#[derive(Debug, Serialize)]
pub(super) struct DevicePlanned {
    #[serde(flatten)]
    common: Common,
    /// The device.
    device: u32,
    /// The most bytes that were requested at once of private pools and captures, which no plan serves. They are in no other
    /// figure but `run_peak`.
    peak_private: u64,
    /// Bytes of blocks that were there before the record begins and are freed in it. They are in no other figure.
    live_before: u64,
    /// With expandable segments.
    expandable: Baseline,
    /// The plan in front of PyTorch's allocator as it comes; none if no plan was made.
    plan_before_stock: Option<Baseline>,
    /// In front of expandable segments.
    plan_before_expandable: Option<Baseline>,
    /// What has to be set beside the plan; none where it is better than both allocators in front of either.
    setting: Option<&'static str>,
    /// Allocators that reserve more with the plan than by themselves.
    worse_before: Vec<&'static str>,
    /// The plans that were made, one a stream at most.
    chosen: Vec<Candidate>,
    /// All that were tried, in order.
    tried: Vec<Candidate>,
    /// Plans that were not made, since more would be reserved with sizes or frees in another order, or in a longer run.
    needs_order: usize,
}

const STOCK: &str = ALLOCATORS[0].0;
const BEFORE_STOCK: &str = ALLOCATORS[0].1;
const EXPANDABLE: &str = ALLOCATORS[1].0;
const BEFORE_EXPANDABLE: &str = ALLOCATORS[1].1;

/// What is set for either.
const SETTINGS: [&str; 2] =
    ["PYTORCH_ALLOC_CONF=expandable_segments:False", "PYTORCH_ALLOC_CONF=expandable_segments:True"];

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

/// What has to be set for a plan, if it reserves less than both allocators in front of one of them alone.
fn setting(without: [u64; 2], with: [u64; 2]) -> Option<&'static str> {
    let [least, most] = [without, with].map(|it| it[0].min(it[1]));
    // In the record it may reserve as much, and less in a longer run.
    let is_good = |it| it < least || it == most;
    match with.map(is_good) {
        [true, true] => None,
        [is_stock, _] => Some(SETTINGS[usize::from(!is_stock)]),
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
        let without = [models.stock.peak, models.expandable.peak];
        let with = models.plan.as_ref().map(|it| [it[0].peak, it[1].peak]);
        let plan = models.plan.map_or([None, None], |it| it.map(Some));
        let [plan_before_stock, plan_before_expandable] = plan;
        let best = match with {
            Some(_) => "plan",
            None if without[1] < without[0] => EXPANDABLE,
            None => STOCK,
        };
        let is_worse = |it: &usize| with.is_some_and(|with| with[*it] > without[*it]);
        let worse = (0..2).filter(is_worse);
        let threshold = match made.threshold() {
            0 => THRESHOLDS[0],
            own => own,
        };
        let requests = read.sizes.range(threshold..).map(|it| it.1).sum();
        let smaller = read.sizes.range(..threshold).map(|it| it.1).sum();
        let chosen_ones: Vec<Candidate> = chosen.best.iter().map(Candidate::from).collect();
        let iterations = chosen_ones.iter().map(|it| it.iterations);
        let common = Common {
            requests,
            requests_below_threshold: smaller,
            threshold,
            peak_requested: models.peak_requested,
            peak: made.reserved(),
            best,
            stock: models.stock,
            iterations: iterations.max().unwrap_or(0),
            hits: read.record.hits(made),
            slots: plans().map(|it| it.slots.len()).sum(),
            lanes: made.plans.len(),
            regions: plans().flat_map(|it| it.regions.clone()).collect(),
            search,
            out,
            run_peak: (read.run_peak > 0).then_some(read.run_peak),
        };
        Self {
            common,
            device: read.device,
            peak_private: read.private,
            live_before: read.live_before,
            expandable: models.expandable,
            plan_before_stock,
            plan_before_expandable,
            setting: with.and_then(|it| setting(without, it)),
            worse_before: worse.map(|it| [STOCK, EXPANDABLE][it]).collect(),
            chosen: chosen_ones,
            tried: chosen.tried.iter().map(Candidate::from).collect(),
            needs_order: chosen.needs_order,
        }
    }

    /// What somebody should do who gets no plan.
    pub(super) fn instead(&self) -> String {
        let [stock, expandable] = [&self.common.stock, &self.expandable].map(|it| it.efficiency);
        let needs = "a plan would reserve more when sizes or frees come in another order, or the program runs longer";
        let better = match (self.needs_order, self.common.search.ended) {
            (0, Ended::TimeLimit | Ended::Interrupted) => {
                "the search ended before a better plan was found: give it a longer --time-limit"
            }
            (0, _) => "no plan is better",
            _ => needs,
        };
        let has = "has an efficiency of";
        match self.common.best {
            STOCK => {
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
            let other = others.filter(|it| it.iterations != won.iterations).min_by_key(|it| it.reserved());
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
        let of = &self.common;
        writeln!(
            f,
            "{}, of which plans have places for {}; peak {}; planned in {:.2} s",
            show::count(of.requests + of.requests_below_threshold, "request"),
            of.hits,
            show::bytes(of.peak_requested),
            of.search.seconds,
        )?;
        let (before_stock, before_expandable) = (&self.plan_before_stock, &self.plan_before_expandable);
        let more = |name| match self.worse_before.contains(&name) {
            true => ", more than without a plan",
            false => "",
        };
        let rows = [
            (STOCK, Some(&of.stock), ""),
            (EXPANDABLE, Some(&self.expandable), ""),
            (BEFORE_STOCK, before_stock.as_ref(), more(STOCK)),
            (BEFORE_EXPANDABLE, before_expandable.as_ref(), more(EXPANDABLE)),
        ];
        for (name, it, more) in rows {
            let Some(it) = it else { continue };
            let (peak, efficiency) = (show::bytes(it.peak), it.efficiency);
            writeln!(f, "  {name:<36} reserved {peak:>10}, efficiency {efficiency:.3}{more}")?;
        }
        if let Some(peak) = of.run_peak {
            let (name, peak) = ("the recorded run", show::bytes(peak));
            writeln!(f, "  {name:<36} reserved {peak:>10}")?;
        }
        if self.peak_private > 0 {
            let private = show::bytes(self.peak_private);
            writeln!(
                f,
                "  {private} were requested of private pools (MemPool, CUDA graphs); only the recorded run's figure has them"
            )?;
        }
        if self.live_before > 0 {
            let before = show::bytes(self.live_before);
            writeln!(
                f,
                "  {before} more were in use when the record began, as far as it shows; they come on top of all figures"
            )?;
        }
        self.won(f)?;
        match of.best {
            "plan" => {
                let setting = self.setting.map(|it| format!("{it} ")).unwrap_or_default();
                of.to_use(f, &format!("{setting}BUDDY_DEVICE_PLAN"))
            }
            _ => writeln!(f, "No plan is made. To do: {}", self.instead()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed to be used reserves no more than anything else does.
    #[test]
    fn a_plan_is_used_with_the_allocator_in_front_of_which_it_is_better() {
        let all = || 1..5_u64;
        let pairs = || all().flat_map(|a| all().map(move |b| [a, b]));
        for (without, with) in pairs().flat_map(|a| pairs().map(move |b| (a, b))) {
            let [least, most] = [without, with].map(|it| it[0].min(it[1]));
            if most > least {
                continue;
            }
            match setting(without, with) {
                None => assert!(with.iter().all(|it| *it < least || *it == most)),
                Some(it) => {
                    let at = SETTINGS.iter().position(|other| *other == it).unwrap();
                    assert!(with[at] == most && with[1 - at] >= least);
                }
            }
        }
    }
}
