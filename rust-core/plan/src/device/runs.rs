//! What plans are tried on: the record, what a longer run would do, other orders of iterations and of frees where the record's looks
//! like chance, and what a program does that goes on: phases last longer, or all comes again.

use std::cell::OnceCell;

use pinbuddy_device::planned::Planned;
use pinbuddy_device::replay::Replay;
use pinbuddy_device::{Act, Kind, SHARED, allowance};

use super::acts::most_and_whether_let_go;
use super::lives::Lives;
use super::longer::longer;
use super::orders::Iterations;
use super::trial::{Reserved, above};
use super::{OneDevice, StreamRecord};
use crate::record::Record;
use crate::script::{Candidate, looks};

/// A longer run needs as much as the record, but for one part in so many: a program may keep a number of each iteration.
const UNSTEADY: u64 = 128;

/// A pool may be smaller by one part in so many of the most in use than without a plan.
const SEEN: u64 = 100;

/// After so many acts a replay asks whether there is time for more.
const ASKS: usize = 1 << 14;

/// Runs that differ from the record: the same whichever requests are planned. They are made for the first plan that gains: most long
/// records have none, and those of two million acts take seconds.
pub(super) struct Others<'t> {
    own: &'t OneDevice,
    front: Front<'t>,
    made: OnceCell<Differing>,
    /// The record twice, with what is reserved in that without a plan; none if there is no time.
    again: OnceCell<Option<(Vec<Act>, u64)>>,
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
        let front = Front { behind, is_over };
        Self { own, front, made: OnceCell::new(), again: OnceCell::new() }
    }

    fn differing(&self) -> &Differing {
        self.made.get_or_init(|| Differing::of(self.own, self.front))
    }

    fn again(&self) -> Option<&(Vec<Act>, u64)> {
        let of = || self.front.without(again(&self.own.acts().collect::<Vec<Act>>()));
        self.again.get_or_init(of).as_ref()
    }
}

impl Differing {
    fn of(own: &OneDevice, front: Front<'_>) -> Self {
        let acts: Vec<Act> = own.acts().collect();
        let iterations = Iterations::of(&acts);
        let without = |run| front.without(run);
        // How far frees change places is not known: more than a segment counts.
        let and_segment = |(run, reserved)| (run, reserved + SHARED);
        let orders = iterations.other_orders().map_while(without);
        let frees = iterations.other_frees().map_while(without);
        Self {
            orders: orders.chain(frees.map(and_segment)).collect(),
            phases: iterations.longer_phases().and_then(without),
        }
    }
}

/// What plans stand in front of: these allocators of PyTorch's.
#[derive(Clone, Copy)]
struct Front<'t> {
    behind: Option<Kind>,
    /// Whether there is no more time: some runs may be missing then, and nothing is replayed any more.
    is_over: &'t dyn Fn() -> bool,
}

/// What came of a replay, or at most of several.
#[derive(Clone, Copy, Default)]
pub(super) struct Came {
    pub(super) reserved: Reserved,
    /// In the record alone.
    pub(super) in_record: Reserved,
    /// The most bytes that were in use at once.
    pub(super) in_use: u64,
    /// Whether the plans do not fit.
    is_misfit: bool,
}

/// What is replayed.
pub(super) struct Runs<'t> {
    /// The record, or a longer run that begins with it; and what a longer run would do, if that begins with a part of it.
    runs: Vec<Vec<Act>>,
    /// How many acts of the first run are the record's.
    record: usize,
    /// Whether most of the record is one loop.
    is_loop: bool,
    others: &'t Others<'t>,
    /// The record up to the last clear behind which a large pool is made, in pieces that each end with such a clear.
    looks: Vec<Vec<Act>>,
    /// What may be reserved at the end of each: as much as without a plan, and a little more.
    may_hold: Vec<u64>,
}

/// No plan.
pub(super) fn none() -> Planned {
    Planned::new(Kind::Torch.model(), 0, &[]).expect("no plan cannot be wrong")
}

impl<'t> Runs<'t> {
    /// The record, and a longer run, if iterations were found.
    pub(super) fn new(others: &'t Others<'t>, main: Option<(&StreamRecord, &Candidate)>) -> Self {
        let acts: Vec<Act> = others.own.acts().collect();
        let last = main.and_then(|(stream, it)| {
            let [before, last] = it.last_iterations(&stream.record)?;
            let at = |moment| stream.act_at(moment).unwrap_or(acts.len());
            Some((at(before.start)..at(before.end), at(last.start)..at(last.end)))
        });
        let count = main.map_or(0, |(_, it)| it.iterations());
        let is_loop = last.as_ref().is_some_and(|(_, last)| last.len() * count * 2 > acts.len());
        let longer = last.map(|(before, last)| (last.end, longer(&acts, before, last)));
        // Of a loop that goes on: another one would need more and more.
        let in_use = |acts: &[Act]| most_and_whether_let_go(acts.iter().copied()).0;
        let most = in_use(&acts);
        let longer = longer.filter(|(_, run)| in_use(run) <= above(most, UNSTEADY));
        let looks = main.map_or_else(Vec::new, |(stream, _)| pieces(&acts, &stream.record));
        // Frees behind the last request are in no longer run.
        let record = acts.iter().rposition(|it| matches!(it, Act::Alloc { .. })).map_or(0, |it| it + 1);
        let runs = match longer {
            // It has all of the record.
            Some((end, longer)) if end == acts.len() => vec![longer],
            Some((_, longer)) => vec![acts, longer],
            None => vec![acts],
        };
        let mut all = Self { runs, record, is_loop, others, looks, may_hold: Vec::new() };
        all.may_hold = all.held(&none()).into_iter().map(|it| it + most / SEEN).collect();
        all
    }

    /// Whether more stays reserved with these plans than without where a program looks how large its pool can be.
    pub(super) fn holds_more(&self, plans: &Planned) -> bool {
        self.held(plans).iter().zip(&self.may_hold).any(|(it, most)| it > most)
    }

    /// What is reserved at the end of each of `looks`.
    fn held(&self, plans: &Planned) -> Vec<u64> {
        // Most records have no server's pool: nothing is built for them.
        if self.looks.is_empty() {
            return Vec::new();
        }
        let model = self.others.front.behind.unwrap_or(Kind::Torch).model();
        let mut replay = Replay::new(plans.before(model));
        let held = self.looks.iter().map(|acts| {
            acts.iter().for_each(|act| replay.step(*act));
            replay.outcome().reserved_at_end
        });
        held.collect()
    }

    /// What came of these plans in the run that has the most; none if there is no time, or they serve so few requests of a run that they
    /// would be taken for another program's.
    pub(super) fn came(&self, plans: &Planned) -> Option<Came> {
        let mut most = Came::default();
        for (run, record) in self.runs.iter().zip([self.record, 0]) {
            let came = self.others.front.came(run, record, plans)?;
            if came.is_misfit {
                return None;
            }
            most = Came {
                reserved: most.reserved.max(came.reserved),
                in_record: most.in_record.max(came.in_record),
                in_use: most.in_use.max(came.in_use),
                ..most
            };
        }
        Some(most)
    }

    /// Whether more is reserved with these plans in another order than without; or, where the program goes on, more than the
    /// [`allowance`].
    pub(super) fn needs_order(&self, plans: &Planned) -> bool {
        let Differing { orders, phases } = self.others.differing();
        let all = || if self.is_loop { None } else { self.others.again() };
        let goes_on = phases.as_ref().or_else(all).map(|(run, without)| (run, without + allowance(*without)));
        // Once there is no more time some are missing.
        goes_on.is_some_and(|(run, most)| self.others.front.is_above(run, plans, most))
            || orders.iter().any(|it| self.others.front.is_above(&it.0, plans, it.1))
            || self.is_over()
    }

    /// Whether nothing is replayed any more.
    pub(super) fn is_over(&self) -> bool {
        (self.others.front.is_over)()
    }
}

impl Front<'_> {
    /// A run, and what is reserved in it without a plan.
    fn without(self, run: Vec<Act>) -> Option<(Vec<Act>, u64)> {
        let reserved = self.came(&run, 0, &none())?.reserved.of(self.behind);
        Some((run, reserved))
    }

    fn is_above(self, run: &[Act], plans: &Planned, most: u64) -> bool {
        let came = self.came(run, 0, plans);
        came.is_none_or(|it| it.reserved.of(self.behind) > most)
    }

    /// What came of a run whose first so many acts are the record's.
    fn came(self, run: &[Act], record: usize, plans: &Planned) -> Option<Came> {
        let (mut is_misfit, mut in_use) = (false, 0);
        let (record, more) = run.split_at(record);
        let mut with = |kind: Kind| {
            if self.behind.is_some_and(|it| it != kind) {
                return Some([0; 2]);
            }
            let mut replay = Replay::new(plans.before(kind.model()));
            self.replay(&mut replay, record)?;
            let in_record = replay.outcome().peak_reserved;
            self.replay(&mut replay, more)?;
            is_misfit |= replay.model().served().is_misfit();
            in_use = replay.outcome().bound;
            Some([in_record, replay.outcome().peak_reserved])
        };
        let (stock, expandable) = (with(Kind::Torch)?, with(Kind::TorchExpandable)?);
        let [in_record, reserved] = [0, 1].map(|it| Reserved { stock: stock[it], expandable: expandable[it] });
        Some(Came { reserved, in_record, in_use, is_misfit })
    }

    fn replay(self, replay: &mut Replay<Planned>, acts: &[Act]) -> Option<()> {
        for part in acts.chunks(ASKS) {
            if (self.is_over)() {
                return None;
            }
            part.iter().for_each(|act| replay.step(*act));
        }
        Some(())
    }
}

/// The acts twice, with what is never freed made once.
fn again(acts: &[Act]) -> Vec<Act> {
    let lives = Lives::of(acts);
    let passes = (0..acts.len()).filter(|at| !lives.stays(*at));
    acts.iter().copied().chain(passes.map(|at| acts[at])).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_run_tells_what_its_record_alone_reserves() {
        let acts = |bytes: u64| (0..9).map(move |block| Act::Alloc { block, bytes: bytes << 20, stream: 0 });
        let frees = || (0..9).map(|block| Act::Free { block });
        let run: Vec<Act> = acts(3).chain(frees()).chain(acts(5)).chain(frees()).collect();
        let front = Front { behind: None, is_over: &|| false };
        let came = |run, record| front.came(run, record, &none()).unwrap();
        for record in 0..=run.len() {
            let Came { reserved, in_record, .. } = came(&run, record);
            assert_eq!(in_record, came(&run[..record], 0).reserved);
            assert_eq!(reserved, came(&run, 0).reserved);
        }
        assert!(came(&run, 9).in_record.stock < came(&run, 9).reserved.stock);
    }
}
