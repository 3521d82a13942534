//! Programs that train, as events of a record: what tests and examples plan.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pinbuddy_events::Op;
use pinbuddy_plan::{Options, Plan, Record, plan};

/// The thread that trains, and the one that loads batches.
pub const TRAIN: u32 = 0;
pub const LOAD: u32 = 1;

/// A pipeline stage's training.
#[derive(Clone, Copy, Debug)]
pub struct Training {
    pub iterations: u64,
    pub layers: u64,
    pub micro_batches: u64,
    /// Micro-batches whose activations live at once.
    pub ahead: u64,
    /// Activations are made again in the backward pass, but for one of each layer.
    pub recompute: bool,
    /// Percent of layers whose sizes differ each time, and by how much, in percent.
    pub experts: u64,
    pub jitter: u64,
    /// A thread loads batches, a few ahead, whenever it likes.
    pub loader: bool,
    /// After each so many iterations a forward pass alone; 0: never.
    pub evaluate: u64,
    /// The cache is emptied in each iteration.
    pub clear: bool,
    pub marks: bool,
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            iterations: 5,
            layers: 12,
            micro_batches: 8,
            ahead: 4,
            recompute: false,
            experts: 0,
            jitter: 30,
            loader: false,
            evaluate: 0,
            clear: false,
            marks: true,
            seed: 1,
        }
    }
}

impl Training {
    pub fn events(self) -> Vec<Op> {
        Trainer::new(self).run()
    }
}

/// A record of `events`.
pub fn record(events: &[Op]) -> Record {
    let mut record = Record::new(u32::MAX);
    for &event in events {
        assert!(record.push(event));
    }
    record
}

/// A plan whose search asks so often whether to stop.
pub fn planned(record: &Record, questions: usize) -> Plan {
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Relaxed) > questions;
    let made = plan(record, &Options::default(), &stop);
    made.check().expect("a plan");
    made
}

/// So many in a thousand requests ask for something else.
pub fn changed(events: &[Op], thousandths: u64, seed: u64) -> Vec<Op> {
    let mut random = Random::new(seed);
    let change = |event: &Op| match *event {
        Op::Request { id, thread: lane, .. } if random.below(1000) < thousandths => {
            let bytes = (4 << 20) + random.below(40 << 20);
            Op::request(id, bytes).on_thread(lane)
        }
        event => event,
    };
    events.iter().map(change).collect()
}

#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

struct Trainer {
    what: Training,
    events: Vec<Op>,
    next: u64,
    /// Decides on the model: the same for each seed. And on what happens by chance.
    random: Random,
    /// Sizes of what the backward pass needs, and of what a layer needs for itself.
    kept: Vec<u64>,
    scratch: Vec<u64>,
    batches: VecDeque<Vec<u64>>,
}

impl Trainer {
    fn new(what: Training) -> Self {
        // The model is the same for all seeds.
        let mut model = Random::new(7);
        let sizes = |count, unit: u64, most, model: &mut Random| {
            let one = |model: &mut Random| (8 << 20) + unit * (1 + model.below(most)) - model.below(4096);
            (0..count).map(|_| one(model)).collect::<Vec<u64>>()
        };
        Self {
            kept: sizes(8, 1 << 20, 60, &mut model),
            scratch: sizes(8, 256 << 10, 100, &mut model),
            what,
            events: Vec::new(),
            next: 0,
            random: Random::new(what.seed),
            batches: VecDeque::new(),
        }
    }

    fn ask(&mut self, bytes: u64, lane: u32) -> u64 {
        let id = self.next;
        self.next += 1;
        self.events.push(Op::request(id, bytes).on_thread(lane));
        id
    }

    fn over(&mut self, id: u64) {
        self.events.push(Op::free(id));
    }

    fn run(mut self) -> Vec<Op> {
        let weights: Vec<u64> =
            (0..self.what.layers).map(|layer| self.ask((24 << 20) + (layer << 16), TRAIN)).collect();
        for iteration in 0..self.what.iterations {
            if self.what.marks {
                self.events.push(Op::Iteration);
            }
            self.train();
            if self.what.clear {
                self.events.push(Op::Clear);
            }
            if iteration == 0 {
                // The optimizer's state: made once.
                for layer in 0..self.what.layers {
                    self.ask((48 << 20) + (layer << 17), TRAIN);
                }
            }
            if self.what.evaluate > 0 && iteration % self.what.evaluate == self.what.evaluate - 1 {
                self.evaluate();
            }
        }
        weights.into_iter().for_each(|id| self.over(id));
        self.events
    }

    /// One thread may load at any time.
    fn step(&mut self) {
        if self.what.loader && self.batches.len() < 3 && self.random.below(20) == 0 {
            let batch = [12 << 20, 5 << 20].map(|bytes| self.ask(bytes, LOAD));
            self.batches.push_back(batch.to_vec());
        }
    }

    fn size(&mut self, bytes: u64, layer: u64) -> u64 {
        // Spread over the layers.
        if layer * 37 % 100 >= self.what.experts {
            return bytes;
        }
        let most = bytes * self.what.jitter / 100;
        bytes - most + self.random.below(2 * most)
    }

    fn forward(&mut self) -> Vec<Vec<(u64, u64)>> {
        if self.what.loader {
            while self.batches.is_empty() {
                self.step();
            }
        }
        let batch = self.batches.pop_front();
        let mut layers = Vec::new();
        for layer in 0..self.what.layers {
            let (mut own, mut gone) = (Vec::new(), None);
            for at in 0..self.kept.len() {
                self.step();
                let bytes = self.size(self.kept[at], layer);
                let id = self.ask(bytes, TRAIN);
                own.push((id, bytes));
                let bytes = self.size(self.scratch[at], layer);
                let scratch = self.ask(bytes, TRAIN);
                if let Some(gone) = gone.replace(scratch) {
                    self.over(gone);
                }
            }
            self.over(gone.expect("a layer has scratch"));
            if self.what.recompute {
                own.drain(1..).for_each(|(id, _)| self.over(id));
            }
            layers.push(own);
        }
        batch.into_iter().flatten().for_each(|id| self.over(id));
        layers
    }

    fn backward(&mut self, layers: Vec<Vec<(u64, u64)>>) {
        let layers: Vec<_> = (0..).zip(layers).collect();
        for (layer, mut own) in layers.into_iter().rev() {
            if self.what.recompute {
                for at in 1..self.kept.len() {
                    let bytes = self.size(self.kept[at], layer);
                    own.push((self.ask(bytes, TRAIN), bytes));
                }
            }
            for (at, (id, bytes)) in own.into_iter().enumerate().rev() {
                self.step();
                // The gradient of what is freed.
                let gradient = self.ask(bytes / 2, TRAIN);
                let extra = self.ask(self.scratch[at], TRAIN);
                self.over(id);
                self.over(extra);
                self.over(gradient);
            }
        }
    }

    fn train(&mut self) {
        let mut open = VecDeque::new();
        let (mut forward, mut backward) = (0, 0);
        while backward < self.what.micro_batches {
            if forward < self.what.micro_batches && forward - backward < self.what.ahead {
                forward += 1;
                let batch = self.forward();
                open.push_back(batch);
            } else {
                backward += 1;
                let batch = open.pop_front().expect("one is open");
                self.backward(batch);
            }
        }
    }

    fn evaluate(&mut self) {
        for _ in 0..self.what.micro_batches {
            let layers = self.forward();
            for (id, _) in layers.into_iter().flatten() {
                self.over(id);
            }
        }
    }
}

/// So many in a thousand requests are left out, and as many are added.
pub fn shifted(events: &[Op], thousandths: u64, seed: u64) -> Vec<Op> {
    added(events, thousandths, seed, |_, random| (4 << 20) + random.below(40 << 20))
}

/// The same; those that are added have the sizes of those before them.
pub fn twice(events: &[Op], thousandths: u64, seed: u64) -> Vec<Op> {
    added(events, thousandths, seed, |bytes, _| bytes)
}

fn added(events: &[Op], thousandths: u64, seed: u64, size: impl Fn(u64, &mut Random) -> u64) -> Vec<Op> {
    let mut random = Random::new(seed);
    let (mut all, mut gone, mut added) = (Vec::new(), Vec::new(), VecDeque::new());
    for &event in events {
        match event {
            Op::Request { id, .. } if random.below(1000) < thousandths => gone.push(id),
            Op::Free { id, .. } if gone.contains(&id) => {}
            event => all.push(event),
        }
        if let Op::Request { bytes, thread: lane, .. } = event {
            if random.below(1000) < thousandths {
                let id = (1 << 40) + all.len() as u64;
                let bytes = size(bytes, &mut random);
                all.push(Op::request(id, bytes).on_thread(lane));
                added.push_back(id);
            }
            if added.len() > 3 {
                let id = added.pop_front().expect("more than three");
                all.push(Op::free(id));
            }
        }
    }
    all
}
