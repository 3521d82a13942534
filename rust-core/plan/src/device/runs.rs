//! What plans are tried on: the record, what a longer run would do, and other orders of iterations whose order looks like chance.

use pinbuddy_device::planned::Planned;
use pinbuddy_device::replay::Replay;
use pinbuddy_device::{Act, Kind};
use pinbuddy_slots::Layout;

use super::acts::most_and_whether_let_go;
use super::longer::longer;
use super::orders::other_orders;
use super::trial::{Reserved, above};
use super::{OneDevice, StreamRecord};
use crate::record::Record;
use crate::script::{Candidate, Options, looks};

/// A longer run needs as much as the record, but for one part in so many: a program may keep a number of each iteration.
const UNSTEADY: u64 = 128;

/// A pool may be smaller by one part in so many of the most in use than without a plan.
const SEEN: u64 = 100;

/// What is replayed.
pub(super) struct Runs {
    /// The record, and what a longer run would do.
    runs: Vec<Run>,
    /// The record in other orders.
    orders: Vec<Run>,
    /// The record up to the last clear behind which a large pool is made, in pieces that each end with such a clear.
    looks: Vec<Vec<Act>>,
    /// What may be reserved at the end of each: as much as without a plan, and a little more.
    may_hold: Vec<u64>,
    behind: Option<Kind>,
    threshold: u64,
}

impl Runs {
    /// The record, and a longer run, if iterations were found.
    pub(super) fn new(
        own: &OneDevice,
        main: Option<(&StreamRecord, &Candidate)>,
        options: &Options,
    ) -> Self {
        let acts: Vec<Act> = own.acts().collect();
        let last = main.and_then(|(stream, it)| {
            let [before, last] = it.last_iterations(&stream.record)?;
            let at = |moment| stream.act_at(moment).unwrap_or(acts.len());
            Some((
                at(before.start)..at(before.end),
                at(last.start)..at(last.end),
            ))
        });
        let longer = last.map(|(before, last)| (last.end, longer(&acts, before, last)));
        // Of a loop that goes on: another one would need more and more.
        let in_use = |acts: &[Act]| most_and_whether_let_go(acts.iter().copied()).0;
        let most = in_use(&acts);
        let longer = longer.filter(|(_, run)| in_use(run) <= above(most, UNSTEADY));
        let orders = other_orders(&acts);
        let looks = main.map_or_else(Vec::new, |(stream, _)| pieces(&acts, &stream.record));
        // No peak comes behind the last request, and a longer run goes on there.
        let request = acts.iter().rposition(|it| matches!(it, Act::Alloc { .. }));
        let record = request.map_or(0, |it| it + 1);
        let runs = match longer {
            Some((end, longer)) if end == acts.len() => vec![(longer, record)],
            Some((_, longer)) => vec![(longer, 0), (acts, record)],
            None => vec![(acts, record)],
        };
        let mut all = Self {
            runs: Vec::new(),
            orders: Vec::new(),
            looks,
            may_hold: Vec::new(),
            behind: options.behind,
            threshold: options.made_for.threshold,
        };
        all.runs = runs.into_iter().map(|it| all.run(it.0, it.1)).collect();
        all.orders = orders.into_iter().map(|it| all.run(it, 0)).collect();
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
        let model = self.behind.unwrap_or(Kind::Torch).model();
        let mut replay = Replay::new(Planned::new(model, self.threshold, plans).ok()?);
        let held = self.looks.iter().map(|acts| {
            acts.iter().for_each(|act| replay.step(*act));
            replay.outcome().reserved_at_end
        });
        Some(held.collect())
    }

    fn run(&self, acts: Vec<Act>, record: usize) -> Run {
        let mut run = Run {
            acts,
            record,
            without: [0; 2],
        };
        let without = self.replayed(&run, &[]).unwrap_or_default();
        run.without = without.map(|it| it.of(self.behind));
        run
    }

    /// What is reserved with these plans in the run that has the most; none if they cannot be used.
    pub(super) fn reserved(&self, plans: &[Option<Layout>]) -> Option<Reserved> {
        let mut most = Reserved::default();
        for run in &self.runs {
            let [_, all] = self.replayed(run, plans)?;
            most.stock = most.stock.max(all.stock);
            most.expandable = most.expandable.max(all.expandable);
        }
        Some(most)
    }

    /// Whether more is reserved with these plans in the record, or in a longer run, than without in the same.
    pub(super) fn is_worse(&self, plans: &[Option<Layout>]) -> bool {
        self.is_more(&self.runs, plans)
    }

    /// Whether more is reserved with these plans in another order than without.
    pub(super) fn needs_order(&self, plans: &[Option<Layout>]) -> bool {
        self.is_more(&self.orders, plans)
    }

    /// Whether more is reserved with these plans in one of the runs than without.
    fn is_more(&self, runs: &[Run], plans: &[Option<Layout>]) -> bool {
        runs.iter().any(|run| {
            let Some(reserved) = self.replayed(run, plans) else {
                return true;
            };
            let mut both = reserved.iter().zip(run.without);
            both.any(|(it, without)| it.of(self.behind) > without)
        })
    }

    /// The most bytes that are in use at once in any run.
    pub(super) fn least(&self) -> u64 {
        let outcomes = self.runs.iter().filter_map(|run| {
            let planned = Planned::new(Kind::Torch.model(), self.threshold, &[]).ok()?;
            let mut replay = Replay::new(planned);
            run.acts.iter().for_each(|act| replay.step(*act));
            Some(replay.outcome().bound)
        });
        outcomes.max().unwrap_or(0)
    }

    /// What is reserved in the record, and in all of the run.
    fn replayed(&self, run: &Run, plans: &[Option<Layout>]) -> Option<[Reserved; 2]> {
        let with = |kind: Kind| {
            if self.behind.is_some_and(|it| it != kind) {
                return Some([0; 2]);
            }
            let planned = Planned::new(kind.model(), self.threshold, plans).ok()?;
            let mut replay = Replay::new(planned);
            let (record, rest) = run.acts.split_at(run.record);
            Some([record, rest].map(|acts| {
                acts.iter().for_each(|act| replay.step(*act));
                replay.outcome().peak_reserved
            }))
        };
        let (stock, expandable) = (with(Kind::Torch)?, with(Kind::TorchExpandable)?);
        Some([0, 1].map(|part| Reserved {
            stock: stock[part],
            expandable: expandable[part],
        }))
    }
}

/// Acts that are replayed.
struct Run {
    acts: Vec<Act>,
    /// So many of them, the first ones, are the record up to its last request.
    record: usize,
    /// What is reserved without a plan: in the record, and in all.
    without: [u64; 2],
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
