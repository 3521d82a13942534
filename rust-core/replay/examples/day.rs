//! Programs that run for a day, in simulated time: whether what is pinned creeps.
//!
//! Each workload goes on for 24 hours and for as many requests as are asked for. What is pinned is at
//! no time more than the allowance (1.2 times the largest set of blocks, and a quarter of it or 64 MiB, at most
//! half a segment; or what stock pins for the same) and a tenth, since the engine counts what caches hold as live; and over
//! the largest set it is in the second half of the day no more than it was in the first, and a twentieth. One line of JSON at the end.
//!
//! usage: day [MILLIONS]     (of requests for each workload and setting; default: 10)

use std::collections::VecDeque;

use pinbuddy_events::Checker;
use pinbuddy_replay::GIB;
use pinbuddy_replay::policy::Policy;
use pinbuddy_replay::policy::pinbuddy::{Pinbuddy, Settings};
use pinbuddy_replay::policy::stock::Stock;
use pinbuddy_replay::replay::Replay;
use pinbuddy_replay::step::Step;
use pinbuddy_replay::workload::Workload;

const NAMES: [&str; 5] = ["kv-cache", "variable-lengths", "data-loader", "training-1f1b", "zero-offload"];
const HOUR: u64 = 3_600_000_000;
/// What a small set may have beside itself.
const MODEST: u64 = 64 << 20;
const PARTS: usize = 24;

/// What one program came to.
struct Day {
    requests: u64,
    hours: u64,
    /// By part: the most that was pinned over the largest set up to then.
    ratios: Vec<f64>,
    /// The most that was pinned.
    peak: u64,
}

impl Day {
    /// The largest ratio of each half.
    fn halves(&self) -> (f64, f64) {
        let (first, second) = self.ratios.split_at(self.ratios.len() / 2);
        let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
        (most(first), most(second))
    }
}

fn run(workload: &Workload, settings: Settings, least: u64) -> Result<Day, String> {
    let mut replay = Replay::new(Pinbuddy::new(settings));
    let mut stock = Replay::new(Stock::default());
    let mut checker = Checker::default();
    let (mut requests, mut peak, mut largest) = (0, 0, 0);
    let mut over = false;
    // Small parts at first, since nobody knows how long the program takes: joined two by two.
    let mut parts: VecDeque<(u64, u64)> = VecDeque::new();
    let mut length = 1 << 14;
    let (mut part, mut hours) = ((0, 0), 0);
    for (line, event) in (1..).zip(workload.events(7, u32::MAX)) {
        let step = Step::checked(&mut checker, line, event).map_err(|why| why.to_string())?;
        let Some(step) = step else {
            continue;
        };
        replay.step(step);
        stock.step(step);
        requests += 1;
        let pinned = replay.policy().pins().bytes;
        largest = largest.max(replay.live());
        // What a stream is not done with is in use, and no part of `largest`.
        let more = (largest / 4).max(MODEST).min(settings.block_bytes / 2);
        let allowed = largest + largest / 5 + more;
        let allowed = allowed.max(stock.policy().pins().peak);
        if pinned > allowed + allowed / 10 {
            return Err(format!("{pinned} bytes are pinned where {allowed} are allowed, after {requests} requests"));
        }
        part = (part.0.max(pinned), largest);
        peak = peak.max(pinned);
        if requests % length == 0 {
            parts.push_back(part);
            part = (0, largest);
            if parts.len() == 2 * PARTS {
                length *= 2;
                let halves: Vec<_> = parts.drain(..).collect();
                let joined = halves.chunks(2).map(|it| (it[0].0.max(it[1].0), it[1].1));
                parts.extend(joined);
            }
            hours = step.at / HOUR;
            over = requests >= least && hours >= 24;
        }
        if over {
            break;
        }
    }
    replay.policy().audit()?;
    let ratio = |(pinned, largest): (u64, u64)| pinned as f64 / largest.max(1) as f64;
    Ok(Day { requests, hours, ratios: parts.into_iter().map(ratio).collect(), peak })
}

fn main() -> Result<(), String> {
    let millions = std::env::args().nth(1).map_or(Ok(10), |it| it.parse());
    let millions: u64 = millions.map_err(|_| "usage: day [MILLIONS]")?;
    let (mut requests, mut hours, mut programs) = (0, 0, 0);
    let mut creeping = Vec::new();
    for name in NAMES {
        let workload = Workload::named(name).ok_or("no such workload")?;
        let defaults = Settings::default();
        for (growth, settings) in [("segment", defaults), ("exact", defaults.exact())] {
            let day = run(workload, settings, millions * 1_000_000)?;
            let (first, second) = day.halves();
            eprintln!(
                "{name:<18}{growth:<9}{:>6} h {:>12} requests, {:>6.2} GiB pinned at most; over the largest set \
                 {first:.3} in the first half, {second:.3} in the second",
                day.hours,
                day.requests,
                day.peak as f64 / GIB as f64,
            );
            if second > first * 1.05 {
                creeping.push(format!("{name} with {growth} growth"));
            }
            requests += day.requests;
            hours += day.hours;
            programs += 1;
        }
    }
    println!(r#"{{"programs":{programs},"hours":{hours},"requests":{requests}}}"#);
    if creeping.is_empty() {
        return Ok(());
    }
    Err(format!("pinned memory creeps: {}", creeping.join(", ")))
}
