//! Exact growth, with lists of odd sizes: each list is held and freed, and another is asked for. How much is pinned at most,
//! over what lives at most. And threads whose phases begin and end together and differ in size: hardly more than the largest set is
//! pinned at the end.

use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::programs::{Act, Case, Cell, Outcome, Run, Setting, Shape, Sizes, run};
use pinbuddy_replay::workload::Random;
use pinbuddy_replay::world::Machine;
use pinbuddy_replay::{GIB, MIB};

const LISTS: u64 = 60;
const ROUNDS: usize = 40;

/// What a round frees, and asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Round {
    /// The whole list; the same sizes in another order.
    All,
    /// The whole list but its last block, which lives until the first of the next list was served (a loop's variable): the same
    /// sizes in another order.
    Variable,
    /// A part of the list; the same sizes in another order.
    Part,
    /// Half of what lives, whatever it is; the first half of the list.
    Half,
    /// The whole list; sixty blocks, each of one of three sizes.
    Drawn,
    /// The whole list; a dozen blocks of three sizes, each with a few bytes more, which differ.
    Never,
}

/// The acts of a program with one list.
struct Program {
    random: Random,
    sizes: Vec<u64>,
    live: Vec<(u32, u64)>,
    acts: Vec<Act>,
    requests: u32,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let count = 3 + random.draw() % 20;
        let sizes = [9, 17, 33, 65, 129, 257];
        let size = |_| sizes[(random.draw() % 6) as usize] * MIB + random.draw() % 5000;
        let sizes = (0..count).map(size).collect();
        Self { random, sizes, live: Vec::new(), acts: Vec::new(), requests: 0 }
    }

    fn below(&mut self, end: usize) -> usize {
        (self.random.draw() % end as u64) as usize
    }

    fn in_any_order<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        for at in (1..items.len()).rev() {
            let other = self.below(at + 1);
            items.swap(at, other);
        }
        items
    }

    /// Frees so many of the live blocks; returns their sizes.
    fn free(&mut self, count: usize) -> Vec<u64> {
        let live = std::mem::take(&mut self.live);
        let mut freed = self.in_any_order(live);
        self.live = freed.split_off(count);
        let frees = freed.iter().map(|(block, _)| Act::Free(*block));
        self.acts.extend(frees);
        freed.into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn round(&mut self, kind: Round) {
        const OFTEN: [u64; 3] = [33 * MIB, 65 * MIB, 129 * MIB];
        let (lives, list) = (self.live.len(), self.sizes.clone());
        let count = match kind {
            Round::Part if lives > 0 => 1 + self.below(lives),
            Round::Half => lives / 2,
            Round::Variable => lives.saturating_sub(1),
            _ => lives,
        };
        let mut variable = match kind {
            Round::Variable => self.live.pop(),
            _ => None,
        };
        let mut freed = self.free(count);
        freed.extend(variable.map(|(_, bytes)| bytes));
        let next = match kind {
            _ if lives == 0 && !matches!(kind, Round::Drawn | Round::Never) => list,
            Round::All | Round::Part | Round::Variable => self.in_any_order(freed),
            Round::Half => list[..list.len() / 2].to_vec(),
            Round::Drawn => (0..60).map(|_| OFTEN[self.below(3)] + 77).collect(),
            Round::Never => {
                let size = |at: usize| OFTEN[at % 3] + self.below(5000) as u64;
                (0..12).map(size).collect()
            }
        };
        for bytes in next {
            self.acts.push(Act::Alloc(self.requests, bytes));
            self.live.push((self.requests, bytes));
            self.requests += 1;
            let gone = variable.take().map(|(block, _)| Act::Free(block));
            self.acts.extend(gone);
        }
    }

    /// The most that it has pinned, over the most that lives.
    fn pinned(mut self, kind: Round) -> f64 {
        (0..ROUNDS).for_each(|_| self.round(kind));
        let [outcome, _] = beside_stock(self.acts);
        outcome.peak as f64 / outcome.largest_set as f64
    }
}

/// What becomes of a program with exact growth, and with stock.
fn beside_stock(acts: Vec<Act>) -> [Outcome; 2] {
    let machine = Machine::paced(500_000, 10);
    let (settings, acts) = (Settings::default().exact().core(), [acts]);
    [Some(&settings), None].map(|settings| {
        let of = Run { acts: &acts, machine, audits: false };
        run(of, settings).unwrap()
    })
}

/// Of the lists of all seeds, in rising order.
fn pinned(kind: Round) -> Vec<f64> {
    let one = |seed| Program::new(seed * 7).pinned(kind);
    let mut all: Vec<f64> = (0..LISTS).map(one).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Regions that were let go stayed pinned beside those that replaced them: the medians of the last three were 1.24, 1.21 and
/// 1.37. A region a page too short served none of the others: with a few bytes more each time, 82 pins where stock pins 12.
#[test]
fn sizes_that_come_again_pin_nothing_more_and_what_replaces_regions_that_do_not_fit_hardly_adds_to_them() {
    for kind in [Round::All, Round::Part] {
        let worst = pinned(kind).pop().unwrap();
        assert!(worst <= 1.05, "{kind:?}: {worst:.3}");
    }
    for (kind, most) in [(Round::Variable, 1.02), (Round::Half, 1.1), (Round::Drawn, 1.19), (Round::Never, 1.02)] {
        let all = pinned(kind);
        let median = all[all.len() / 2];
        assert!(median <= most, "{kind:?}: {median:.3}");
    }
}

/// A buffer that grows row by row, the new one before the old one is freed, or behind it: it pinned at one step in ten (87 times where stock pins 7),
/// since no region had room for the next row.
#[test]
fn a_buffer_that_grows_is_not_pinned_at_each_step() {
    let both = [(64, false), (64, true), (256, false), (256, true)];
    for (row, old_first) in both.into_iter().chain([(1024, false)]) {
        let mut acts = vec![Act::Alloc(0, 8 * MIB)];
        let steps = 56 * 1024 / row;
        for step in 1..=steps {
            let next = Act::Alloc(step as u32, 8 * MIB + step * row * 1024);
            let old = Act::Free(step as u32 - 1);
            acts.extend(if old_first { [old, next] } else { [next, old] });
        }
        let [ours, stock] = beside_stock(acts);
        let [ours, stock] = [ours, stock].map(|it| it.pins.last().copied().unwrap());
        assert!(
            ours <= 2 * stock + 24,
            "{row} KiB a row, the old one first: {old_first}; {ours} pins, {stock} with stock",
        );
    }
}

fn rounds(seed: u64, threads: u8, blocks: u8, computes: u32) -> Case {
    let mut random = Random::new(seed);
    let length = 300 * usize::from(threads) * usize::from(blocks);
    let cell = |it: u64| -> Cell { (it as u16, 0, (it >> 16) as u8, 0) };
    let (sizes, [holders, clears, streams, stuck, captures]) = (Sizes::Rounds(blocks), [0; 5]);
    Case {
        shape: Shape { sizes, live: 64 * GIB, threads, holders, clears, computes, streams, stuck, captures },
        tape: (0..length).map(|_| cell(random.draw())).collect(),
        machine: Machine::paced(500_000, 10),
        setting: Setting::Exact,
    }
}

/// The most over these seeds: bytes pinned at the end over the largest set, and pins.
fn worst(threads: u8, blocks: u8, computes: u32) -> (f64, u64) {
    let mut worst = (0.0, 0);
    for seed in 1..=40 {
        let (ours, _) = rounds(seed, threads, blocks, computes).run(false).unwrap();
        let over = ours.pinned_at_end as f64 / ours.largest_set as f64;
        let pins = *ours.pins.last().unwrap();
        worst = (f64::max(worst.0, over), worst.1.max(pins));
    }
    worst
}

#[test]
fn what_is_pinned_at_the_end_is_hardly_more_than_the_largest_set() {
    for threads in [1, 2, 4] {
        for blocks in [1, 6] {
            for computes in [0, 1000] {
                let (over, pins) = worst(threads, blocks, computes);
                // Ten phases are learnt from; then a larger set comes a few times.
                let most = 20 * u64::from(threads) * u64::from(blocks).max(2);
                assert!(
                    over <= 1.1 && pins <= most,
                    "{threads} threads, {blocks} blocks, {computes} us: {over:.2}, {pins} pins"
                );
            }
        }
    }
}
