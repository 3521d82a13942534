//! The best of several plans, or none, by trial: each is replayed on models of PyTorch's allocator, with all requests.
//!
//! Invariant: what is chosen reserves less than the better of PyTorch's two allocators does by itself in the record and a longer run
//! together, no more in the record alone or in other orders of its iterations, at most a segment more in other orders of its frees,
//! no more where a program looks what is left, and at most a segment or three percent more where the record's phases last longer, or
//! all of a record comes again that is no loop ([`runs`](super::runs)). If the record's device was full, it reserves less than the record did.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pinbuddy_device::Kind;
use pinbuddy_device::planned::{MOST_STREAMS, Planned};
use pinbuddy_slots::Layout;

use super::runs::{Came, Others, Runs, none};
use super::{OneDevice, StreamRecord};
use crate::file::Plan;
use crate::script::{Candidate, How, Options, Watch, candidates, has_pool};

/// A plan has to reserve less than none by more than one part in so many.
const WORTH_IT: u64 = 500;

/// A plan is better than another only by more than one part in so many; else the one that was tried first is as good.
const AS_GOOD: u64 = 1000;

/// Regions that can be given back may take more by one part in so many: half of what a plan may lose to the best there is.
const APART: u64 = 400;

/// So many times a search for places asks whether to stop, before it does: a second or some. For few requests it asks more often.
const MOST_QUESTIONS: usize = 1 << 10;
const MOST_OF_FEW: usize = 1 << 14;

/// So many requests are few.
const FEW: usize = 1000;

/// The most bytes that were reserved in any replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// By PyTorch's allocator as it comes.
    pub stock: u64,
    /// With expandable segments.
    pub expandable: u64,
}

/// A plan that was tried.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// The stream's number.
    pub stream: u32,
    /// What kind of plan it was.
    pub how: How,
    /// What was reserved with it and the plans chosen before, of the other streams.
    pub reserved: Reserved,
}

/// How the plans of a device were chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What is reserved with no plan.
    pub without: Reserved,
    /// With the chosen ones; the same as without, if there are none.
    pub with: Reserved,
    /// The most bytes that any allocator needs: of all requests, the most in use at once.
    pub least: u64,
    /// All that were tried, in order.
    pub tried: Vec<Tried>,
    /// Of these, the ones that were chosen: one a stream at most.
    pub best: Vec<Tried>,
    /// Plans that were not chosen, since more would be reserved with the iterations in another order, more than a segment more with the
    /// frees in another, or too much where the program goes on.
    pub needs_order: usize,
}

impl Reserved {
    pub(super) fn at_most(self, most: Option<u64>) -> Self {
        let most = most.unwrap_or(u64::MAX);
        Self { stock: self.stock.min(most), expandable: self.expandable.min(most) }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self { stock: self.stock.max(other.stock), expandable: self.expandable.max(other.expandable) }
    }

    /// In front of the allocator that the program uses; of the better one if that is not known.
    pub(super) fn of(self, behind: Option<Kind>) -> u64 {
        match behind {
            Some(Kind::Torch) => self.stock,
            Some(Kind::TorchExpandable) => self.expandable,
            None => self.stock.min(self.expandable),
        }
    }
}

/// A search for the best plans for the streams of a device.
pub(super) struct Trial<'t> {
    options: &'t Options,
    watch: Watch<'t>,
    /// The one that asks for most comes first.
    streams: Vec<StreamRecord>,
    candidates: Vec<Vec<Candidate>>,
    runs: Runs<'t>,
    least: u64,
    without: Reserved,
    /// In the record alone.
    in_record: Reserved,
    /// With the plans that were chosen so far.
    best: Reserved,
    tried: Vec<Tried>,
    needs_order: usize,
    /// Of each stream, by its number.
    chosen: Vec<Option<Plan>>,
    /// Of each of `streams`: which of the candidates was chosen, and what came of it.
    winners: Vec<Option<(usize, Tried)>>,
}

impl<'t> Trial<'t> {
    /// Tries candidates, each with a placement that is found quickly.
    pub(super) fn new(
        own: &OneDevice,
        others: &'t Others<'t>,
        options: &'t Options,
        watch: Watch<'t>,
        all: bool,
    ) -> Self {
        let mut streams = own.streams(options.made_for.threshold);
        streams.truncate(MOST_STREAMS);
        streams.sort_by_key(|it| std::cmp::Reverse(it.record.peak()));
        let program = options.behind.is_some();
        let candidates: Vec<_> = (streams.iter()).map(|it| candidates(&it.record, all, program, watch.stop)).collect();
        let main = streams.first().zip(candidates.first().and_then(|it| it.first()));
        let runs = Runs::new(others, main);
        let chosen = vec![None; streams.len()];
        // Nothing if there is no time.
        let Came { reserved, in_record, in_use: least, .. } = runs.came(&none()).unwrap_or_default();
        let without = reserved.at_most(own.segments.most_where_short());
        let mut trial = Self {
            options,
            watch,
            candidates,
            least,
            runs,
            without,
            in_record,
            best: without,
            tried: Vec::new(),
            needs_order: 0,
            chosen,
            winners: vec![None; streams.len()],
            streams,
        };
        let all: Vec<usize> = (0..trial.streams.len()).collect();
        all.iter().for_each(|it| trial.stream(*it));
        // One may be worth it only beside others.
        let left = |it: &&usize| trial.winners[**it].is_none();
        let left: Vec<usize> = all.iter().filter(left).copied().collect();
        if (1..all.len()).contains(&left.len()) {
            left.into_iter().for_each(|it| trial.stream(it));
        }
        trial
    }

    /// Tries the candidates for a stream, and keeps the best; also one that would be only if its places were as good as can be.
    fn stream(&mut self, stream: usize) {
        let quick = Options { quick: true, together: !has_pool(&self.streams[stream].record), ..self.options.clone() };
        let before = self.of(self.best);
        let mut hoped = before - before / WORTH_IT;
        for candidate in 0..self.candidates[stream].len() {
            let best = self.of(self.best);
            let may_be_better = best > above(self.least, AS_GOOD) && before > above(self.least, WORTH_IT);
            // The first one is tried even where there is no time left.
            if !may_be_better || candidate > 0 && (self.watch.stop)() {
                break;
            }
            let below = (best - best / AS_GOOD).min(before - before / WORTH_IT);
            let Some((plan, tried)) = self.try_out(stream, candidate, &quick, self.watch, below) else {
                continue;
            };
            let reserved = self.of(tried.reserved);
            if reserved < below {
                self.choose(stream, candidate, plan, tried);
            } else if self.chosen_for(stream).is_none() {
                let lost = plan.reserved().saturating_sub(plan.facts.lower_bound);
                if reserved.saturating_sub(lost) < hoped {
                    hoped = reserved - lost;
                    self.winners[stream] = Some((candidate, tried));
                }
            }
        }
    }

    /// Searches for better places in the plans that were chosen, and in those that may become worth it. Then for regions that can
    /// be given back, if they take no more.
    pub(super) fn refine(&mut self) {
        for stream in 0..self.streams.len() {
            let is_worth_it = |it: &Self| it.of(it.without) - it.of(it.without) / WORTH_IT;
            let most = match self.chosen_for(stream) {
                Some(_) => self.of(self.best) - 1,
                None => (self.of(self.best) - self.of(self.best) / WORTH_IT).min(is_worth_it(self)),
            };
            if !has_pool(&self.streams[stream].record) {
                self.search(stream, true, most);
            }
            if self.chosen_for(stream).is_none() {
                self.winners[stream] = None;
            }
            let most = above(self.of(self.best), APART).min(is_worth_it(self));
            self.search(stream, false, most);
        }
    }

    /// Searches long for a stream's plan, and chooses it if it reserves no more than `most`.
    fn search(&mut self, stream: usize, together: bool, most: u64) {
        let Some((candidate, _)) = self.winners[stream] else {
            return;
        };
        let lost = |plan: &Plan| plan.reserved() - plan.facts.lower_bound.min(plan.reserved());
        let is_full = together && self.chosen_for(stream).is_some_and(|it| lost(it) == 0);
        if is_full || (self.watch.stop)() {
            return;
        }
        let is_few = self.streams[stream].record.len() < FEW;
        let most_asked = if is_few { MOST_OF_FEW } else { MOST_QUESTIONS };
        let asked = AtomicUsize::new(0);
        let stop = self.watch.stop;
        let watch = Watch { stop: &|| asked.fetch_add(1, Relaxed) >= most_asked || stop(), ..self.watch };
        let options = Options { together, ..self.options.clone() };
        let tried = self.try_out(stream, candidate, &options, watch, most);
        if let Some((plan, tried)) = tried.filter(|(_, it)| self.of(it.reserved) <= most) {
            self.choose(stream, candidate, plan, tried);
        }
    }

    fn chosen_for(&self, stream: usize) -> Option<&Plan> {
        self.chosen[self.streams[stream].number as usize].as_ref()
    }

    /// The plans, by the numbers of their streams, and how they were chosen.
    pub(super) fn end(self) -> (Vec<(u32, Plan)>, Chosen) {
        let numbered = (0..).zip(self.chosen);
        let plans = numbered.filter_map(|(number, plan)| Some((number, plan?)));
        let chosen = Chosen {
            without: self.without,
            with: self.best,
            least: self.least,
            tried: self.tried,
            needs_order: self.needs_order,
            best: self.winners.into_iter().flatten().map(|it| it.1).collect(),
        };
        (plans.collect(), chosen)
    }

    /// How much more is reserved with the plans than any allocator needs.
    pub(super) fn above_least(&self) -> u64 {
        self.of(self.best).saturating_sub(self.least)
    }

    /// Whether a stream has a plan, or may have one after a search.
    pub(super) fn has_some(&self) -> bool {
        self.winners.iter().any(Option::is_some)
    }

    /// Whether shorter requests could make no plan better: what is lost is lost to the places of those that are planned.
    pub(super) fn is_enough(&self) -> bool {
        let plans = self.chosen.iter().flatten();
        let lost: u64 = plans.map(|it| it.reserved().saturating_sub(it.facts.lower_bound)).sum();
        self.of(self.best).saturating_sub(lost) <= above(self.least, AS_GOOD)
    }

    fn of(&self, reserved: Reserved) -> u64 {
        reserved.of(self.options.behind)
    }

    fn choose(&mut self, stream: usize, candidate: usize, plan: Plan, tried: Tried) {
        self.best = tried.reserved;
        self.winners[stream] = Some((candidate, tried));
        self.chosen[self.streams[stream].number as usize] = Some(plan);
    }

    /// What comes of a candidate; none if it has no plan that may reserve less than `below`.
    fn try_out(
        &mut self,
        stream: usize,
        candidate: usize,
        options: &Options,
        watch: Watch<'_>,
        below: u64,
    ) -> Option<(Plan, Tried)> {
        let (own, candidate) = (&self.streams[stream], &self.candidates[stream][candidate]);
        let too_much = |bytes| bytes > below;
        let plan = candidate.plan(&own.record, options, &too_much, watch)?;
        let layout = |plan: &Plan| plan.layout(plan.regions.len());
        let plans = self.chosen.iter().map(|it| it.as_ref().map(layout));
        let mut plans: Vec<Option<Layout>> = plans.collect();
        plans[own.number as usize] = Some(layout(&plan));
        let plans = Planned::new(Kind::Torch.model(), options.made_for.threshold, &plans).ok()?;
        let came = self.runs.came(&plans)?;
        let tried = Tried { stream: own.number, how: candidate.how(), reserved: came.reserved };
        self.tried.push(tried);
        let is_better = self.of(tried.reserved) < self.of(self.without);
        if is_better && self.runs.needs_order(&plans) {
            // What was not replayed to its end says nothing of orders.
            self.needs_order += usize::from(!self.runs.is_over());
            return None;
        }
        // Whatever a longer run gains.
        let is_worse = is_better && self.of(came.in_record) > self.of(self.in_record);
        (!is_worse && !self.runs.holds_more(&plans)).then_some((plan, tried))
    }
}

/// One part in so many more.
pub(super) fn above(bytes: u64, parts: u64) -> u64 {
    bytes + bytes / parts
}
