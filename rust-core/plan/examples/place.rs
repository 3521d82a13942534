//! Places an instance (`id,lower,upper,size`, half-open) and says how near to the bound it came.
//!
//! `place FILE [SECONDS [THREADS]]`
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use pinbuddy_plan::{Block, Effort, Instance, check, solve};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = std::fs::read_to_string(&arguments[0]).expect("a file");
    let seconds = arguments
        .get(1)
        .map_or(30.0, |s| s.parse().expect("seconds"));
    let threads = arguments.get(2).map_or(2, |s| s.parse().expect("threads"));
    let blocks: Vec<Block> = text
        .lines()
        .skip(1)
        .map(|line| {
            let n: Vec<u64> = line
                .split(',')
                .skip(1)
                .map(|n| n.trim().parse().expect("a number"))
                .collect();
            Block {
                lower: n[0],
                upper: n[1],
                size: n[2],
            }
        })
        .collect();
    let instance = Instance::new(blocks.clone()).expect("an instance");
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(seconds);
    let bound = instance.lower_bound();
    let gap = |peak: u64| 100.0 * (peak as f64 / bound as f64 - 1.0);
    let solution = solve(
        &instance,
        Effort {
            threads,
            stop: &|| Instant::now() >= until,
            seen: &|peak| {
                println!(
                    "{:8.2} s  {peak}  {:.2} %",
                    start.elapsed().as_secs_f64(),
                    gap(peak)
                );
            },
        },
    );
    let peak = check(&blocks, None, &solution.offsets).expect("a placement");
    println!(
        "{} blocks, bound {bound} (shown {}), peak {peak}, gap {:.2} %, {:.2} s, by {}",
        blocks.len(),
        solution.bound,
        gap(peak),
        start.elapsed().as_secs_f64(),
        solution.by
    );
}
