//! Plans of device memory of random programs: with the plan of a run no more is reserved in it than without; and what becomes of
//! runs that are longer, or whose record was broken off.
//!
//! The programs are made of what records of strangers' programs have: one step or several, layers of equal sizes, phases of
//! different sizes, tails, state that is replaced, micro-batches, evaluations, frozen weights, several streams, small requests.
#![allow(clippy::unwrap_used, reason = "tests")]

use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_plan::{Options, Watch};
use pinbuddy_replay::device::replay::Replay;
use pinbuddy_replay::device::{Act, Device, Kind};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The longest segment that PyTorch makes of a request of less than 10 MiB.
const SEGMENT: u64 = 20 * MIB;

/// A part of a program: steps that are alike.
#[derive(Clone, Debug)]
struct Phase {
    steps: usize,
    /// Of a layer's activations, gradients and buffers, in percent.
    scale: u64,
    micro_batches: usize,
    /// Else it goes forward alone.
    trains: bool,
    /// A request behind the layers, in MiB.
    tail: u64,
    /// The optimizer makes its state anew in each step, and frees the old one.
    replaces: bool,
}

/// See the file's documentation. Sizes are in KiB.
#[derive(Clone, Debug)]
struct Program {
    layers: usize,
    weight: u64,
    activation: u64,
    buffer: u64,
    small: u64,
    frozen: bool,
    /// Buffers are another stream's.
    streams: bool,
    phases: Vec<Phase>,
}

/// What it does, act by act.
#[derive(Default)]
struct Tape {
    acts: Vec<Act>,
    next: u32,
}

impl Tape {
    fn ask_on(&mut self, stream: u32, kib: u64) -> u32 {
        let block = self.next;
        self.next += 1;
        let bytes = (kib * KIB).max(512);
        self.acts.push(Act::Alloc {
            block,
            bytes,
            stream,
        });
        block
    }

    fn ask(&mut self, kib: u64) -> u32 {
        self.ask_on(0, kib)
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = u32>) {
        let frees = blocks.into_iter().map(|block| Act::Free { block });
        self.acts.extend(frees);
    }
}

impl Program {
    /// All it does, with each phase so many times as long.
    fn acts(&self, times: usize) -> Vec<Act> {
        let mut tape = Tape::default();
        let weights =
            (0..self.layers * 2).map(|it| tape.ask(self.weight * (1 + it as u64 % 2 * 3)));
        let weights: Vec<u32> = weights.collect();
        let mut state: Vec<u32> = Vec::new();
        for phase in &self.phases {
            for _ in 0..phase.steps * times {
                self.step(phase, &mut tape, &mut state);
            }
        }
        tape.free(weights.into_iter().rev().take(1));
        tape.acts
    }

    fn step(&self, phase: &Phase, tape: &mut Tape, state: &mut Vec<u32>) {
        let scaled = |kib: u64| kib * phase.scale / 100;
        let mut gradients: Vec<u32> = Vec::new();
        for _ in 0..phase.micro_batches {
            let mut kept = Vec::new();
            for layer in 0..self.layers {
                let buffer = tape.ask_on(u32::from(self.streams), scaled(self.buffer));
                let activation = tape.ask(scaled(self.activation) + 64 * (layer as u64 % 3));
                let small = tape.ask(self.small);
                tape.free([buffer]);
                match phase.trains {
                    true => kept.extend([activation, small]),
                    false => tape.free([activation, small]),
                }
            }
            let tail = (phase.tail > 0).then(|| tape.ask(phase.tail * 1024));
            while let (Some(small), Some(activation)) = (kept.pop(), kept.pop()) {
                let gradient = tape.ask(scaled(self.activation));
                if !self.frozen && gradients.len() < self.layers {
                    gradients.push(tape.ask(self.weight));
                }
                tape.free([activation, small, gradient]);
            }
            tape.free(tail);
        }
        if phase.trains && !self.frozen {
            let is_new = state.is_empty() || phase.replaces;
            for layer in (0..self.layers).filter(|_| is_new) {
                let own = tape.ask(self.weight);
                if let Some(old) = state.get_mut(layer) {
                    tape.free([std::mem::replace(old, own)]);
                } else {
                    state.push(own);
                }
            }
        }
        tape.free(gradients);
        tape.acts.push(Act::Iter);
    }
}

fn phase() -> impl Strategy<Value = Phase> {
    let scale = prop_oneof![Just(100_u64), 30_u64..250];
    let tail = prop_oneof![Just(0_u64), 8_u64..90];
    (
        1_usize..4,
        scale,
        1_usize..3,
        prop::bool::weighted(0.7),
        tail,
        any::<bool>(),
    )
        .prop_map(
            |(steps, scale, micro_batches, trains, tail, replaces)| Phase {
                steps,
                scale,
                micro_batches,
                trains,
                tail,
                replaces,
            },
        )
}

fn program() -> impl Strategy<Value = Program> {
    (
        2_usize..9,
        (100_u64..9000, 100_u64..40_000, 100_u64..40_000, 1_u64..200),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
        prop::collection::vec(phase(), 1..4),
    )
        .prop_map(
            |(layers, (weight, activation, buffer, small), frozen, streams, phases)| Program {
                layers,
                weight,
                activation,
                buffer,
                small,
                frozen,
                streams,
                phases,
            },
        )
}

fn reserved(model: impl Device, acts: &[Act]) -> u64 {
    let mut replay = Replay::new(model);
    acts.iter().for_each(|act| replay.step(*act));
    replay.outcome().peak_reserved
}

/// How much more is reserved with the plan of a recorded run in another one, than without; in a process that knows its allocator.
fn more(recorded: &[Act], run: &[Act], kind: Kind) -> i64 {
    let mut record = DeviceRecord::of(recorded);
    record.behind(kind);
    let (stop, seen) = (&|| false, &|_| {});
    let (plan, _) = record.plan_watched(&Options::default(), Watch { stop, seen });
    let with = reserved(plan.before(0, kind.model()).unwrap(), run);
    with as i64 - reserved(kind.model(), run) as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_run_that_was_recorded_is_never_worse_off(program in program(), expandable: bool) {
        let acts = program.acts(1);
        let kind = Kind::ALL[usize::from(expandable)];
        prop_assert!(more(&acts, &acts, kind) <= 0);
    }
}

/// Of `PROGRAMS` programs: how many reserve more than a segment more with the plan, and how much more all do on average, as a
/// part of what is reserved without.
fn differing(run: impl Fn(&Program) -> (Vec<Act>, Vec<Act>)) -> (usize, f64) {
    let mut runner = TestRunner::deterministic();
    let (mut worse, mut sum) = (0, 0.0);
    for _ in 0..PROGRAMS {
        let (recorded, run) = run(&program().new_tree(&mut runner).unwrap().current());
        let found = more(&recorded, &run, Kind::Torch);
        worse += usize::from(found > SEGMENT as i64);
        sum += found as f64 / reserved(Kind::Torch.model(), &run) as f64;
    }
    (worse, sum / PROGRAMS as f64)
}

const PROGRAMS: usize = 150;

/// None should be worse off. These are the figures so far: a plan that does not fit costs its regions until it is dropped.
#[test]
fn runs_that_differ_gain_on_average_and_few_lose_more_than_a_segment() {
    let longer = differing(|it| (it.acts(1), it.acts(3)));
    let broken_off = differing(|it| {
        let acts = it.acts(1);
        (acts[..acts.len() * 6 / 10].to_vec(), acts)
    });
    println!("longer: {longer:?}; broken off: {broken_off:?}");
    assert!(longer.0 * 4 <= PROGRAMS && longer.1 < -0.03, "{longer:?}");
    assert!(
        broken_off.0 * 6 <= PROGRAMS && broken_off.1 < -0.03,
        "{broken_off:?}"
    );
}
