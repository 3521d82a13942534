//! The source of steps: a file, or a workload that is generated during the replay.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use pinbuddy_events::trace::{Error, Reader};
use pinbuddy_events::{Checker, Event, Op, Whose};
use pinbuddy_replay::step::Step;
use pinbuddy_replay::workload::{WORKLOADS, Workload};

use super::Made;
use crate::{cli, output};

pub(super) struct Input {
    name: String,
    made: Option<Made>,
    events: Box<dyn Iterator<Item = Result<(u64, Event), Error>>>,
    checker: Checker,
}

/// A file's events. Says at their end if some are missing: a recording may be cut off by a crash.
struct Recorded {
    name: String,
    reader: Reader<BufReader<File>>,
    lost: u64,
    on_device: u64,
}

impl Recorded {
    fn new(name: &str, file: File) -> Self {
        Self {
            name: name.to_owned(),
            reader: Reader::lenient(BufReader::with_capacity(1 << 16, file)),
            lost: 0,
            on_device: 0,
        }
    }
}

impl Iterator for Recorded {
    type Item = Result<(u64, Event), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (item, name) = (self.reader.next(), &self.name);
        match &item {
            Some(Ok((_, event))) => match event.op {
                Op::Lost { events } => self.lost = self.lost.saturating_add(events),
                Op::Request { .. } if event.whose != Whose::Host => self.on_device += 1,
                _ => {}
            },
            Some(Err(_)) => {}
            None => {
                if let Some(line) = self.reader.cut_off() {
                    output::say(format_args!(
                        "{name} is cut off in line {line}; what is before is replayed\n"
                    ));
                }
                if self.on_device > 0 {
                    output::say(format_args!(
                        "{name} has {} requests for device memory, which are left out: pinbuddy plan is for those\n",
                        self.on_device
                    ));
                }
                if self.lost > 0 {
                    output::say(format_args!(
                        "{name} lacks {} events, which came too fast\n",
                        self.lost
                    ));
                }
            }
        }
        item
    }
}

/// The named traces, or every workload.
pub(super) fn all(names: &[String], made: cli::Made) -> Result<Vec<Input>> {
    if names.is_empty() {
        return Ok(WORKLOADS.iter().map(|it| Input::make(it, made)).collect());
    }
    let open = |name: &String| match Workload::named(name) {
        Some(workload) => Ok(Input::make(workload, made)),
        None => Input::open(name),
    };
    names.iter().map(open).collect()
}

impl Input {
    fn make(workload: &'static Workload, made: cli::Made) -> Self {
        let steps = made.steps.unwrap_or(workload.steps);
        let seed = made.seed;
        Self {
            name: workload.name.to_owned(),
            made: Some(Made { seed, steps }),
            events: Box::new((1..).zip(workload.events(seed, steps)).map(Ok)),
            checker: Checker::default(),
        }
    }

    fn open(name: &str) -> Result<Self> {
        let file = File::open(Path::new(name)).map_err(|why| {
            anyhow!("there is no trace {name} ({why}), and no workload of that name: pinbuddy trace --list has them")
        })?;
        Ok(Self {
            name: name.to_owned(),
            made: None,
            events: Box::new(Recorded::new(name, file).fuse()),
            checker: Checker::default(),
        })
    }

    /// Appends the steps of at most `most` events; returns the number of events, 0 at the end.
    pub(super) fn read(&mut self, steps: &mut Vec<Step>, most: usize) -> Result<u64> {
        let in_file = || format!("{} is no trace", self.name);
        let mut events = 0;
        for item in self.events.by_ref().take(most) {
            let (line, event) = item.with_context(in_file)?;
            events += 1;
            steps.extend(Step::checked(&mut self.checker, line, event).with_context(in_file)?);
        }
        Ok(events)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn made(&self) -> Option<Made> {
        self.made
    }
}
