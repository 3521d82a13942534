//! A process of the harness (`tests/bench/harness.cpp`) with one allocator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::environments::Environments;
use super::subject::{Settings, Subject};

/// The harness's answer to a line: numbers by name.
#[derive(Debug, Default, PartialEq)]
pub struct Answer(BTreeMap<String, Vec<f64>>);

impl Answer {
    fn parse(text: &str) -> Result<Self> {
        if let Some(why) = text.strip_prefix("error ") {
            bail!("{why}");
        }
        let fields = text.split_ascii_whitespace().map(|field| {
            let (name, values) = field
                .split_once('=')
                .with_context(|| format!("{field} is not name=value"))?;
            let values = values.split(',').filter(|it| !it.is_empty());
            let values: Result<Vec<f64>, _> = values.map(str::parse).collect();
            let values = values.with_context(|| format!("{field} holds no numbers"))?;
            Ok((name.to_owned(), values))
        });
        fields.collect::<Result<_>>().map(Self)
    }

    /// All numbers of that name.
    pub fn list(&self, name: &str) -> Result<&[f64]> {
        let list = self.0.get(name).map(Vec::as_slice);
        list.with_context(|| format!("the answer has no {name}"))
    }

    /// The only number of that name.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.list(name)? {
            [number] => Ok(*number),
            other => bail!("the answer has {} numbers called {name}", other.len()),
        }
    }
}

/// The process; dropping this ends it.
#[derive(Debug)]
pub struct Harness {
    /// Its allocator.
    pub subject: Subject,
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    complaints: File,
}

impl Harness {
    /// Starts a process. `settings` come after the subject's own, and override them.
    pub fn start(
        environments: &Environments,
        program: &Path,
        subject: Subject,
        settings: &Settings,
    ) -> Result<Self> {
        let complaints = tempfile::tempfile().context("making a temporary file")?;
        let mut command = environments.command(program)?;
        environments.use_libtorch(&mut command, subject.is_fork())?;
        let mut process = command
            .arg(subject.argument())
            .envs(settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone()?)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (to, from) = pipes.context("the harness has no pipes")?;
        Ok(Self {
            subject,
            process,
            to: Some(to),
            from: BufReader::new(from),
            complaints,
        })
    }

    /// Restricts it to one core, the last one that this process may use.
    pub fn pin_to_one_core(&self) -> Result<()> {
        let ours = rustix::thread::sched_getaffinity(None)?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|core| ours.is_set(*core));
        let mut one = CpuSet::new();
        one.set(last.context("this process may use no core")?);
        Ok(sched_setaffinity(
            Some(Pid::from_child(&self.process)),
            &one,
        )?)
    }

    /// Sends a line and reads the answer.
    pub fn ask(&mut self, line: &str) -> Result<Answer> {
        let mut answer = String::new();
        let told = match &mut self.to {
            Some(to) => writeln!(to, "{line}").and_then(|()| to.flush()),
            None => Ok(()),
        };
        if told.is_err() || self.from.read_line(&mut answer)? == 0 {
            return Err(self.ended(line));
        }
        Answer::parse(answer.trim_end())
            .with_context(|| format!("{} was told: {line}", self.subject.name()))
    }

    fn ended(&mut self, line: &str) -> anyhow::Error {
        let mut said = String::new();
        let _ = self.complaints.rewind();
        let _ = self.complaints.read_to_string(&mut said);
        let how = match self.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        xtask_support::refusal::refuse(format!("the harness with {} ended", self.subject.name()))
            .found(format!("{how}, told to: {line}\n{}", said.trim_end()))
            .expected("an answer")
            .remedy("pinbuddy doctor says what this machine has; --only runs the other parts")
            .into()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        // It ends when its input is closed.
        drop(self.to.take());
        let _ = self.process.wait();
    }
}

/// Asks each process once a turn, and rotates who goes first. Returns the answers by process, in the order of
/// turns.
pub fn in_turns(
    harnesses: &mut [Harness],
    turns: usize,
    mut ask: impl FnMut(&mut Harness) -> Result<f64>,
) -> Result<Vec<Vec<f64>>> {
    let count = harnesses.len();
    let mut seen = vec![Vec::with_capacity(turns); count];
    for turn in 0..turns {
        for position in 0..count {
            let which = (turn + position) % count;
            seen[which].push(ask(&mut harnesses[which])?);
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_lists_and_nothing() {
        let answer = Answer::parse("ns=72.5 iteration_ns=1,2.5,3e3 none=").unwrap();
        assert_eq!(answer.number("ns").unwrap(), 72.5);
        assert_eq!(answer.list("iteration_ns").unwrap(), [1.0, 2.5, 3000.0]);
        assert!(answer.list("none").unwrap().is_empty());
        assert!(answer.number("none").is_err() && answer.number("iteration_ns").is_err());
        assert!(answer.list("p99").is_err());
        assert_eq!(Answer::parse("").unwrap(), Answer::default());
    }

    #[test]
    fn what_is_no_answer_is_said() {
        for (text, said) in [
            ("error no such command: x", "no such command: x"),
            ("72.5", "72.5 is not name=value"),
            ("ns=fast", "ns=fast holds no numbers"),
        ] {
            assert_eq!(Answer::parse(text).unwrap_err().to_string(), said);
        }
    }
}
