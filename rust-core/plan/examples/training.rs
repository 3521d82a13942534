//! Writes an instance like a pipeline stage's training steps in 1F1B order, for `pinbuddy-tools plan --instance`.
//!
//! `training BLOCKS [JITTER_PERCENT [SEED]]`: `id,lower,upper,size`, half-open, on standard output.
#![allow(clippy::print_stdout)]

fn main() {
    let number = |at: usize, default: u64| {
        std::env::args()
            .nth(at)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (wanted, jitter, seed) = (number(1, 100_000), number(2, 0), number(3, 1));
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let layers = 32;
    // Activations that the backward pass needs, in KiB, and what lives within a layer alone.
    let kept: Vec<u64> = (0..8).map(|_| 256 * (1 + random(64))).collect();
    let scratch: Vec<u64> = (0..8).map(|_| 64 * (1 + random(512))).collect();
    let (mut time, mut blocks) = (0_u64, Vec::new());
    let size = |kib: u64, random: &mut dyn FnMut(u64) -> u64| {
        let most = kib * jitter / 100;
        let kib = if most == 0 {
            kib
        } else {
            kib - most + random(2 * most)
        };
        kib.max(1) << 10
    };
    let (ahead, mut forward, mut backward) = (4_u64, 0_u64, 0_u64);
    let mut open: std::collections::VecDeque<Vec<Vec<(u64, u64)>>> =
        std::collections::VecDeque::new();
    while (blocks.len() as u64) < wanted {
        if forward - backward < ahead {
            forward += 1;
            let mut batch = Vec::new();
            for _ in 0..layers {
                let mut own = Vec::new();
                for (&kept, &scratch) in kept.iter().zip(&scratch) {
                    let bytes = size(kept, &mut random);
                    own.push((time, bytes));
                    let bytes = size(scratch, &mut random);
                    blocks.push((time + 1, time + 4, bytes));
                    time += 2;
                }
                batch.push(own);
            }
            open.push_back(batch);
        } else {
            backward += 1;
            let batch = open.pop_front().expect("one is open");
            for own in batch.into_iter().rev() {
                for ((begin, bytes), &scratch) in own.into_iter().rev().zip(&scratch) {
                    let extra = size(scratch, &mut random);
                    blocks.push((time, time + 3, extra));
                    blocks.push((begin, time + 1, bytes));
                    time += 2;
                }
            }
        }
    }
    println!("id,lower,upper,size");
    for (id, (lower, upper, size)) in blocks.iter().enumerate() {
        println!("{id},{lower},{upper},{size}");
    }
}
