//! Records what a program asks of pinned memory.
//!
//! Threads write into rings, one each (`cpp/rings.h`). A thread of ours drains them, merges what they hold by time and
//! hands it to sinks. A recording begins with the first request, so a process that pins nothing opens no file and
//! starts no thread.
//!
//! Invariants: a child of a process that records does not, and touches nothing of the recording; whatever fails here,
//! the program goes on.

mod clock;
mod file;
mod merge;
pub(crate) mod place;
mod recorder;
mod sink;
mod source;
mod takers;

pub use file::FileSink;
pub use recorder::Recorder;
pub use sink::{Event, Sink, What};
pub use source::{Allocation, Drained, Entry, Kind, Source};

use pinbuddy_trace::{Header, Unit};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::{launcher, log};

/// Whether the settings ask for a recording.
pub fn is_wanted(config: &Config) -> bool {
    config.trace.value.is_some()
}

/// The sinks that the settings ask for, made at the first pinned request. A file that cannot be written is said once.
pub fn sinks(config: &Config, torch: &str) -> Vec<Box<dyn Sink>> {
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    if let Some(name) = &config.trace.value {
        match FileSink::create(name, &header(config, torch)) {
            Ok(sink) => sinks.push(Box::new(sink)),
            Err(why) => log::warn(|| format!("BUDDY_TRACE={name:?} records nothing: {why}")),
        }
    }
    sinks
}

/// What this run is.
pub fn header(config: &Config, torch: &str) -> Header {
    let (rank, world_size) = launcher::rank_of_all().unwrap_or((0, 1));
    Header {
        unit: Unit::Nanoseconds,
        torch: Some(torch.to_owned()),
        rank: Some(rank as u64),
        world_size: Some(world_size as u64),
        settings: settings(config),
    }
}

/// The values of all settings that may change what is pinned.
fn settings(config: &Config) -> Map<String, Value> {
    let all = serde_json::to_value(config).unwrap_or_default();
    let Value::Object(all) = all else {
        return Map::new();
    };
    let setting = |it: Value| Some((it["name"].as_str()?.to_owned(), it["value"].clone()));
    let others = ["BUDDY_TRACE", "BUDDY_LOG"];
    all.into_iter()
        .filter_map(|(_, it)| setting(it))
        .filter(|(name, _)| !others.contains(&name.as_str()))
        .collect()
}
