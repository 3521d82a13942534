//! When a search stops, and what is said meanwhile: a deadline, Ctrl-C, and progress after two seconds.
//!
//! The first Ctrl-C ends the search with the best found so far; the second ends the program.

use std::io::IsTerminal as _;
use std::process::exit;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, mpsc};
use std::thread::Builder;
use std::time::{Duration, Instant};

use pinbuddy_plan::{Seen, Watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::baseline::ratio;
use crate::{output, show};

/// The signal that asked to stop; 0 while none has.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Whether the user asked to stop.
pub fn interrupted() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// From now on Ctrl-C stops searches. Where that cannot be set up, it ends the program, as usual.
pub(crate) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (caught, all) = mpsc::channel::<Signals>();
        let listen = move || {
            let Ok(mut signals) = all.recv() else {
                return;
            };
            for signal in signals.forever() {
                if SIGNAL.swap(signal, Ordering::Relaxed) != 0 {
                    exit(128 + signal);
                }
            }
        };
        // Signals are caught once there is a thread for them: nobody would hear of them.
        if Builder::new().spawn(listen).is_ok()
            && let Ok(signals) = Signals::new([SIGINT, SIGTERM, SIGHUP])
        {
            let _ = caught.send(signals);
        }
    });
}

/// Which signal asked to stop, if one did: it is done as it says, and a second one asks again.
pub(crate) fn taken() -> Option<i32> {
    let signal = SIGNAL.swap(0, Ordering::Relaxed);
    (signal != 0).then_some(signal)
}

/// A search's limits, and how far it is.
#[derive(Debug)]
pub struct Limits {
    start: Instant,
    until: Instant,
    /// The best so far, and what none is below.
    best: Mutex<Option<(u64, u64)>>,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Nothing better is possible.
    Optimal,
    /// It tries no more: it is near the bound, or there is nothing to search.
    Done,
    /// The time was up.
    TimeLimit,
    /// The user wanted no more.
    Interrupted,
}

impl Limits {
    /// Limits of a search that begins now.
    pub fn new(seconds: f64) -> Self {
        catch();
        let start = Instant::now();
        Self { start, until: start + Duration::from_secs_f64(seconds), best: Mutex::default() }
    }

    /// Whether to stop now.
    pub fn stop(&self) -> bool {
        interrupted() || Instant::now() >= self.until
    }

    /// A lower peak was found; none is below `bound`.
    pub fn seen(&self, peak: u64, bound: u64) {
        *self.best() = Some((peak, bound));
    }

    fn best(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since the search began.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// How it ended, just now.
    pub fn ended(&self, optimal: bool) -> Ended {
        match optimal {
            true => Ended::Optimal,
            _ if interrupted() => Ended::Interrupted,
            _ if self.stop() => Ended::TimeLimit,
            _ => Ended::Done,
        }
    }

    /// Runs the search, and says on standard error how far it is, from two seconds on.
    pub fn watch<T>(&self, search: impl FnOnce() -> T) -> T {
        let terminal = std::io::stderr().is_terminal();
        let (finished, waits) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let report = move || {
                let pause = Duration::from_secs(if terminal { 1 } else { 10 });
                let mut next = Duration::from_secs(2);
                while waits.recv_timeout(next) == Err(mpsc::RecvTimeoutError::Timeout) {
                    self.say(terminal);
                    next = pause;
                }
                if terminal {
                    output::say(format_args!("\r\x1b[K"));
                }
            };
            // Where no thread starts, nothing is said.
            let _ = Builder::new().spawn_scoped(scope, report);
            let result = search();
            drop(finished);
            result
        })
    }

    /// The same for the search for a plan.
    pub fn search<T>(&self, search: impl FnOnce(Watch<'_>) -> T) -> T {
        let stop = &|| self.stop();
        let seen = &|it: Seen| self.seen(it.peak, it.bound);
        self.watch(|| search(Watch { stop, seen }))
    }

    fn say(&self, terminal: bool) {
        let seconds = self.seconds();
        let found = match *self.best() {
            None => "searching".to_owned(),
            Some((peak, bound)) => {
                let efficiency = ratio(bound, peak);
                format!("placed in {}, efficiency {efficiency:.3}", show::bytes(peak))
            }
        };
        let text = format!("{seconds:4.0} s  {found}; Ctrl-C ends it with the best so far");
        let (start, end) = match terminal {
            true => ("\r\x1b[K", ""),
            false => ("", "\n"),
        };
        output::say(format_args!("{start}{text}{end}"));
    }
}

/// How far a peak is above the bound, in percent.
pub fn gap_percent(peak: u64, bound: u64) -> f64 {
    if bound == 0 {
        return 0.0;
    }
    100.0 * (peak as f64 / bound as f64 - 1.0)
}

/// How many threads a search takes: as asked, or one a core.
pub fn threads(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(cores).clamp(1, 256)
}
