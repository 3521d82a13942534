//! How searches for plans end, and what is said meanwhile.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use pinbuddy_events::trace::Header;
use pinbuddy_plan::Block;
use pinbuddy_replay::workload::Random;
use serde_json::Value;

use crate::started;
use started::{Lines, command, file, json};

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
        at(by_time, random).or_else(|| at(!by_time, random)).unwrap_or_default()
    }
}

/// At least 1500 blocks that fill a rectangle without a gap: the lower bound can be reached, and by few placements. Too many to be
/// searched exactly.
fn packing() -> Vec<Block> {
    let mut random = Chance(Random::new(7));
    let mut pieces = vec![Piece { times: (0, MOMENTS), bytes: (0, BYTES) }];
    while pieces.len() < 1500 {
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
    let block = |it: &Piece| Block { lower: it.times.0, upper: it.times.1, size: it.bytes.1 - it.bytes.0 };
    pieces.iter().map(block).collect()
}

/// Interrupts a search once it has said how far it is; what it says then.
fn interrupted(arguments: &[&str]) -> Value {
    let mut child = command()
        .args(arguments)
        .args(["--time-limit", "500", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let far = lines.map_while(Result::ok).find(|it| it.contains(", efficiency 0.") && it.contains("; Ctrl-C ends it"));
    assert!(far.is_some(), "it never said how far it is");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["ended"], "interrupted", "{said}");
    said
}

#[test]
fn an_interrupt_keeps_the_best_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "id,lower,upper,size\n".to_owned();
    for (id, it) in packing().iter().enumerate() {
        table += &format!("{id},{},{},{}\n", it.lower, it.upper, it.size);
    }
    let path = file(&folder, "hard.csv", &table);
    let said = interrupted(&["plan", "--instance", &path]);
    let gap = said["gap_percent"].as_f64().unwrap();
    assert!(gap > 0.0 && gap < 50.0, "{said}");
}

#[test]
fn the_search_for_a_plan_of_a_trace_says_how_far_it_is_and_keeps_the_best_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = packing();
    let mut order = Vec::new();
    for (id, it) in blocks.iter().enumerate() {
        order.extend([(it.lower, true, id), (it.upper, false, id)]);
    }
    order.sort_unstable();
    let mut lines = Lines::default();
    for iteration in 0..4 {
        for (_, begins, block) in &order {
            let id = (iteration * blocks.len() + block) as u64;
            match begins {
                true => lines.alloc(1, id, blocks[*block].size << 12),
                false => lines.free(1, id),
            }
        }
        lines.iter(1);
    }
    let path = file(&folder, "hard.jsonl", lines.0);
    let said = interrupted(&["plan", &path]);
    let efficiency = said["efficiency"].as_f64().unwrap();
    assert!(efficiency > 0.66 && efficiency < 1.0, "{said}");
    assert!(said["slots"].as_u64().unwrap() > 1000, "{said}");
}

#[test]
fn what_ends_by_itself_is_optimal_only_if_no_plan_pins_less() {
    let folder = tempfile::tempdir().unwrap();
    for (name, steps, ended) in [("variable-lengths", 6, "done"), ("fixed-129.5mib", 1, "optimal")] {
        let trace = started::trace(folder.path(), name, steps, &Header::default());
        let said = json(&["plan", &trace, "--json", "--time-limit", "500"]);
        assert_eq!(said["ended"], ended, "{said}");
        let is_full = said["efficiency"].as_f64() == Some(1.0);
        assert_eq!(is_full, ended == "optimal", "{said}");
    }
}
