//! What a report has, and the page that shows it: one file with no network.

use std::io::{self, Write};

use serde::Serialize;

use super::curve::Curve;
use super::lab::Lab;
use super::lay::Lay;
use super::map::Map;
use super::nodes::Node;
use super::tables::{AtPeak, Sizes};
use super::waits::Waits;
use super::who::Who;
use crate::advise::Advice;
use crate::input::About;
use crate::waited::Waited;

/// A report. Sizes are in bytes, times in microseconds from the first event on.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Of this program.
    pub version: &'static str,
    /// The file.
    pub name: String,
    /// Whose memory: pinned memory, or that of a device.
    pub device: Option<u32>,
    /// What the file says of the run.
    #[serde(flatten)]
    pub about: About,
    /// The smallest request that blocks served.
    pub threshold: u64,
    /// How long it took.
    pub end: u64,
    /// Events, and how many of them are requests.
    pub events: u64,
    /// See there.
    pub requests: u64,
    /// Events that were dropped while they were recorded.
    pub lost: u64,
    /// The file has more events than these, which are left out.
    pub cut_after: Option<u64>,
    /// The line at which the file is cut off, as by a crash.
    pub cut_off: Option<u64>,
    /// When most was live. Freed memory that waits for a stream is live.
    pub peak_at: u64,
    /// How much that was.
    pub peak: u64,
    /// When iterations ended, and when the cache was emptied.
    pub iterations: Vec<u64>,
    /// How many there were; of many, some are above.
    pub iterations_in_all: u64,
    /// See there.
    pub clears: Vec<u64>,
    /// Where the run itself waited for the driver; none where the file does not say.
    pub waits: Option<Waits>,
    /// The most that the run's own allocator had from the driver at once; none where the file does not say.
    pub run_peak: Option<u64>,
    /// The run's pinned memory by NUMA node; empty where the file does not say.
    pub nodes: Vec<Node>,
    /// Live, as requested.
    pub live: Curve,
    /// Of that: freed, and waiting for a stream.
    pub waiting: Curve,
    /// What allocators would have done.
    pub allocators: Vec<Allocator>,
    /// How memory lay in the run itself, where a snapshot says it.
    pub as_recorded: Option<Lay>,
    /// Blocks that the map shows.
    pub blocks: Blocks,
    /// What lived at the peak.
    pub at_peak: Vec<AtPeak>,
    /// Who asked for what, where stacks were recorded.
    pub who: Option<Who>,
    /// Which sizes there are.
    pub sizes: Vec<Sizes>,
    /// What to set.
    pub advice: Option<Advice>,
    /// Settings to try.
    pub lab: Option<Lab>,
    /// Another file.
    pub compare: Option<Compared>,
}

/// What an allocator would have done.
#[derive(Debug, Serialize)]
pub struct Allocator {
    /// What it is called here.
    pub name: &'static str,
    /// Bytes pinned over time.
    pub pinned: Curve,
    /// Requests so far that waited for the driver; none where that is not known.
    pub waits: Option<Curve>,
    /// The most that was pinned.
    pub peak: u64,
    /// How many requests waited for the driver.
    pub waited: Option<u64>,
    /// Calls to the driver.
    pub calls: u64,
    /// It pinned more than 2 TiB and was replayed no further.
    pub stopped: bool,
    /// Where blocks were.
    pub map: Option<Map>,
}

/// Blocks, a column each; sorted by their begin.
#[derive(Debug, Default, Serialize)]
pub struct Blocks {
    /// How many there are in the file.
    pub of: usize,
    /// The line of the request.
    pub line: Vec<i64>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// When it was requested, as the difference to the one before.
    pub from: Vec<i64>,
    /// How much later it was freed; -1: never.
    pub freed: Vec<i64>,
    /// How much later than that its memory could be used again; -1: never.
    pub until: Vec<i64>,
    /// Who asked.
    pub thread: Vec<u32>,
    /// The last stream that used it; -1: none.
    pub stream: Vec<i64>,
}

/// Another file beside it.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The file.
    pub name: String,
    /// How long it took.
    pub end: u64,
    /// How many requests.
    pub requests: u64,
    /// The most that was live.
    pub peak: u64,
    /// How often that run waited for the driver; none where the file does not say.
    pub waits: Option<Waited>,
    /// Live, as requested.
    pub live: Curve,
    /// What allocators would have done.
    pub allocators: Vec<Allocator>,
}

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 12] = [
    include_str!("page/data.js"),
    include_str!("page/draw.js"),
    include_str!("page/moment.js"),
    include_str!("page/waits.js"),
    include_str!("page/curves.js"),
    include_str!("page/choose.js"),
    include_str!("page/map.js"),
    include_str!("page/gaps.js"),
    include_str!("page/tables.js"),
    include_str!("page/lab.js"),
    include_str!("page/paper.js"),
    include_str!("page/main.js"),
];

impl Report {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// `to`'s.
    pub fn write_page(&self, to: &mut impl Write) -> io::Result<()> {
        // The marks stand in the page in this order.
        let (head, rest) = PAGE.split_once("{{style}}").unwrap_or_default();
        let (body, rest) = rest.split_once("{{data}}").unwrap_or_default();
        let (between, end) = rest.split_once("{{script}}").unwrap_or_default();
        write!(to, "{head}{STYLE}{body}")?;
        self.write_data(to)?;
        to.write_all(between.as_bytes())?;
        for script in SCRIPTS {
            to.write_all(script.as_bytes())?;
        }
        to.write_all(end.as_bytes())
    }

    /// As JSON in which nothing can end the element that it stands in.
    fn write_data(&self, to: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_string(self)?;
        to.write_all(text.replace('<', "\\u003c").as_bytes())
    }
}
