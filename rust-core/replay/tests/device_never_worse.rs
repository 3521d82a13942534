//! Plans of device memory of random programs: with the plan of a run no more is reserved in it than without; and what becomes of
//! runs that are longer, of records that were broken off, and of requests that differ.

use crate::device_programs::{Chance, Ddp, Program, ddp, drawn, mixed, program};

use std::cell::RefCell;
use std::collections::HashSet;

use pinbuddy_plan::Options;
use pinbuddy_plan::device::{DeviceRecord, SHARED, allowance};
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_replay::device::replay::Replay;
use pinbuddy_replay::device::{Act, Device, Kind};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{FileFailurePersistence, TestRunner};

/// The longest segment that PyTorch makes of a request of less than 10 MiB.
const SEGMENT: i64 = SHARED as i64;

const PROGRAMS: usize = 150;

/// So many trainings and programs that draw their batches have a record, and so many other runs.
const DRAWN: usize = 60;
const RUNS: u64 = 2;

fn replayed<D: Device>(model: D, acts: &[Act]) -> Replay<D> {
    let mut replay = Replay::new(model);
    acts.iter().for_each(|act| replay.step(*act));
    replay
}

fn reserved(model: impl Device, acts: &[Act]) -> u64 {
    replayed(model, acts).outcome().peak_reserved
}

/// The same programs in each run of this test, with the numbers of their seeds.
fn some<T>(of: impl Strategy<Value = T>, count: usize) -> impl Iterator<Item = (u64, T)> {
    let mut runner = TestRunner::deterministic();
    let next = move || of.new_tree(&mut runner).unwrap().current();
    (1..).zip(std::iter::repeat_with(next)).take(count)
}

/// What became of runs with plans: how many records have a plan; of the runs, how many reserve more than a segment more with it,
/// and how much more all do, as a part of what is reserved without.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    planned: usize,
    runs: usize,
    worse: usize,
    sum: f64,
}

impl Fate {
    /// The plan that a process makes of what it did, which knows its allocator.
    fn plan(&mut self, recorded: &[Act], kind: Kind) -> DevicePlan {
        let mut record = DeviceRecord::of(recorded);
        record.behind(kind);
        let plan = record.plan(&Options::default(), &|| false);
        self.planned += usize::from(!plan.plans.is_empty());
        plan
    }

    /// One more run with a plan; how much more is reserved than without.
    fn add(&mut self, plan: &DevicePlan, run: &[Act], kind: Kind) -> i64 {
        let without = reserved(kind.model(), run) as i64;
        let more = reserved(plan.before(0, kind.model()).unwrap(), run) as i64 - without;
        self.runs += 1;
        self.worse += usize::from(more > SEGMENT);
        self.sum += more as f64 / without as f64;
        more
    }

    fn mean(&self) -> f64 {
        self.sum / self.runs as f64
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var("PINBUDDY_TEST_ALL").is_ok_and(|it| it == "1") { 2000 } else { 64 },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_run_that_was_recorded_is_never_worse_off_and_its_plan_fits(program in program(), expandable: bool) {
        let acts = program.acts(1);
        let kind = Kind::ALL[usize::from(expandable)];
        let mut fate = Fate::default();
        let plan = fate.plan(&acts, kind);
        prop_assert!(fate.add(&plan, &acts, kind) <= 0);
        let served = replayed(plan.before(0, kind.model()).unwrap(), &acts).model().served();
        prop_assert!(!served.is_misfit(), "{served:?}");
    }
}

/// What becomes of runs whose plan is of another one.
fn differing(run: impl Fn(&Program) -> (Vec<Act>, Vec<Act>)) -> Fate {
    let mut fate = Fate::default();
    for (_, program) in some(program(), PROGRAMS) {
        let (recorded, run) = run(&program);
        let plan = fate.plan(&recorded, Kind::Torch);
        fate.add(&plan, &run, Kind::Torch);
    }
    fate
}

/// The first `share` percent of a run.
fn beginning(acts: &[Act], share: usize) -> Vec<Act> {
    acts[..acts.len() * share / 100].to_vec()
}

/// None should be worse off. These are the figures so far: a plan that does not fit costs its regions.
#[test]
fn runs_that_differ_gain_on_average_and_few_lose_more_than_a_segment() {
    let longer = differing(|it| (it.acts(1), it.acts(3)));
    let broken_off = differing(|it| (beginning(&it.acts(1), 60), it.acts(1)));
    let half = differing(|it| (beginning(&it.acts(1), 50), it.acts(1)));
    let chance = RefCell::new(Chance(7));
    let changed = differing(|it| (it.acts(1), chance.borrow_mut().change(&it.acts(1))));
    let delayed = differing(|it| {
        let (acts, mut chance) = (it.acts(1), chance.borrow_mut());
        (chance.delay(&acts), chance.delay(&acts))
    });
    let delayed_longer = differing(|it| {
        let mut chance = chance.borrow_mut();
        (chance.delay(&it.acts(2)), chance.delay(&it.acts(6)))
    });
    let all = [longer, broken_off, half, changed, delayed, delayed_longer];
    println!("{all:?}");
    // When other streams are done decides no more about a plan than a few programs.
    assert!(delayed.planned * 20 >= changed.planned * 19, "{all:?}");
    for fate in all {
        assert!(fate.worse * 14 <= PROGRAMS && fate.mean() < -0.05, "{all:?}");
    }
}

/// What becomes of data-parallel trainings, whose frees are complete at other moments in each run: recorded with one seed, run
/// with another, and twice as long.
fn data_parallel(acts: impl Fn(&Ddp, usize, &mut Chance) -> Vec<Act>) -> Fate {
    let (mut chance, mut fate) = (Chance(11), Fate::default());
    for (_, training) in some(ddp(), PROGRAMS) {
        let plan = fate.plan(&acts(&training, 40, &mut chance), Kind::Torch);
        fate.add(&plan, &acts(&training, 80, &mut chance), Kind::Torch);
    }
    println!("{fate:?}");
    assert!(fate.worse * 50 <= PROGRAMS, "{fate:?}");
    fate
}

/// None should be worse off; 12 of 150 were while a lane took for its place what other streams were done with, and 6 before plans were
/// tried with frees in other orders. Six more have no plan since what a longer phase loses may be no more than a segment or three
/// percent; all together reserve less since then.
#[test]
fn data_parallel_trainings_gain_whenever_other_streams_are_done() {
    let fate = data_parallel(Ddp::acts);
    assert!(fate.planned * 25 >= PROGRAMS * 21, "{fate:?}");
    assert!(fate.mean() < -0.06, "{fate:?}");
}

/// The same where they begin otherwise than they go on, and streams are less late. While a place was planned for who came next even
/// if it had to wait, and short blocks lay between long ones, 7 of 150 were worse off, and 6.3 % was saved.
#[test]
fn data_parallel_trainings_gain_behind_a_beginning_that_comes_once() {
    let fate = data_parallel(Ddp::sent);
    assert!(fate.planned * 20 >= PROGRAMS * 19, "{fate:?}");
    assert!(fate.mean() < -0.08, "{fate:?}");
}

/// Programs that draw the lengths of their batches anew, in runs that draw others than the recorded one. While what a plan keeps was
/// not lent to a program that hardly does what it says, 1 of 8 were worse off, and 5.0 % was saved.
#[test]
fn few_that_draw_other_lengths_reserve_more_than_a_segment_more() {
    let mut fate = Fate::default();
    for (seed, program) in some(drawn(), DRAWN) {
        let plan = fate.plan(&program.acts(&mut Chance(seed)), Kind::Torch);
        let runs = if plan.plans.is_empty() { 0 } else { RUNS };
        for other in 1..=runs {
            let run = program.acts(&mut Chance(seed + other * 1000));
            fate.add(&plan, &run, Kind::Torch);
        }
    }
    println!("{fate:?}");
    assert!(fate.runs >= 50 && fate.worse * 50 <= fate.runs, "{fate:?}");
    assert!(fate.mean() < -0.1, "{fate:?}");
}

/// Trainings whose batches have one of several shapes, in runs that have them in other orders than the recorded one, and in that
/// one.
fn orders(kind: Kind) -> [Fate; 2] {
    let (mut fate, mut recorded) = (Fate::default(), Fate::default());
    for (seed, training) in some(mixed(), DRAWN) {
        let run = training.acts(&mut Chance(seed));
        let plan = fate.plan(&run, kind);
        let more = recorded.add(&plan, &run, kind);
        assert!(more <= 0, "{training:?}");
        for other in 1..=RUNS {
            let run = training.acts(&mut Chance(seed + other * 1000));
            if fate.add(&plan, &run, kind) > SEGMENT {
                println!("{seed} {other} {training:?}");
            }
        }
    }
    println!("{kind:?} {fate:?} {recorded:?}");
    [fate, recorded]
}

/// Of 120 runs 3 are worse off over stock; before plans were tried in other orders 21 were, and 27 over expandable segments.
#[test]
fn trainings_whose_batches_come_in_another_order_are_not_worse_off() {
    let [stock, recorded] = orders(Kind::Torch);
    assert!(stock.planned >= 5 && stock.worse <= 3, "{stock:?}");
    assert!(stock.mean() < -0.025 && recorded.mean() < -0.02, "{stock:?}");
    let [fate, _] = orders(Kind::TorchExpandable);
    assert!(fate.worse == 0 && fate.mean() <= 0.0, "{fate:?}");
}

/// What is reserved in a run with a plan, and whether the run says that the plan does not fit it (`cxx-bridge/src/device/misfit.rs`).
fn ends(plan: &DevicePlan, run: &[Act]) -> (u64, bool) {
    let replay = replayed(plan.before(0, Kind::Torch.model()).unwrap(), run);
    let outcome = replay.outcome();
    let is_too_much = plan.without.is_some_and(|it| {
        let without = it.for_a_run(outcome.bound);
        outcome.peak_reserved > without + allowance(without)
    });
    (outcome.peak_reserved, is_too_much || replay.model().served().is_misfit())
}

/// A run whose batches are a part of the recorded ones: what is freed again is shorter.
fn of_smaller_batches(run: &[Act], part: u64) -> Vec<Act> {
    let freed = run.iter().filter_map(|act| if let Act::Free { block } = act { Some(*block) } else { None });
    let freed: HashSet<u32> = freed.collect();
    let smaller = |act: &Act| match *act {
        Act::Alloc { block, bytes, stream } if freed.contains(&block) => {
            Act::Alloc { block, bytes: (bytes / part).max(512), stream }
        }
        act => act,
    };
    run.iter().map(smaller).collect()
}

/// The recorded run never says so, longer ones do only if they lose by the plan, and most that lose because their batches are smaller
/// do. While a model of PyTorch's allocator looked at what the plan serves, 59 of 61 did, but 17 of 36 edited trainings that lose
/// (`docs/decisions/planned-memory.md`), of which now 33 do.
#[test]
fn a_plan_that_is_too_much_for_a_run_is_told_from_one_that_is_not() {
    let mut fate = Fate::default();
    let [mut lose, mut found, mut wrong] = [0; 3];
    for (seed, program) in some(program(), DRAWN) {
        let run = program.acts(1);
        let plan = fate.plan(&run, Kind::Torch);
        let loses = |run: &[Act], with| {
            let without = reserved(Kind::Torch.model(), run);
            with > without + allowance(without)
        };
        assert!(!ends(&plan, &run).1, "{seed} {program:?}");
        let longer = program.acts(3);
        let (with, is_said) = ends(&plan, &longer);
        assert!(!is_said || loses(&longer, with), "{seed} {program:?}");
        for part in [2, 4] {
            let run = of_smaller_batches(&run, part);
            fate.runs += 1;
            let (with, is_said) = ends(&plan, &run);
            let loses = loses(&run, with);
            lose += usize::from(loses);
            found += usize::from(loses && is_said);
            wrong += usize::from(is_said && !loses);
        }
    }
    println!("{lose} {found} {wrong}");
    // 79 of 120 while an edited program took all regions. Ten of those that are wrong have places for hardly any request.
    assert!((50..=66).contains(&lose) && found * 6 >= lose * 5 && wrong * 7 <= fate.runs, "{lose} {found} {wrong}");
}
