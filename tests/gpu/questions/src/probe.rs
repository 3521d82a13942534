//! Times of calls while something else runs: launches, copies, queries of free memory; in this process and in another.
//!
//! One thread makes all calls of a process, and notes when each began, by a clock that all processes share.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::driver::{Driver, Failure, Kernel, Result, Stream, unavailable};
use crate::memory::MIB;

/// The word with which this program starts as another process on the same GPU.
pub const NEIGHBOUR: &str = "neighbour";
/// The copy is waited for.
pub const CALLS: [&str; 3] = ["a kernel launch", "a copy of 1 MiB", "cudaMemGetInfo"];
const SIZE: usize = MIB;
/// Yields the processor, and keeps the number of samples small.
const PAUSE: Duration = Duration::from_micros(500);

/// When a call began and how long it took, in seconds.
pub type Sample = (f64, f64);
/// By call, in the order of `CALLS`.
pub type Samples = Vec<Vec<Sample>>;

/// Seconds since the machine started, for all processes.
pub fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the time is a variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Has all that it needs before anything is timed.
pub struct Probe<'a> {
    cuda: &'a Driver,
    host: usize,
    device: usize,
    stream: Stream,
}

impl<'a> Probe<'a> {
    pub fn new(cuda: &'a Driver) -> Result<Self> {
        let it = Self { cuda, host: cuda.host_alloc(SIZE)?, device: cuda.device_alloc(SIZE)?, stream: cuda.stream()? };
        (0..CALLS.len()).try_for_each(|call| it.call(call))?;
        cuda.finish(it.stream)?;
        Ok(it)
    }

    fn call(&self, which: usize) -> Result<()> {
        let (cuda, stream) = (self.cuda, self.stream);
        match which {
            0 => {
                let (at, size) = (self.device, 256);
                cuda.launch(Kernel::Turn { at, size }, stream)
            }
            1 => {
                cuda.copy_to_device(self.host, self.device, SIZE, stream)?;
                cuda.finish(stream)
            }
            _ => cuda.memory_info(),
        }
    }

    pub fn run(&self, seconds: f64) -> Result<Samples> {
        let mut seen: Samples = vec![Vec::new(); CALLS.len()];
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            for (call, samples) in seen.iter_mut().enumerate() {
                let start = now();
                self.call(call)?;
                samples.push((start, now() - start));
            }
            thread::sleep(PAUSE);
        }
        Ok(seen)
    }
}

/// The other process: says that it is ready, and probes for as many seconds as each line of standard input says.
pub fn answer_neighbour(cuda: &Driver) -> Result<()> {
    let probe = Probe::new(cuda)?;
    println!("ready");
    for line in std::io::stdin().lines().map_while(std::result::Result::ok) {
        let Ok(seconds) = line.trim().parse() else {
            break;
        };
        println!("{}", json!(probe.run(seconds)?));
    }
    Ok(())
}

/// This process's side of it.
pub struct Neighbour {
    child: Child,
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Neighbour {
    pub fn start() -> Result<Self> {
        let program = std::env::current_exe();
        let mut child = program
            .and_then(|program| {
                Command::new(program).arg(NEIGHBOUR).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
            })
            .map_err(|error| Failure(format!("no other process starts: {error}")))?;
        let Some(output) = child.stdout.take() else {
            return unavailable("the other process has no output");
        };
        Ok(Self { child, answers: BufReader::new(output).lines() })
    }

    pub fn begin(&mut self, seconds: f64) {
        if let Some(input) = &mut self.child.stdin {
            // One that has ended says so when it is asked for its answer.
            let _ = writeln!(input, "{seconds}");
        }
    }

    /// The next line that it says.
    pub fn answer(&mut self) -> Result<String> {
        match self.answers.next() {
            Some(Ok(line)) => Ok(line),
            _ => {
                let status = self.child.wait().map(|it| it.to_string()).unwrap_or_default();
                unavailable(format!("the other process ended: {status}"))
            }
        }
    }

    pub fn samples(&mut self) -> Result<Samples> {
        let line = self.answer()?;
        serde_json::from_str(&line).map_err(|error| Failure(format!("{line:?} are no samples: {error}")))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
