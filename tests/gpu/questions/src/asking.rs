//! The protocol of questions: lines of JSON, one before each question and one after it.
//!
//! An answer is yes or no, a figure, or "cannot be asked here" with a reason. Each failing call is such a reason, and the next
//! question is asked all the same. The line before a question names it, so that a reader knows in which one a program hung.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Failure, Result, unavailable};

pub const CANNOT: &str = "cannot be asked here";
/// How cudarc begins where libcuda lacks a function.
const MISSING: &str = "Missing symbol";
/// More values than these are told by their median, quartiles and range.
const LISTED: usize = 20;

/// What was measured, once a round.
#[derive(Clone, Debug)]
pub struct Figure {
    pub unit: &'static str,
    pub rounds: Vec<f64>,
}

/// An answer.
#[derive(Debug)]
pub enum Told {
    Said { yes: bool, why: String, figures: Vec<(&'static str, Figure)> },
    Figure(Figure),
}

impl Told {
    pub fn said(yes: bool, why: impl Into<String>) -> Self {
        Self::Said { yes, why: why.into(), figures: Vec::new() }
    }

    pub fn figure(unit: &'static str, rounds: Vec<f64>) -> Self {
        Self::Figure(Figure { unit, rounds })
    }
}

/// What a question is told: about how long it may take.
pub struct Asking {
    pub seconds: f64,
    start: Instant,
    lines: Vec<Value>,
}

impl Asking {
    pub fn new(seconds: f64) -> Self {
        Self { seconds, start: Instant::now(), lines: Vec::new() }
    }

    /// At once: who reads may have to stop the program.
    fn write(&mut self, line: Value) {
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        written.unwrap_or_default();
        self.lines.push(line);
    }

    /// Seconds during which another question may begin.
    pub fn left(&self) -> f64 {
        self.seconds - self.start.elapsed().as_secs_f64()
    }

    /// Asks, and says whether there was an answer.
    pub fn ask(&mut self, what: &str, on: &str, attempt: impl FnOnce() -> Result<Told>) -> bool {
        self.attempt((what, on), true, attempt, told).is_some()
    }

    /// Reports an answer that is already known, however late it is.
    pub fn tell(&mut self, what: &str, on: &str, answer: Result<Told>) {
        self.attempt((what, on), false, || answer, told);
    }

    /// What questions need; or nothing, after reporting that it cannot be had.
    pub fn need<T>(&mut self, what: &str, on: &str, make: impl FnOnce() -> Result<T>) -> Option<T> {
        self.attempt((what, on), true, make, |_| Ok(Value::Null))
    }

    fn attempt<T>(
        &mut self,
        (what, on): (&str, &str),
        in_time: bool,
        attempt: impl FnOnce() -> Result<T>,
        told: impl FnOnce(&T) -> Result<Value>,
    ) -> Option<T> {
        self.write(json!({"asking": what, "on": on}));
        let late = in_time && self.left() <= 0.0;
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let result = if late { unavailable("no time was left for it") } else { attempt() }?;
            told(&result).map(|line| (line, result))
        }));
        let (mut line, result) = match tried {
            Ok(Ok((line, result))) => (line, Some(result)),
            Ok(Err(Failure(why))) => (json!({"answer": CANNOT, "why": why}), None),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let why = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
                // Other than a function that is not there, a defect of the program: it fails the run, and no other answer is lost.
                let fault = !why.starts_with(MISSING);
                (json!({"answer": CANNOT, "why": why, "fault": fault}), None)
            }
        };
        if let Some(fields) = line.as_object_mut() {
            fields.insert("of".into(), what.into());
            fields.insert("on".into(), on.into());
            self.write(line);
        }
        result
    }
}

fn told(answer: &Told) -> Result<Value> {
    match answer {
        Told::Figure(figure) => {
            let mut line = spread(figure)?;
            line["answer"] = "figure".into();
            Ok(line)
        }
        Told::Said { yes, why, figures } => {
            let mut line = json!({"answer": if *yes { "yes" } else { "no" }, "why": why});
            for (name, figure) in figures {
                line["figures"][name] = spread(figure)?;
            }
            Ok(line)
        }
    }
}

fn spread(figure: &Figure) -> Result<Value> {
    let mut sorted = figure.rounds.clone();
    sorted.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return unavailable("it did not happen while it was looked at");
    };
    let mut line = json!({
        "unit": figure.unit, "median": quantile(&sorted, 0.5), "quartiles": [quantile(&sorted, 0.25), quantile(&sorted, 0.75)],
        "least": least, "most": most, "count": sorted.len(),
    });
    if sorted.len() <= LISTED {
        line["rounds"] = json!(figure.rounds);
    }
    Ok(line)
}

/// Between the two values that are nearest; there is at least one.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// How long a call takes.
pub fn timed(call: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    call()?;
    Ok(seconds(start.elapsed()))
}

pub fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_an_answer_and_the_next_is_asked() {
        let refused = || Err(Failure("cuSomething: why".into()));
        let mut it = Asking::new(60.0);
        it.ask("failed", "", refused);
        it.ask("missing", "", || unavailable("not here"));
        it.ask("no function", "", || panic!("{MISSING} cuNew: none"));
        it.ask("wrong", "", || panic!("mine"));
        it.ask("never", "", || Ok(Told::figure("s", Vec::new())));
        it.ask("figure", "", || Ok(Told::figure("s", vec![1.0, 2.0, 9.0])));
        assert!(it.need("needed", "", || unavailable::<()>("no")).is_none());
        assert_eq!(it.need("there", "", || Ok(7)), Some(7));
        it.seconds = 0.0;
        it.ask("late", "", || Ok(Told::said(true, "")));
        it.tell("known", "", Ok(Told::said(true, "")));
        let lines = it.lines;
        let answers = lines.iter().filter(|it| it["answer"] == CANNOT);
        let none: Vec<&Value> = answers.map(|it| &it["of"]).collect();
        assert_eq!(json!(none), json!(["failed", "missing", "no function", "wrong", "never", "needed", "late"]));
        let answered = |it: &&Value| it["of"] == "known" && it["answer"] == "yes";
        assert_eq!(lines.iter().filter(answered).count(), 1);
        assert!(!lines.iter().any(|it| it["of"] == "there"));
        let faults: Vec<&Value> = lines.iter().filter(|it| it["fault"] == true).collect();
        assert!(faults.len() == 1 && faults[0]["of"] == "wrong", "{faults:?}");
        let figure = lines.iter().find(|it| it["answer"] == "figure").unwrap();
        let seen = ["median", "most", "quartiles", "rounds"].map(|field| &figure[field]);
        assert_eq!(json!(seen), json!([2.0, 9.0, [1.5, 5.5], [1.0, 2.0, 9.0]]));
        assert_eq!(lines[0], json!({"asking": "failed", "on": ""}));
    }
}
