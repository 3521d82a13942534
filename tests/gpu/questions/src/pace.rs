//! Registration in seconds per GiB: by page and by piece size, from one thread and from four at once.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::asking::{Asking, Told, median, seconds, timed};
use crate::driver::{Driver, Failure, Result, unavailable};
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
        for kind in [Kind::SHARED_HUGE, Kind::PRIVATE_HUGE, Kind::SMALL] {
            alone(it, cuda, kind, *size, &mut taken);
        }
    }
    for kind in Kind::ALL {
        from_threads(it, cuda, kind, SIZES[1]);
    }
    // Last, since they take longest; with huge pages if there were any.
    let huge = taken.iter().map(|(kind, _)| *kind).find(|kind| kind.huge);
    for size in &SIZES[3..] {
        alone(it, cuda, huge.unwrap_or(Kind::SHARED_HUGE), *size, &mut taken);
    }
}

/// One piece, which exists only during its measurement.
fn alone(it: &mut Asking, cuda: &Driver, kind: Kind, size: usize, taken: &mut Vec<(Kind, f64)>) {
    let scale = GIB as f64 / size as f64;
    let before = taken.iter().rev().find(|(its, _)| *its == kind);
    let expected = 1.5 * before.map_or(0.0, |(_, taken)| *taken) / scale;
    let (left, start, on) = (it.left(), Instant::now(), on(size, kind));
    let (mut registering, mut unregistering) = (Vec::new(), Vec::new());
    let told = it.ask("registering a piece, alone", &on, || {
        if left < expected {
            return unavailable("no time was left for it");
        }
        let region = Region::new(kind, size)?;
        if kind.huge && region.huge() < 0.9 {
            let part = 100.0 * region.huge();
            return unavailable(format!("only {part:.0}% of it came in huge pages"));
        }
        for _ in 0..ROUNDS {
            registering.push(scale * timed(|| cuda.register(region.address, size))?);
            unregistering.push(scale * timed(|| cuda.unregister(region.address))?);
        }
        Ok(Told::figure("s/GiB", registering))
    });
    if told {
        let told = Told::figure("s/GiB", unregistering);
        it.tell("unregistering it", &on, Ok(told));
        taken.push((kind, scale * seconds(start.elapsed())));
    }
}

fn from_threads(it: &mut Asking, cuda: &Driver, kind: Kind, size: usize) {
    let on = format!("{THREADS} pieces of {}", on(size, kind));
    let mut ratios = Vec::new();
    let asked = format!("registering from {THREADS} threads at once");
    let told = it.ask(&asked, &on, || {
        let regions: Result<Vec<Region>> = (0..THREADS).map(|_| Region::new(kind, size)).collect();
        let (regions, mut rounds) = (regions?, Vec::new());
        let each = |call: &dyn Fn(&Region) -> Result<()>| regions.iter().try_for_each(call);
        for _ in 0..ROUNDS {
            let in_turn = timed(|| each(&|it| cuda.register(it.address, size)))?;
            each(&|it| cuda.unregister(it.address))?;
            let at_once = together(cuda, &regions)?;
            each(&|it| cuda.unregister(it.address))?;
            ratios.push(at_once / in_turn);
            rounds.push(at_once * GIB as f64 / (THREADS * size) as f64);
        }
        Ok(Told::figure("s/GiB", rounds))
    });
    if told {
        let (ratio, asked) = (median(&ratios), "does the driver register one at a time?");
        let told = Told::figure("times as long", ratios);
        it.tell("at once, over one behind the other", &on, Ok(told));
        it.tell(asked, &on, Ok(one_at_a_time(ratio)));
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
        let start = |it| scope.spawn(move || register(it));
        let threads: Vec<_> = regions.iter().map(start).collect();
        begin.wait();
        let start = Instant::now();
        let panicked = |_| Err(Failure("a thread panicked".into()));
        let threads = threads.into_iter();
        let outcomes: Vec<Result<()>> = threads.map(|it| it.join().unwrap_or_else(panicked)).collect();
        let taken = seconds(start.elapsed());
        outcomes.into_iter().collect::<Result<()>>()?;
        Ok(taken)
    })
}

fn one_at_a_time(ratio: f64) -> Told {
    let in_part = ABREAST < ratio && ratio < TURNS;
    let begin = if in_part { "in part: " } else { "" };
    let told = format!("{begin}at once takes {ratio:.2} times as long as one behind the other");
    Told::said(ratio >= TURNS, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_threads_are_judged_by_their_time() {
        for (ratio, expected, begins) in [(1.0, true, "at once"), (0.6, false, "in part"), (0.3, false, "at once")] {
            let Told::Said { yes, why, .. } = one_at_a_time(ratio) else { panic!() };
            assert!(yes == expected && why.starts_with(begins), "{why}");
        }
    }
}
