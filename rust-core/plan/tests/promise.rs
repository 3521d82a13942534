//! What a plan of pinned memory promises on its own record: no pin beside it, and little more than the largest set. And what it is
//! worth to another run of the same program, which draws other sizes.

use std::collections::VecDeque;

use pinbuddy_events::Op;
use pinbuddy_plan::file::GRANULE;
use pinbuddy_plan::try_out;

use crate::programs::{Random, Tape, planned, record};

#[derive(Clone, Copy, Debug)]
enum Order {
    First,
    Last,
    Any,
}

/// Steps that ask for so many tensors each.
#[derive(Clone, Copy, Debug)]
struct Program {
    seed: u64,
    tensors: u64,
    /// Bytes of which the tensors' sizes are multiples.
    unit: u64,
    /// Each request has one of so many factors; with one, sizes repeat.
    factors: u64,
    /// In which order they are freed.
    order: Order,
    /// When: half of a step later, with the step, or with the next one.
    halves: u64,
    steps: u64,
    marks: bool,
}

impl Program {
    fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            seed,
            tensors: 1 + random.below(40),
            unit: [64 << 10, 4 << 20][random.below(2) as usize],
            factors: [1, 2, 3, 4, 5, 5][random.below(6) as usize],
            order: [Order::First, Order::Last, Order::Any][random.below(3) as usize],
            halves: 1 + random.below(3),
            steps: 5 + random.below(40),
            marks: random.below(2) == 0,
        }
    }

    fn events(&self, draw: u64) -> Vec<Op> {
        let mut sizes = Random::new(self.seed);
        let bases: Vec<u64> =
            (0..self.tensors).map(|_| self.unit + sizes.below(16) * self.unit + sizes.below(2) * GRANULE).collect();
        let mut random = Random::new(self.seed + 1000 * draw);
        let (mut tape, mut steps) = (Tape::default(), VecDeque::new());
        for _ in 0..self.steps {
            tape.events.extend(self.marks.then_some(Op::Iteration));
            let mut live = Vec::new();
            for base in &bases {
                let percent = [100, 75, 50, 125, 150][random.below(self.factors) as usize];
                live.push(tape.ask(base * percent / 100));
                if self.halves == 1 && live.len() > bases.len() / 2 {
                    tape.free([self.over(&mut live, &mut random)]);
                }
            }
            steps.push_back(live);
            while steps.len() as u64 > self.halves.saturating_sub(2) {
                let mut live = steps.pop_front().unwrap();
                while !live.is_empty() {
                    tape.free([self.over(&mut live, &mut random)]);
                }
            }
        }
        tape.events
    }

    /// The block that is freed next.
    fn over(&self, live: &mut Vec<u64>, random: &mut Random) -> u64 {
        let at = match self.order {
            Order::First => 0,
            Order::Last => live.len() - 1,
            Order::Any => random.below(live.len() as u64) as usize,
        };
        live.remove(at)
    }
}

#[test]
fn a_plan_keeps_its_promise_and_is_worth_something_to_another_run() {
    const PROGRAMS: u64 = 300;
    let (mut pinned, mut pins) = (0.0, 0.0);
    for seed in 0..PROGRAMS {
        let program = Program::of(seed);
        let own = record(&program.events(0));
        let plan = planned(&own, 100_000);
        let tried = try_out(&own, &plan);
        let ratio = tried.pinned as f64 / own.peak() as f64;
        let most = if program.factors == 1 { 1.02 } else { 1.05 };
        assert!(tried.pins == 0 && ratio <= most, "{program:?}: {tried:?}, {ratio:.3}");
        for draw in 1..4 {
            let other = record(&program.events(draw));
            let tried = try_out(&other, &plan);
            pinned += tried.pinned as f64 / own.peak().max(other.peak()) as f64;
            pins += tried.pins as f64;
        }
    }
    let runs = PROGRAMS as f64 * 3.0;
    println!("others: {:.3} of the largest set, {:.2} pins", pinned / runs, pins / runs);
    // It is 1.087 and 0.45: a run that strays from its plan has the plan's memory as room, and five percent more than it needs.
    assert!(pinned / runs <= 1.1 && pins / runs <= 0.6);
}
