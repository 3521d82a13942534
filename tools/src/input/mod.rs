//! Files that a user hands over, as one kind of events.
//!
//! A trace is read anew for each pass, so that one of any length takes little memory; a snapshot is read once. What
//! their formats allow and forbid is theirs; here every event is valid after those before.

mod counts;
pub(crate) mod open;
mod snapshot;
pub mod table;
mod trace;

use std::cell::Cell;
use std::io::BufRead as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use pinbuddy_events::{Checker, Event, Item, Whose};
use pinbuddy_snapshot::{Entry, Snapshot, Stacks};
use serde::Serialize;

use open::Readable;

use crate::output;
pub(crate) use snapshot::unrecorded;

/// What the file says of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// PyTorch's version.
    pub torch: Option<String>,
    /// Which process of how many.
    pub rank: Option<(u32, u32)>,
    /// The smallest request that blocks served, in bytes.
    #[serde(skip)]
    pub threshold: Option<u64>,
    /// Whether it was recorded in a run: it then says when streams were done.
    pub recorded: bool,
    /// Whether sizes are as they were asked for; else rounded up by the allocator.
    pub exact_sizes: bool,
    /// The budget, if one was set, in bytes.
    pub budget: Option<u64>,
    /// The most that the control groups of the run allowed, in bytes.
    pub group_limit: Option<u64>,
    /// Whether it says when the run waited for the driver, and for how long.
    #[serde(skip)]
    pub waits: bool,
    /// Whether it says which streams used a block.
    #[serde(skip)]
    pub uses: bool,
}

/// `BUDDY_THRESHOLD_MB` where it is not set, in bytes.
const THRESHOLD: u64 = 4 << 20;

/// What `-` is called in messages.
const STANDARD_INPUT: &str = "standard input";

type Generate = Box<dyn Fn() -> Box<dyn Iterator<Item = Event>>>;

enum Source {
    Trace(Readable, Whose),
    Snapshot(Box<Snapshot>, Whose),
    Generated(Generate),
}

/// A file, or a workload that is made up again for each pass.
pub struct Input {
    /// For messages.
    pub name: String,
    /// What it says of the run.
    pub about: About,
    cut_off: Cell<Option<u64>>,
    source: Source,
}

impl Input {
    /// Opens a trace, a snapshot or a table of events, perhaps compressed by gzip; all but traces are read. `device`: the events of this device's memory. Else those of pinned
    /// memory, or of the device with most of them where there is none.
    ///
    /// # Errors
    ///
    /// What is wrong with the file, and where.
    pub fn open(path: &Path, device: Option<u32>) -> Result<Self> {
        let name = match path == Path::new("-") {
            true => STANDARD_INPUT.to_owned(),
            false => path.display().to_string(),
        };
        let cannot = || format!("there is no trace or snapshot {name} that can be read");
        let opened = Readable::new(path).with_context(cannot)?;
        let mut file = opened.open().with_context(cannot)?;
        let first = file.fill_buf().with_context(cannot)?;
        if first.starts_with(&[0x28, 0xb5]) {
            bail!("{name} is compressed by zstd: unpack it first, with unzstd");
        }
        // A pickle of protocol 2 or later, or an archive, which the reader of snapshots explains.
        let is_pickle = matches!(first, [0x80 | b'P', ..]);
        if is_pickle || Snapshot::is_table(first) {
            let (snapshot, whose) = snapshot::read(file, &name, is_pickle, device)?;
            let about = About { recorded: true, ..About::default() };
            let source = Source::Snapshot(Box::new(snapshot), whose);
            return Ok(Self::new(name, about, source));
        }
        if Snapshot::resembles_table(first) {
            bail!(
                "{name} is no table of events that can be used: expected UTF-8 whose first line names the columns with commas between \
                 them and without quotes (action,addr,size,stream), found another kind of table: write it as CSV"
            );
        }
        let others = "no snapshot and no table of events (action,addr,size,stream)";
        let is_none = || format!("{name} is no trace, {others}");
        let (about, memory) = trace::about(&opened).with_context(is_none)?;
        let counts = counts::counts(&opened, memory).with_context(is_none)?;
        let whose = counts.choose(&name, device)?;
        Ok(Self::new(name, about, Source::Trace(opened, whose)))
    }

    fn new(name: String, about: About, source: Source) -> Self {
        Self { name, about, cut_off: Cell::default(), source }
    }

    /// Stacks of calls, and which one each request has, by its id; none where the file has none.
    pub fn stacks(&self) -> Option<(&Stacks, Vec<Option<u32>>)> {
        match &self.source {
            Source::Snapshot(snapshot, whose) => {
                let of = snapshot.stacks_of_requests(*whose).collect();
                Some((&snapshot.stacks, of))
            }
            Source::Trace(..) | Source::Generated(_) => None,
        }
    }

    /// What a snapshot recorded of this memory, with addresses; none of other files.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.source {
            Source::Snapshot(snapshot, whose) => Some(snapshot.entries(*whose)),
            Source::Trace(..) | Source::Generated(_) => None,
        }
    }

    /// Events that are made up, the same each time.
    pub fn generated(name: &str, events: Generate) -> Self {
        let about = About { uses: true, exact_sizes: true, ..About::default() };
        Self::new(name.to_owned(), about, Source::Generated(events))
    }

    /// The line at which the file was cut off, as by a crash, once all events were passed over.
    pub fn cut_off(&self) -> Option<u64> {
        self.cut_off.get()
    }

    /// For a command line: the file, or a word in place of what is no file.
    pub(crate) fn as_argument(&self) -> &str {
        match self.source {
            Source::Generated(_) => "TRACE",
            _ if self.name == STANDARD_INPUT => "TRACE",
            Source::Trace(..) | Source::Snapshot(..) => &self.name,
        }
    }

    /// Says on standard error if the file was cut off.
    pub(crate) fn say_cut_off(&self) {
        if let Some(line) = self.cut_off() {
            output::say(format_args!("note: {} is cut off at line {line}; all before that is used\n", self.name));
        }
    }

    /// Whose events these are: pinned memory's, or those of a device.
    pub fn whose(&self) -> Whose {
        match self.source {
            Source::Snapshot(_, whose) | Source::Trace(_, whose) => whose,
            Source::Generated(_) => Whose::Host,
        }
    }

    /// The smallest request that blocks served in that run, or in one of today with nothing set.
    pub fn threshold(&self) -> u64 {
        match self.whose() {
            Whose::Host => self.about.threshold.unwrap_or(THRESHOLD),
            // PyTorch's device allocator serves all sizes.
            Whose::Device(_) => 0,
        }
    }

    /// The smallest request that a plan has a place for: as in runs, all of them unless a threshold was set.
    pub fn planned_from(&self) -> u64 {
        match self.whose() {
            Whose::Host => self.about.threshold.filter(|it| *it != THRESHOLD),
            // Settings are of pinned memory.
            Whose::Device(_) => None,
        }
        .unwrap_or(0)
    }

    /// Passes over all events, in their order.
    ///
    /// # Errors
    ///
    /// The first line that cannot be used, or `visit`'s.
    pub fn each(&self, visit: &mut dyn FnMut(Item) -> Result<()>) -> Result<()> {
        let checker = Checker::new(self.whose(), self.about.recorded);
        match &self.source {
            Source::Trace(file, _) => {
                let cut_off =
                    trace::each(file, checker, visit).with_context(|| format!("{} is no trace", self.name))?;
                self.cut_off.set(cut_off);
                Ok(())
            }
            Source::Snapshot(snapshot, whose) => snapshot::each(snapshot, &self.name, checker, *whose, visit),
            Source::Generated(make) => {
                let numbered = (1..).zip(make()).map(Ok);
                trace::checked(numbered, checker, visit)
            }
        }
    }
}
