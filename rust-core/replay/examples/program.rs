//! One of the random programs of the example `programs`: its shape, its verdict and the outcome of each
//! request. With a figure's name, the tape is shortened as long as that figure does not fall.
//!
//! usage: program SEED [pinned|pins|bytes|waits]

use std::io::Write;

use pinbuddy_replay::MIB;
use pinbuddy_replay::programs::{Act, Case, Verdict, drawn};

fn figure(name: &str, of: &Verdict) -> f64 {
    match name {
        "pinned" => of.pinned,
        "pins" => of.pins as f64,
        "bytes" => of.bytes,
        _ => of.waits,
    }
}

/// Removes each part of the tape without which the figure is still at least `least`.
fn shrunk(mut case: Case, name: &str, least: f64) -> Result<Case, String> {
    let mut length = case.tape.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at < case.tape.len() {
            let mut less = case.clone();
            let end = (at + length).min(less.tape.len());
            less.tape.drain(at..end);
            if figure(name, &less.judge(false)?) >= least {
                case = less;
            } else {
                at += length;
            }
        }
        length /= 2;
    }
    Ok(case)
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seed = args.first().and_then(|it| it.parse().ok());
    let mut case = drawn(seed.ok_or("usage: program SEED [pinned|pins|bytes|waits]")?);
    if let Some(name) = args.get(1) {
        let least = figure(name, &case.judge(false)?);
        case = shrunk(case, name, least * 0.97)?;
    }
    let mut text = format!("{:?} {:?}\n{:?}\n", case.shape, case.setting, case.machine);
    text += &format!("{:?}\n", case.judge(false)?);
    let (ours, stocks) = case.run(false)?;
    for (thread, acts) in case.shape.acts(&case.tape).iter().enumerate() {
        for act in acts {
            let Act::Alloc(block, bytes) = *act else {
                text += &format!("{thread}: {act:?}\n");
                continue;
            };
            let at = block as usize;
            let (our_place, stocks_place) = (ours.order[at], stocks.order[at]);
            let ms = |nanos: u64| nanos / 1_000_000;
            text += &format!(
                "{thread}: {block} asks for {} MiB, waits {} ms of {}, {} pins, {} MiB; stock {} pins, {} MiB\n",
                bytes / MIB,
                ms(ours.waits[at].0),
                ms(ours.waits[at].1),
                ours.pins[our_place],
                ours.pinned[our_place] / MIB,
                stocks.pins[stocks_place],
                stocks.pinned[stocks_place] / MIB,
            );
        }
    }
    // A pipe that closes early is no error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}
