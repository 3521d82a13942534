//! Random programs of device memory, made of what records of strangers' programs have: one step or several, layers of equal sizes,
//! phases of different sizes, tails, state that is replaced, micro-batches, evaluations, frozen weights with adapters, two resolutions,
//! experts, several streams, small requests.

mod ddp;
mod drawn;
mod mixed;

pub(crate) use ddp::{Ddp, ddp};
pub(crate) use drawn::drawn;
pub(crate) use mixed::mixed;
use pinbuddy_replay::device::Act;
use proptest::prelude::*;

const KIB: u64 = 1 << 10;

/// A part of a program: steps that are alike.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
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
    /// Every second step has a quarter of the activations: another resolution.
    two_resolutions: bool,
    /// Experts' buffers have other sizes in each step.
    experts: bool,
}

/// See the file's documentation. Sizes are in KiB.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    layers: usize,
    weight: u64,
    /// What is trained where weights are frozen; 0: nothing.
    adapter: u64,
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
        self.acts.push(Act::Alloc { block, bytes, stream });
        block
    }

    fn ask(&mut self, kib: u64) -> u32 {
        self.ask_on(0, kib)
    }

    /// What is freed before anything else happens.
    fn pass(&mut self, kib: u64) {
        let block = self.ask(kib);
        self.free([block]);
    }

    fn use_on(&mut self, block: u32, stream: u32) {
        self.acts.push(Act::Use { block, stream });
    }

    fn free(&mut self, blocks: impl IntoIterator<Item = u32>) {
        let frees = blocks.into_iter().map(|block| Act::Free { block });
        self.acts.extend(frees);
    }
}

impl Program {
    /// All it does, with each phase so many times as long.
    pub(crate) fn acts(&self, times: usize) -> Vec<Act> {
        let mut tape = Tape::default();
        let weights = (0..self.layers * 2).map(|it| tape.ask(self.weight * (1 + it as u64 % 2 * 3)));
        let weights: Vec<u32> = weights.collect();
        let mut state: Vec<u32> = Vec::new();
        for phase in &self.phases {
            for step in 0..phase.steps * times {
                self.step(phase, step, &mut tape, &mut state);
            }
        }
        tape.free(weights.into_iter().rev().take(1));
        tape.acts
    }

    /// What is trained of a layer.
    fn trained(&self) -> u64 {
        if self.frozen { self.adapter } else { self.weight }
    }

    fn step(&self, phase: &Phase, step: usize, tape: &mut Tape, state: &mut Vec<u32>) {
        let scale = if phase.two_resolutions && step % 2 == 1 { phase.scale / 4 } else { phase.scale };
        let scaled = |kib: u64| kib * scale / 100;
        let mut gradients: Vec<u32> = Vec::new();
        for _ in 0..phase.micro_batches {
            let mut kept = Vec::new();
            for layer in 0..self.layers {
                // Any sizes that differ, the same in each run.
                let share = if phase.experts { 40 + (step * 31 + layer * 17) as u64 % 97 } else { 100 };
                let buffer = scaled(self.buffer) * share / 100;
                let buffer = tape.ask_on(u32::from(self.streams), buffer);
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
                if self.trained() > 0 && gradients.len() < self.layers {
                    gradients.push(tape.ask(self.trained()));
                }
                tape.free([activation, small, gradient]);
            }
            tape.free(tail);
        }
        if phase.trains && self.trained() > 0 {
            let is_new = state.is_empty() || phase.replaces;
            for layer in (0..self.layers).filter(|_| is_new) {
                let own = tape.ask(self.trained());
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

prop_compose! {
    fn phase()(
        steps in 1_usize..4,
        scale in prop_oneof![Just(100_u64), 30_u64..250],
        micro_batches in 1_usize..3,
        trains in prop::bool::weighted(0.7),
        tail in prop_oneof![Just(0_u64), 8_u64..90],
        replaces: bool,
        two_resolutions in prop::bool::weighted(0.2),
        experts in prop::bool::weighted(0.2),
    ) -> Phase {
        Phase { steps, scale, micro_batches, trains, tail, replaces, two_resolutions, experts }
    }
}

prop_compose! {
    pub(crate) fn program()(
        layers in 2_usize..9,
        (weight, activation, buffer, small) in (100_u64..9000, 100_u64..40_000, 100_u64..40_000, 1_u64..200),
        frozen in prop::bool::weighted(0.3),
        adapter in prop_oneof![Just(0_u64), 100_u64..2000],
        streams in prop::bool::weighted(0.3),
        phases in prop::collection::vec(phase(), 1..4),
    ) -> Program {
        Program { layers, weight, adapter, activation, buffer, small, frozen, streams, phases }
    }
}

/// A generator of numbers for what differs by chance.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// The acts with one in twenty requests half as long or half as long again.
    pub(crate) fn change(&mut self, acts: &[Act]) -> Vec<Act> {
        let mut changed = acts.to_vec();
        for act in &mut changed {
            if let Act::Alloc { bytes, .. } = act
                && self.draw().is_multiple_of(20)
            {
                *bytes = if self.draw().is_multiple_of(2) { *bytes * 3 / 2 } else { *bytes / 2 + 1 };
            }
        }
        changed
    }

    /// The acts with one in three blocks used by another stream, which is done with it some acts after it was freed: when that is
    /// differs by chance, which blocks these are does not.
    pub(crate) fn delay(&mut self, acts: &[Act]) -> Vec<Act> {
        self.complete_late(acts, 12, |block| block.is_multiple_of(3))
    }

    /// The acts, in which each block that another stream used is complete some acts after it was freed, at most so many. One more
    /// stream uses those that are `also_used`.
    fn complete_late(&mut self, acts: &[Act], latest: u64, also_used: fn(u32) -> bool) -> Vec<Act> {
        let mut late: Vec<Act> = Vec::new();
        let mut waiting: Vec<(u64, u32)> = Vec::new();
        let mut used = std::collections::HashSet::new();
        for (now, act) in (0_u64..).zip(acts) {
            waiting.retain(|&(until, block)| {
                if until <= now {
                    late.push(Act::Complete { block });
                }
                until > now
            });
            late.push(*act);
            match *act {
                Act::Alloc { block, .. } if also_used(block) => {
                    used.insert(block);
                    late.push(Act::Use { block, stream: 9 });
                }
                Act::Use { block, .. } => drop(used.insert(block)),
                Act::Free { block } if used.remove(&block) => {
                    waiting.push((now + 1 + self.draw() % latest, block));
                }
                _ => {}
            }
        }
        late
    }
}
