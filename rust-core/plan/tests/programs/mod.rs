//! Programs that train, as events of a record: what tests and examples plan.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pinbuddy_events::Op;
use pinbuddy_plan::file::GRANULE;
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

/// A program that is written down, block by block.
#[derive(Default)]
pub struct Tape {
    pub events: Vec<Op>,
    next: u64,
}

impl Tape {
    pub fn ask_on(&mut self, lane: u32, bytes: u64) -> u64 {
        self.next += 1;
        self.events.push(Op::request(self.next, bytes).on_thread(lane));
        self.next
    }

    pub fn ask(&mut self, bytes: u64) -> u64 {
        self.ask_on(TRAIN, bytes)
    }

    pub fn free(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.events.extend(ids.into_iter().map(Op::free));
    }

    pub fn record(&self) -> Record {
        record(&self.events)
    }
}

/// So many requests of random sizes; where more than `live` bytes would live at once, blocks are freed first, any of them.
pub fn at_random(random: &mut Random, count: usize, sizes: std::ops::Range<u64>, live: u64) -> Tape {
    let (mut tape, mut there) = (Tape::default(), Vec::new());
    for _ in 0..count {
        let bytes = sizes.start + random.below(sizes.end - sizes.start);
        while there.iter().map(|it: &(u64, u64)| it.1).sum::<u64>() + bytes > live {
            tape.free([there.swap_remove(random.below(there.len() as u64) as usize).0]);
        }
        there.push((tape.ask(bytes), bytes));
    }
    tape
}

/// Iterations of lanes that do the same each time, one event of some lane after the other: granules of a request, and after how many
/// more of the lane's requests it is over.
pub fn repeated(bodies: &[Vec<(u64, usize)>], iterations: usize, turns: &[u8], marks: bool) -> Vec<Op> {
    let own = |(lane, body): (u32, &Vec<(u64, usize)>)| {
        let mut events = VecDeque::new();
        let total = body.len() * iterations;
        let id = |at: usize| (u64::from(lane) << 32) + at as u64;
        let mut ends: Vec<Vec<u64>> = vec![Vec::new(); total + 100];
        for at in 0..total {
            if marks && lane == 0 && at % body.len() == 0 {
                events.push_back(Op::Iteration);
            }
            let (granules, lives) = body[at % body.len()];
            events.push_back(Op::request(id(at), granules * GRANULE).on_thread(lane));
            ends[at + lives % (2 * body.len())].push(id(at));
            events.extend(ends[at].drain(..).map(Op::free));
        }
        events
    };
    let mut lanes: Vec<VecDeque<Op>> = (0..).zip(bodies).map(own).collect();
    let (mut events, mut turn) = (Vec::new(), turns.iter().cycle());
    while lanes.iter().any(|it| !it.is_empty()) {
        let lane = usize::from(*turn.next().expect("a turn")) % lanes.len();
        events.extend(lanes[lane].pop_front());
    }
    events
}

/// A record of `events`.
pub fn record(events: &[Op]) -> Record {
    let mut record = Record::new(u32::MAX);
    for &event in events {
        assert!(record.push(event));
    }
    record
}

/// A plan whose search asks so often whether to stop: no clock. It reads as it was written.
pub fn planned(record: &Record, questions: usize) -> Plan {
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Relaxed) > questions;
    let made = plan(record, &Options::default(), &stop);
    let mut text = Vec::new();
    made.write(&mut text).expect("a plan that can be written");
    let again = Plan::read(std::str::from_utf8(&text).expect("text")).expect("a plan that can be read");
    assert_eq!((&again.slots, &again.lanes), (&made.slots, &made.lanes));
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
    tape: Tape,
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
            tape: Tape::default(),
            random: Random::new(what.seed),
            batches: VecDeque::new(),
        }
    }

    fn run(mut self) -> Vec<Op> {
        let layers = 0..self.what.layers;
        let weights: Vec<u64> = layers.clone().map(|layer| self.tape.ask((24 << 20) + (layer << 16))).collect();
        for iteration in 0..self.what.iterations {
            self.tape.events.extend(self.what.marks.then_some(Op::Iteration));
            self.train();
            self.tape.events.extend(self.what.clear.then_some(Op::Clear));
            if iteration == 0 {
                // The optimizer's state: made once.
                for layer in layers.clone() {
                    self.tape.ask((48 << 20) + (layer << 17));
                }
            }
            if self.what.evaluate > 0 && iteration % self.what.evaluate == self.what.evaluate - 1 {
                self.evaluate();
            }
        }
        self.tape.free(weights);
        self.tape.events
    }

    /// One thread may load at any time.
    fn step(&mut self) {
        if self.what.loader && self.batches.len() < 3 && self.random.below(20) == 0 {
            let batch = [12 << 20, 5 << 20].map(|bytes| self.tape.ask_on(LOAD, bytes));
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
                own.push((self.tape.ask(bytes), bytes));
                let bytes = self.size(self.scratch[at], layer);
                let scratch = self.tape.ask(bytes);
                self.tape.free(gone.replace(scratch));
            }
            self.tape.free(gone);
            if self.what.recompute {
                self.tape.free(own.drain(1..).map(|it| it.0));
            }
            layers.push(own);
        }
        self.tape.free(batch.into_iter().flatten());
        layers
    }

    fn backward(&mut self, layers: Vec<Vec<(u64, u64)>>) {
        let layers: Vec<_> = (0..).zip(layers).collect();
        for (layer, mut own) in layers.into_iter().rev() {
            if self.what.recompute {
                for at in 1..self.kept.len() {
                    let bytes = self.size(self.kept[at], layer);
                    own.push((self.tape.ask(bytes), bytes));
                }
            }
            for (at, (id, bytes)) in own.into_iter().enumerate().rev() {
                self.step();
                // The gradient of what is freed.
                let gradient = self.tape.ask(bytes / 2);
                let extra = self.tape.ask(self.scratch[at]);
                self.tape.free([id, extra, gradient]);
            }
        }
    }

    fn train(&mut self) {
        let mut open = VecDeque::new();
        let (mut forward, mut backward) = (0, 0);
        while backward < self.what.micro_batches {
            if forward < self.what.micro_batches && forward - backward < self.what.ahead {
                forward += 1;
                open.push_back(self.forward());
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
            self.tape.free(layers.into_iter().flatten().map(|it| it.0));
        }
    }
}

/// So many in a thousand requests are left out, and as many are added, whose size depends on that of the one before.
pub fn added(events: &[Op], thousandths: u64, seed: u64, size: impl Fn(u64, &mut Random) -> u64) -> Vec<Op> {
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
