//! What PyTorch's allocator of device memory would have reserved for a file's requests: as it comes, with expandable
//! segments, and behind the plan.
//!
//! The models are those of `cargo xtask simulate --device` (`pinbuddy_replay::device`). All requests count, small ones too;
//! those for pools of graphs and of users are left out, since the models have none. A file does not say that the cache was
//! emptied: memory that is given back to the driver piece after piece counts as that.

use std::collections::HashMap;
use std::time::Instant;

use anyhow::{Result, anyhow};
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_replay::device::planned::Planned;
use pinbuddy_replay::device::replay::{Outcome, Replay};
use pinbuddy_replay::device::{Act, Device, Kind};

use crate::baseline::Baseline;
use crate::effort::gap_percent;
use crate::input::{Input, What};

/// Other streams: which ones makes no difference to a model, as long as no request is on it.
const ELSEWHERE: u32 = u32::MAX;

/// Acts that each model gets at a time.
const BATCH: usize = 1 << 14;

/// What the models came to.
#[derive(Debug)]
pub(super) struct Models {
    pub(super) stock: Baseline,
    pub(super) expandable: Baseline,
    /// The plan in front of each.
    pub(super) plan: Baseline,
    pub(super) plan_expandable: Baseline,
}

/// Replays the file on all models.
pub(super) fn replay(input: &Input, plan: &DevicePlan) -> Result<Models> {
    let planned = |kind: Kind| {
        Planned::new(kind.model(), plan).map_err(|why| anyhow!("the plan cannot be used: {why}"))
    };
    let mut runs: [(Box<dyn Run>, f64); 4] = [
        (Box::new(Replay::new(Kind::Torch.model())), 0.0),
        (Box::new(Replay::new(Kind::TorchExpandable.model())), 0.0),
        (Box::new(Replay::new(planned(Kind::Torch)?)), 0.0),
        (Box::new(Replay::new(planned(Kind::TorchExpandable)?)), 0.0),
    ];
    let mut flush = |batch: &mut Vec<Act>| {
        for (run, seconds) in &mut runs {
            let begun = Instant::now();
            run.batch(batch);
            *seconds += begun.elapsed().as_secs_f64();
        }
        batch.clear();
    };
    let (mut flow, mut batch) = (Flow::default(), Vec::with_capacity(BATCH));
    input.each(&mut |item| {
        flow.push(&item.what, &mut batch);
        if batch.len() >= BATCH {
            flush(&mut batch);
        }
        Ok(())
    })?;
    flush(&mut batch);
    let [stock, expandable, plan, plan_expandable] =
        runs.map(|(run, seconds)| baseline(&run.outcome(), seconds));
    Ok(Models {
        stock,
        expandable,
        plan,
        plan_expandable,
    })
}

/// Each segment, or page of an expandable one, is a call to the driver, for which a request waits.
fn baseline(outcome: &Outcome, seconds: f64) -> Baseline {
    Baseline {
        peak: outcome.peak_reserved,
        gap_percent: gap_percent(outcome.peak_reserved, outcome.bound),
        efficiency: outcome.efficiency.unwrap_or(1.0),
        seconds,
        pins: outcome.taken,
        waits: outcome.taken,
        stopped: false,
    }
}

/// A replay on any model.
trait Run {
    fn batch(&mut self, acts: &[Act]);
    fn outcome(&self) -> Outcome;
}

impl<D: Device> Run for Replay<D> {
    fn batch(&mut self, acts: &[Act]) {
        acts.iter().for_each(|act| self.step(*act));
    }

    fn outcome(&self) -> Outcome {
        Self::outcome(self)
    }
}

/// Turns events into acts.
#[derive(Debug, Default)]
struct Flow {
    /// Blocks that live, by their ids: numbers that may come again.
    numbers: HashMap<u64, u32>,
    vacant: Vec<u32>,
    /// The last event gave memory back.
    giving_back: bool,
}

impl Flow {
    fn push(&mut self, what: &What, to: &mut Vec<Act>) {
        let gives_back = matches!(what, What::Unpin { .. } | What::Clear);
        match *what {
            What::Request {
                id,
                bytes,
                private: false,
                stream,
                ..
            } => {
                // No more than there are blocks.
                let next = u32::try_from(self.numbers.len()).unwrap_or(ELSEWHERE);
                let block = self.vacant.pop().unwrap_or(next);
                self.numbers.insert(id, block);
                let bytes = bytes.max(1);
                to.push(Act::Alloc {
                    block,
                    bytes,
                    stream,
                });
            }
            What::Free { id, pending, .. } => {
                if !pending && let Some(block) = self.over(id) {
                    to.push(Act::Free { block });
                } else if let Some(&block) = self.numbers.get(&id) {
                    let stream = ELSEWHERE;
                    to.extend([Act::Use { block, stream }, Act::Free { block }]);
                }
            }
            What::Safe { id, .. } => {
                to.extend(self.over(id).map(|block| Act::Complete { block }));
            }
            What::Unpin { .. } | What::Clear if !self.giving_back => to.push(Act::Clear),
            What::Iteration => to.push(Act::Iter),
            _ => {}
        }
        self.giving_back = gives_back;
    }

    /// Nobody uses the block any more: its number is vacant.
    fn over(&mut self, id: u64) -> Option<u32> {
        let block = self.numbers.remove(&id)?;
        self.vacant.push(block);
        Some(block)
    }
}
