//! Progress: a bar on a terminal, otherwise one line per step. Always on standard error.

use std::cell::RefCell;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// The steps of one command, and how long each took.
pub struct Progress {
    count: usize,
    terminal: bool,
    times: RefCell<Vec<StepTime>>,
}

/// The duration of a step that succeeded.
#[derive(Clone, Debug, Serialize)]
pub struct StepTime {
    /// The step's name.
    pub step: String,
    /// Its seconds.
    pub seconds: f64,
}

/// The step that is running.
pub struct Step {
    bar: ProgressBar,
}

impl Progress {
    /// For a command of `count` steps.
    pub fn new(count: usize) -> Self {
        Self { count, terminal: std::io::stderr().is_terminal(), times: RefCell::default() }
    }

    /// Runs one step and reports it.
    pub fn step<T>(&self, what: &str, run: impl FnOnce(&Step) -> Result<T>) -> Result<T> {
        let number = self.times.borrow().len() + 1;
        let label = format!("[{number}/{}] {what}", self.count);
        let step = Step { bar: self.bar(&label) };
        let start = Instant::now();
        let result = run(&step);
        let took = start.elapsed();
        step.bar.finish_and_clear();
        let outcome = if result.is_ok() { "" } else { "failed after " };
        eprintln!("{label}: {outcome}{:.1} s", took.as_secs_f64());
        if result.is_ok() {
            self.times
                .borrow_mut()
                .push(StepTime { step: what.to_owned(), seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0 });
        }
        result
    }

    /// The duration of each step that succeeded.
    pub fn times(&self) -> Vec<StepTime> {
        self.times.borrow().clone()
    }

    fn bar(&self, label: &str) -> ProgressBar {
        if !self.terminal {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{spinner} {prefix} {msg} ({elapsed})"));
        bar.set_prefix(label.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Step {
    /// Shows a bar of `bytes` bytes from now on.
    pub fn total(&self, bytes: u64) {
        self.bar.set_style(style("{prefix} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {msg}"));
        self.bar.set_length(bytes);
    }

    /// Advances the bar.
    pub fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Sets the text beside the bar.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Prints a line above the bar.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("      {text}"));
    }

    /// A step without output, for tests.
    pub fn silent() -> Self {
        Self { bar: ProgressBar::hidden() }
    }
}
