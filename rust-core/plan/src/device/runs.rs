//! What plans are tried on: the record, what a longer run would do, other orders of iterations and of frees where the record's looks
//! like chance, and phases that last longer.

use std::cell::OnceCell;

use pinbuddy_device::planned::Planned;
use pinbuddy_device::replay::Replay;
use pinbuddy_device::{Act, Kind};
use pinbuddy_slots::Layout;

use super::acts::most_and_whether_let_go;
use super::longer::longer;
use super::orders::Iterations;
use super::trial::{Reserved, above};
use super::{OneDevice, StreamRecord};
use crate::record::Record;
use crate::script::{Candidate, Options, looks};

/// A longer run needs as much as the record, but for one part in so many: a program may keep a number of each iteration.
const UNSTEADY: u64 = 128;

/// A pool may be smaller by one part in so many of the most in use than without a plan.
const SEEN: u64 = 100;

/// The longest segment of PyTorch's that requests share.
const SEGMENT: u64 = 20 << 20;

/// So many percent may be lost in a run that differs, beside what is gained in others.
const LOST: u64 = 3;

/// After so many acts a replay asks whether there is time for more.
const ASKS: usize = 1 << 14;

/// Runs that differ from the record: the same whichever requests are planned. They are made for the first plan that gains: most long
/// records have none, and those of two million acts take seconds.
pub(super) struct Others<'t> {
    own: &'t OneDevice,
    behind: Option<Kind>,
    /// Whether there is no more time: some may be missing then, and nothing is replayed any more.
    is_over: &'t dyn Fn() -> bool,
    made: OnceCell<Differing>,
}

/// Each with what is reserved in it without a plan.
struct Differing {
    /// The record in other orders: of its iterations; and of its frees, where a segment more is none.
    orders: Vec<(Vec<Act>, u64)>,
    /// The record with each phase twice as long, if it has phases.
    phases: Option<(Vec<Act>, u64)>,
}

impl<'t> Others<'t> {
    pub(super) fn of(own: &'t OneDevice, behind: Option<Kind>, is_over: &'t dyn Fn() -> bool) -> Self {
        Self { own, behind, is_over, made: OnceCell::new() }
    }

    fn differing(&self) -> &Differing {
        let Self { own, behind, is_over, ref made } = *self;
        made.get_or_init(|| Differing::of(own, behind, is_over))
    }
}

impl Differing {
    fn of(own: &OneDevice, behind: Option<Kind>, is_over: &dyn Fn() -> bool) -> Self {
        let acts: Vec<Act> = own.acts().collect();
        let iterations = Iterations::of(&acts);
        // Runs are replayed without plans here, whatever the threshold.
        let threshold = 0;
        let front = Front { behind, threshold, is_over };
        let without = |run| front.without(run);
        // How far frees change places is not known: more than a segment counts.
        let and_segment = |(run, reserved)| (run, reserved + SEGMENT);
        let orders = iterations.other_orders().map_while(without);
        let frees = iterations.other_frees().map_while(without);
        Self {
            orders: orders.chain(frees.map(and_segment)).collect(),
            phases: iterations.longer_phases().and_then(without),
        }
    }
}

/// What plans stand in front of: these allocators of PyTorch's, for requests from `threshold` bytes on.
#[derive(Clone, Copy)]
struct Front<'t> {
    behind: Option<Kind>,
    threshold: u64,
    is_over: &'t dyn Fn() -> bool,
}

/// What came of a replay.
#[derive(Clone, Copy)]
struct Came {
    reserved: Reserved,
    /// The most bytes that were in use at once.
    in_use: u64,
    /// Whether the plans do not fit.
    is_misfit: bool,
}

/// What is replayed.
pub(super) struct Runs<'t> {
    /// The record, if no longer run begins with it; and what a longer run would do.
    runs: Vec<Vec<Act>>,
    /// The record; none if it is the only run.
    record: Option<Vec<Act>>,
    /// What is reserved in it without a plan, for the first plan that gains.
    without: OnceCell<Option<u64>>,
    others: &'t Others<'t>,
    /// The record up to the last clear behind which a large pool is made, in pieces that each end with such a clear.
    looks: Vec<Vec<Act>>,
    /// What may be reserved at the end of each: as much as without a plan, and a little more.
    may_hold: Vec<u64>,
    front: Front<'t>,
}

impl<'t> Runs<'t> {
    /// The record, and a longer run, if iterations were found.
    pub(super) fn new(
        own: &OneDevice,
        others: &'t Others<'t>,
        main: Option<(&StreamRecord, &Candidate)>,
        options: &Options,
    ) -> Self {
        let acts: Vec<Act> = own.acts().collect();
        let last = main.and_then(|(stream, it)| {
            let [before, last] = it.last_iterations(&stream.record)?;
            let at = |moment| stream.act_at(moment).unwrap_or(acts.len());
            Some((at(before.start)..at(before.end), at(last.start)..at(last.end)))
        });
        let longer = last.map(|(before, last)| (last.end, longer(&acts, before, last)));
        // Of a loop that goes on: another one would need more and more.
        let in_use = |acts: &[Act]| most_and_whether_let_go(acts.iter().copied()).0;
        let most = in_use(&acts);
        let longer = longer.filter(|(_, run)| in_use(run) <= above(most, UNSTEADY));
        let looks = main.map_or_else(Vec::new, |(stream, _)| pieces(&acts, &stream.record));
        let (runs, record) = match longer {
            // It has all of the record.
            Some((end, longer)) if end == acts.len() => (vec![longer], Some(acts)),
            Some((_, longer)) => (vec![acts.clone(), longer], Some(acts)),
            None => (vec![acts], None),
        };
        let (behind, threshold) = (options.behind, options.made_for.threshold);
        let front = Front { behind, threshold, is_over: others.is_over };
        let mut all = Self { runs, record, without: OnceCell::new(), others, looks, may_hold: Vec::new(), front };
        let held = all.held(&[]).unwrap_or_default();
        all.may_hold = held.iter().map(|it| it + most / SEEN).collect();
        all
    }

    /// Whether more stays reserved with these plans than without where a program looks how large its pool can be.
    pub(super) fn holds_more(&self, plans: &[Option<Layout>]) -> bool {
        let is_more = |held: Vec<u64>| held.iter().zip(&self.may_hold).any(|(it, most)| it > most);
        // Most records have no server's pool: nothing is built for them.
        !self.looks.is_empty() && self.held(plans).is_none_or(is_more)
    }

    /// What is reserved at the end of each of `looks`.
    fn held(&self, plans: &[Option<Layout>]) -> Option<Vec<u64>> {
        let model = self.front.behind.unwrap_or(Kind::Torch).model();
        let mut replay = Replay::new(Planned::new(model, self.front.threshold, plans).ok()?);
        let held = self.looks.iter().map(|acts| {
            acts.iter().for_each(|act| replay.step(*act));
            replay.outcome().reserved_at_end
        });
        Some(held.collect())
    }

    /// What is reserved with these plans in the run that has the most; none if they cannot be used, or there is no time, or they serve so
    /// few requests of a run that they would be taken for another program's.
    pub(super) fn reserved(&self, plans: &[Option<Layout>]) -> Option<Reserved> {
        let mut most = Reserved::default();
        for run in &self.runs {
            let came = self.front.came(run, plans)?;
            if came.is_misfit {
                return None;
            }
            most = most.max(came.reserved);
        }
        Some(most)
    }

    /// What is reserved without plans, and the most bytes that are in use at once in any run. Nothing if there is no time.
    pub(super) fn without(&self) -> (Reserved, u64) {
        let all: Option<Vec<Came>> = self.runs.iter().map(|run| self.front.came(run, &[])).collect();
        let most = |(reserved, least): (Reserved, u64), it: Came| (reserved.max(it.reserved), least.max(it.in_use));
        all.unwrap_or_default().into_iter().fold((Reserved::default(), 0), most)
    }

    /// Whether more is reserved with these plans in the record than without, whatever a longer run gains.
    pub(super) fn is_worse(&self, plans: &[Option<Layout>]) -> bool {
        let Some(record) = &self.record else {
            return false;
        };
        let without = || Some(self.front.came(record, &[])?.reserved.of(self.front.behind));
        let without = self.without.get_or_init(without);
        without.is_none_or(|most| self.front.is_above(record, plans, most))
    }

    /// Whether more is reserved with these plans in another order than without; or, where phases last longer, so much more that it is
    /// not worth their gain in the other runs: as much, and a segment or [`LOST`].
    pub(super) fn needs_order(&self, plans: &[Option<Layout>], gain: u64) -> bool {
        let Differing { orders, phases } = self.others.differing();
        let last_longer = phases.as_ref().is_some_and(|(run, without)| {
            let most = without + gain + SEGMENT.max(without / 100 * LOST);
            self.front.is_above(run, plans, most)
        });
        // Once there is no more time some are missing.
        last_longer || orders.iter().any(|it| self.front.is_more(it, plans)) || self.is_over()
    }

    /// Whether nothing is replayed any more.
    pub(super) fn is_over(&self) -> bool {
        (self.others.is_over)()
    }
}

impl Front<'_> {
    /// A run, and what is reserved in it without a plan.
    fn without(self, run: Vec<Act>) -> Option<(Vec<Act>, u64)> {
        let reserved = self.came(&run, &[])?.reserved.of(self.behind);
        Some((run, reserved))
    }

    fn is_more(self, (run, without): &(Vec<Act>, u64), plans: &[Option<Layout>]) -> bool {
        self.is_above(run, plans, *without)
    }

    fn is_above(self, run: &[Act], plans: &[Option<Layout>], most: u64) -> bool {
        let came = self.came(run, plans);
        came.is_none_or(|it| it.reserved.of(self.behind) > most)
    }

    fn came(self, run: &[Act], plans: &[Option<Layout>]) -> Option<Came> {
        let (mut is_misfit, mut in_use) = (false, 0);
        let mut with = |kind: Kind| {
            if self.behind.is_some_and(|it| it != kind) {
                return Some(0);
            }
            let replay = self.replayed(run, kind, plans)?;
            is_misfit |= replay.model().served().is_misfit();
            in_use = replay.outcome().bound;
            Some(replay.outcome().peak_reserved)
        };
        let reserved = Reserved { stock: with(Kind::Torch)?, expandable: with(Kind::TorchExpandable)? };
        Some(Came { reserved, in_use, is_misfit })
    }

    fn replayed(self, run: &[Act], kind: Kind, plans: &[Option<Layout>]) -> Option<Replay<Planned>> {
        let planned = Planned::new(kind.model(), self.threshold, plans).ok()?;
        let mut replay = Replay::new(planned);
        for part in run.chunks(ASKS) {
            if (self.is_over)() {
                return None;
            }
            part.iter().for_each(|act| replay.step(*act));
        }
        Some(replay)
    }
}

/// The acts up to the last clear behind which a large pool is made, in pieces that each end with such a clear.
fn pieces(acts: &[Act], record: &Record) -> Vec<Vec<Act>> {
    let ends = (1..).zip(acts);
    let clears = ends.filter(|it| matches!(it.1, Act::Clear));
    let clears: Vec<usize> = clears.map(|it| it.0).collect();
    // A stream's record has none from before its first request.
    let before = clears.len() - record.clears.len();
    let mut begin = 0;
    let piece = |look: usize| {
        let end = clears[before + look];
        acts[std::mem::replace(&mut begin, end)..end].to_vec()
    };
    looks(record).into_iter().map(piece).collect()
}
