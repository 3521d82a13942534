//! Instances, made from seeds: hard ones, and trainings of any length.

use pinbuddy_events::Op;
use pinbuddy_plan::file::GRANULE;
use pinbuddy_plan::{Block, Record};
use pinbuddy_replay::workload::Random;

/// Times and bytes of a hard instance, and the least that a piece of it has of both.
const MOMENTS: u64 = 600;
const BYTES: u64 = 1 << 20;
const SHORTEST: u64 = 4;
const SMALLEST: u64 = 4096;

/// Numbers by chance, the same for the same seed.
struct Chance(Random);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.draw() % limit
    }

    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }
}

/// A part of the rectangle of times and bytes.
#[derive(Clone, Copy)]
struct Piece {
    times: (u64, u64),
    bytes: (u64, u64),
}

impl Piece {
    fn area(&self) -> u64 {
        (self.times.1 - self.times.0) * (self.bytes.1 - self.bytes.0)
    }

    /// Into two, or into five that no straight cut parts; nothing if it is too small.
    fn cut(&self, random: &mut Chance) -> Vec<Self> {
        let between = |(from, to): (u64, u64), least: u64, random: &mut Chance| {
            (to - from >= 2 * least).then(|| random.within(from + least, to - least + 1))
        };
        let part = |times, bytes| Self { times, bytes };
        let ((t0, t1), (b0, b1)) = (self.times, self.bytes);
        let wheel = t1 - t0 >= 3 * SHORTEST && b1 - b0 >= 3 * SMALLEST;
        if wheel && random.below(3) == 0 {
            let (time, byte) = ((t1 - t0) / 3, (b1 - b0) / 3 / 64 * 64);
            let left = random.within(t0 + SHORTEST, t0 + time + 1);
            let right = random.within(t1 - time, t1 - SHORTEST + 1);
            let low = b0 + byte - random.below(byte / 2 / 64 + 1) * 64;
            let high = b1 - byte + random.below(byte / 2 / 64 + 1) * 64;
            return vec![
                part((t0, right), (b0, low)),
                part((right, t1), (b0, high)),
                part((left, t1), (high, b1)),
                part((t0, left), (low, b1)),
                part((left, right), (low, high)),
            ];
        }
        let by_time = random.below(2) == 0;
        let at = |by_time: bool, random: &mut Chance| {
            if by_time {
                let at = between(self.times, SHORTEST, random)?;
                Some(vec![part((t0, at), (b0, b1)), part((at, t1), (b0, b1))])
            } else {
                let at = between((b0 / 64, b1 / 64), SMALLEST / 64, random)? * 64;
                Some(vec![part((t0, t1), (b0, at)), part((t0, t1), (at, b1))])
            }
        };
        at(by_time, random)
            .or_else(|| at(!by_time, random))
            .unwrap_or_default()
    }
}

/// At least so many blocks that fill a rectangle without a gap: the lower bound can be reached, and by few placements.
pub(crate) fn hard(blocks: usize, seed: u64) -> Vec<Block> {
    let mut random = Chance(Random::new(seed));
    let mut pieces = vec![Piece {
        times: (0, MOMENTS),
        bytes: (0, BYTES),
    }];
    while pieces.len() < blocks {
        // Of a few, the largest.
        let some = (0..4).map(|_| random.below(pieces.len() as u64) as usize);
        let some: Vec<usize> = some.collect();
        let Some(&largest) = some.iter().max_by_key(|&&at| pieces[at].area()) else {
            break;
        };
        let cut = pieces[largest].cut(&mut random);
        if !cut.is_empty() {
            pieces.swap_remove(largest);
            pieces.extend(cut);
        }
    }
    let block = |it: &Piece| Block {
        lower: it.times.0,
        upper: it.times.1,
        size: it.bytes.1 - it.bytes.0,
    };
    pieces.iter().map(block).collect()
}

/// Sizes of a layer's activations, and of what it needs for a moment, in granules.
const KEPT: [u64; 6] = [20_480, 20_480, 28_672, 320, 8, 8];
const PASSING: [u64; 4] = [40_960, 55_296, 13_824, 5_120];
const LAYERS: usize = 24;

/// A training without repetition: micro-batches whose lengths differ, layers forward and back, a few batches at once.
pub(crate) fn training(requests: usize, seed: u64) -> Vec<Block> {
    let (mut blocks, mut now) = (Vec::with_capacity(requests), 0);
    let mut random = Chance(Random::new(seed));
    let mut waiting: Vec<Vec<usize>> = Vec::new();
    while blocks.len() < requests {
        let length = random.within(64, 129);
        let mut kept = Vec::new();
        for _ in 0..LAYERS {
            passing(&mut blocks, &mut now, length);
            for granules in KEPT {
                now += 1;
                kept.push(blocks.len());
                blocks.push(block(now, u64::MAX, granules * length / 128));
            }
        }
        waiting.push(kept);
        if waiting.len() == 4 {
            back(&mut blocks, &mut now, waiting.remove(0), length);
        }
    }
    for kept in waiting {
        back(&mut blocks, &mut now, kept, 64);
    }
    blocks
}

fn block(lower: u64, upper: u64, granules: u64) -> Block {
    let size = granules.max(1) * GRANULE;
    Block { lower, upper, size }
}

/// What a layer needs for a moment: each overlaps the next.
fn passing(blocks: &mut Vec<Block>, now: &mut u64, length: u64) {
    for granules in PASSING {
        *now += 1;
        blocks.push(block(*now, *now + 2, granules * length / 128));
    }
}

fn back(blocks: &mut Vec<Block>, now: &mut u64, kept: Vec<usize>, length: u64) {
    for layer in kept.rchunks(KEPT.len()) {
        passing(blocks, now, length);
        *now += 1;
        for &at in layer {
            blocks[at].upper = *now;
        }
    }
}

/// A run of so many requests: the same iteration again and again.
pub(crate) fn run(requests: usize, seed: u64) -> Record {
    let iteration = training(requests / 50, seed);
    let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * iteration.len());
    for (at, it) in iteration.iter().enumerate() {
        moments.extend([(it.lower, true, at), (it.upper, false, at)]);
    }
    moments.sort_unstable();
    let mut record = Record::new(u32::MAX);
    for round in 0..requests.div_ceil(iteration.len()) {
        let id = |at: usize| (round * iteration.len() + at) as u64;
        for &(_, begins, at) in &moments {
            record.push(match begins {
                true => Op::request(id(at), iteration[at].size),
                false => Op::free(id(at)),
            });
        }
    }
    record
}
