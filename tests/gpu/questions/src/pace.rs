//! Registration in seconds per GiB: by page and by piece size, from one thread and from four at once.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::asking::{Asking, Told, median, seconds, timed};
use crate::cuda::{Failure, Result, unavailable};
use crate::driver::Driver;
use crate::memory::{GIB, Kind, MIB, Region, on};

const SIZES: [usize; 5] = [64 * MIB, 256 * MIB, GIB, 4 * GIB, 8 * GIB];
const ROUNDS: usize = 3;
const THREADS: usize = 4;
/// Four threads' time over one thread's: above the first, a driver takes them one at a time; below the second, it does not.
const TURNS: f64 = 0.8;
const ABREAST: f64 = 0.5;

pub fn ask(it: &mut Asking, cuda: &Driver) {
    // Seconds per GiB of the last piece of each kind; most of it is preparing the memory.
    let mut taken: Vec<(Kind, f64)> = Vec::new();
    for size in &SIZES[..3] {
        for kind in [Kind::SharedHuge, Kind::PrivateHuge, Kind::Small] {
            alone(it, cuda, kind, *size, &mut taken);
        }
    }
    for kind in Kind::ALL {
        from_threads(it, cuda, kind, SIZES[1]);
    }
    // Last, since they take longest; with huge pages if there were any.
    let huge = taken
        .iter()
        .map(|(kind, _)| *kind)
        .find(|kind| kind.is_huge());
    for size in &SIZES[3..] {
        alone(
            it,
            cuda,
            huge.unwrap_or(Kind::SharedHuge),
            *size,
            &mut taken,
        );
    }
}

/// One piece, which exists only during its measurement.
fn alone(it: &mut Asking, cuda: &Driver, kind: Kind, size: usize, taken: &mut Vec<(Kind, f64)>) {
    let scale = GIB as f64 / size as f64;
    let before = taken
        .iter()
        .rev()
        .find(|(its, _)| *its == kind)
        .map_or(0.0, |(_, taken)| *taken);
    let (left, start, on) = (it.left(), Instant::now(), on(size, kind));
    let (mut registering, mut unregistering) = (Vec::new(), Vec::new());
    let told = it.ask("registering a piece, alone", &on, || {
        if left < 1.5 * before / scale {
            return unavailable("no time was left for it");
        }
        let region = Region::new(kind, size)?;
        if kind.is_huge() && region.huge() < 0.9 {
            return unavailable(format!(
                "only {:.0}% of it came in huge pages",
                100.0 * region.huge()
            ));
        }
        for _ in 0..ROUNDS {
            registering.push(scale * timed(|| cuda.register(region.address, size))?);
            unregistering.push(scale * timed(|| cuda.unregister(region.address))?);
        }
        Ok(Told::figure("s/GiB", registering))
    });
    if told {
        it.tell(
            "unregistering it",
            &on,
            Ok(Told::figure("s/GiB", unregistering)),
        );
        taken.push((kind, scale * seconds(start.elapsed())));
    }
}

fn from_threads(it: &mut Asking, cuda: &Driver, kind: Kind, size: usize) {
    let on = format!("{THREADS} pieces of {}", on(size, kind));
    let mut ratios = Vec::new();
    let told = it.ask(
        &format!("registering from {THREADS} threads at once"),
        &on,
        || {
            let regions: Vec<Region> = (0..THREADS)
                .map(|_| Region::new(kind, size))
                .collect::<Result<_>>()?;
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                let in_turn = timed(|| {
                    regions
                        .iter()
                        .try_for_each(|it| cuda.register(it.address, size))
                })?;
                regions
                    .iter()
                    .try_for_each(|it| cuda.unregister(it.address))?;
                let at_once = together(cuda, &regions)?;
                regions
                    .iter()
                    .try_for_each(|it| cuda.unregister(it.address))?;
                ratios.push(at_once / in_turn);
                rounds.push(at_once * GIB as f64 / (THREADS * size) as f64);
            }
            Ok(Told::figure("s/GiB", rounds))
        },
    );
    if told {
        it.tell(
            "at once, over one behind the other",
            &on,
            Ok(Told::figure("times as long", ratios.clone())),
        );
        it.tell(
            "does the driver register one at a time?",
            &on,
            Ok(one_at_a_time(median(&ratios))),
        );
    }
}

/// Seconds until each thread has registered its own region.
fn together(cuda: &Driver, regions: &[Region]) -> Result<f64> {
    let begin = Barrier::new(regions.len() + 1);
    thread::scope(|scope| {
        let register = |region: &Region| {
            let entered = cuda.enter();
            begin.wait();
            entered?;
            cuda.register(region.address, region.size)
        };
        let threads: Vec<_> = regions
            .iter()
            .map(|it| scope.spawn(move || register(it)))
            .collect();
        begin.wait();
        let start = Instant::now();
        let panicked = |_| Err(Failure("a thread panicked".into()));
        let outcomes: Vec<Result<()>> = threads
            .into_iter()
            .map(|it| it.join().unwrap_or_else(panicked))
            .collect();
        let taken = seconds(start.elapsed());
        outcomes.into_iter().collect::<Result<()>>()?;
        Ok(taken)
    })
}

fn one_at_a_time(ratio: f64) -> Told {
    let told = format!("at once takes {ratio:.2} times as long as one behind the other");
    let in_part = ABREAST < ratio && ratio < TURNS;
    Told::said(
        ratio >= TURNS,
        if in_part {
            format!("in part: {told}")
        } else {
            told
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_threads_are_judged_by_their_time() {
        for (ratio, expected, begins) in [
            (1.0, true, "at once"),
            (0.6, false, "in part"),
            (0.3, false, "at once"),
        ] {
            let Told::Said { yes, why, .. } = one_at_a_time(ratio) else {
                panic!()
            };
            assert!(yes == expected && why.starts_with(begins), "{why}");
        }
    }
}
