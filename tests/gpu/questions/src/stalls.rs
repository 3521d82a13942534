//! Do calls of this process and of another one wait while a region is registered or unregistered, and how long?
//!
//! A thread registers and unregisters the same region repeatedly; each call counts to the operation that it overlapped. The same
//! calls are timed before that, undisturbed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::asking::{Asking, Figure, Told, median};
use crate::driver::{Driver, Failure, Result, unavailable};
use crate::memory::{GIB, Kind, MIB, Region, on};
use crate::probe::{CALLS, Neighbour, Probe, Sample, Samples, now};

const PROCESSES: [&str; 2] = ["this process", "another process"];
const OPERATIONS: [&str; 2] = ["registered", "unregistered"];
/// A stall is longer than the worst quiet call by this factor, and than this many seconds.
const TIMES: f64 = 2.0;
const LEAST: f64 = 0.001;

/// When an operation of `OPERATIONS` began and ended.
type Span = (f64, f64, usize);

pub fn ask(it: &mut Asking, cuda: &Driver) {
    let seconds = (0.1 * it.seconds).min(2.5);
    let on_both = "this process and another one";
    let ready = it.need("calls with nothing beside them", on_both, || {
        let mut neighbour = Neighbour::start()?;
        let own = Probe::new(cuda)?;
        neighbour.answer()?;
        let (quiet, _) = during(cuda, None, seconds, &own, &mut neighbour)?;
        Ok((neighbour, own, quiet))
    });
    let Some((mut neighbour, own, quiet)) = ready else {
        return;
    };
    let (large, small) = (GIB, 64 * MIB);
    let Some(best) = it.need("memory to register", "any kind", Kind::best) else {
        return;
    };
    for (kind, size) in [(best, large), (best, small), (Kind::SMALL, large)] {
        let on = on(size, kind);
        let found = it.need("calls beside registering", &on, || {
            let region = Region::new(kind, size)?;
            during(cuda, Some(&region), seconds, &own, &mut neighbour)
        });
        if let Some((samples, spans)) = found {
            tell(it, &quiet, &samples, &spans, &on);
        }
    }
}

/// Samples of both processes, and the registering thread's spans.
fn during(
    cuda: &Driver,
    region: Option<&Region>,
    seconds: f64,
    own: &Probe<'_>,
    neighbour: &mut Neighbour,
) -> Result<([Samples; 2], Vec<Span>)> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = region.map(|region| scope.spawn(|| register_repeatedly(cuda, region, &over)));
        neighbour.begin(seconds);
        // Both are read in any case: the next round is not to get this one's.
        let (own, other) = (own.run(seconds), neighbour.samples());
        let samples = own.and_then(|own| Ok([own, other?]));
        over.store(true, Ordering::Relaxed);
        let panicked = |_| Err(Failure("the registering thread panicked".into()));
        let spans = thread.map_or(Ok(Vec::new()), |it| it.join().unwrap_or_else(panicked));
        Ok((samples?, spans?))
    })
}

fn register_repeatedly(cuda: &Driver, region: &Region, over: &AtomicBool) -> Result<Vec<Span>> {
    cuda.enter()?;
    let mut spans = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let start = now();
        cuda.register(region.address, region.size)?;
        let middle = now();
        cuda.unregister(region.address)?;
        spans.extend([(start, middle, 0), (middle, now(), 1)]);
    }
    Ok(spans)
}

/// Durations of the calls by the operation that each overlapped longest; calls without overlap are left out. Spans and samples are
/// both consecutive.
fn sort_out(samples: &[Sample], spans: &[Span]) -> [Vec<f64>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let mut first = 0;
    for (start, seconds) in samples {
        let end = start + seconds;
        while spans.get(first).is_some_and(|(_, over, _)| over < start) {
            first += 1;
        }
        let mut beside = [0.0; 2];
        for (low, high, operation) in spans[first..].iter().take_while(|(low, ..)| *low < end) {
            beside[*operation] += high.min(end) - low.max(*start);
        }
        if beside.iter().any(|it| *it > 0.0) {
            found[usize::from(beside[1] > beside[0])].push(*seconds);
        }
    }
    found
}

fn waits(quiet: &[f64], busy: Vec<f64>) -> Result<Told> {
    let worst_of = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    if busy.is_empty() || quiet.is_empty() {
        return unavailable("no call went on beside it");
    }
    let (worst, before) = (worst_of(&busy), worst_of(quiet));
    let longest = LEAST.max(TIMES * before);
    let long = busy.iter().filter(|it| **it > longest).count();
    let why = format!(
        "{long} long; worst {:.2} ms, median {:.3} ms of {}; in quiet {:.2} and {:.3} of {}",
        1e3 * worst,
        1e3 * median(&busy),
        busy.len(),
        1e3 * before,
        1e3 * median(quiet),
        quiet.len(),
    );
    let figure = |rounds| Figure { unit: "s", rounds };
    let quiet = figure(quiet.to_vec());
    let figures = vec![("beside it", figure(busy)), ("in quiet", quiet)];
    // A single one may be noise.
    let yes = long > 1;
    Ok(Told::Said { yes, why, figures })
}

/// For each call of each process: whether it waits, and its times.
fn tell(it: &mut Asking, quiet: &[Samples; 2], samples: &[Samples; 2], spans: &[Span], on: &str) {
    for (process, name) in PROCESSES.iter().enumerate() {
        for (call, words) in CALLS.iter().enumerate() {
            let quiet = quiet[process][call].iter();
            let before: Vec<f64> = quiet.map(|(_, seconds)| *seconds).collect();
            let sorted = sort_out(&samples[process][call], spans);
            for (operation, busy) in OPERATIONS.iter().zip(sorted) {
                let asked = format!("does {words} of {name} wait while a region is {operation}?");
                it.tell(&asked, on, waits(&before, busy));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_belong_to_what_they_overlapped_longest() {
        let spans = [(1.0, 2.0, 0), (2.0, 3.0, 1), (3.0, 4.0, 0), (4.0, 5.0, 1)];
        let samples = [(0.0, 0.5), (1.1, 0.1), (1.9, 0.9), (3.5, 0.4), (6.0, 1.0)];
        assert_eq!(sort_out(&samples, &spans), [vec![0.1, 0.4], vec![0.9]]);
    }

    #[test]
    fn a_call_waits_if_more_than_one_is_long() {
        let of = |busy: &[f64]| waits(&[1e-5, 2e-5], busy.to_vec());
        let yes = |busy: &[f64]| matches!(of(busy), Ok(Told::Said { yes: true, .. }));
        assert!(yes(&[0.002, 0.003, 1e-5]) && !yes(&[0.002, 1e-5]) && !yes(&[1e-4, 1e-4]));
        assert!(of(&[]).is_err());
    }
}
