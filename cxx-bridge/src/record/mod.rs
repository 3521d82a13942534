//! Records what a program asks of pinned memory, and of device memory.
//!
//! Threads write into rings, one each ([`writing`]). A thread of ours drains them, merges what they hold by time and
//! hands it to sinks. A recording begins with the first request, so a process that pins nothing opens no file and
//! starts no thread.
//!
//! Invariants: a child of a process that records does not, and touches nothing of the recording; whatever fails here,
//! the program goes on.

mod clock;
mod code;
mod file;
mod merge;
pub(crate) mod place;
mod recorder;
mod ring;
mod rings;
mod sink;
mod source;
mod takers;
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(crate) mod writing;

pub use file::FileSink;
pub use recorder::Recorder;
#[doc(hidden)]
pub use ring::{Owner, Raw, Ring};
pub use sink::Sink;
pub use source::{Allocation, Drained, Entry, Kind, Lost, Source};

use std::path::Path;

use pinbuddy_events::trace::{Header, Memory, Unit};
use pinbuddy_machine::{Cgroup, Files};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::{launcher, log};

/// Whether the settings ask for a recording.
pub fn is_wanted(config: &Config) -> bool {
    config.trace.value.is_some()
}

/// The sink of `BUDDY_TRACE`, made at the first pinned request; with `both`, it has device memory, too. A file that cannot
/// be written is said once.
pub fn pinned_sink(config: &Config, torch: &str, both: bool) -> Option<Box<dyn Sink>> {
    let memory = if both { Memory::Both } else { Memory::Pinned };
    let name = config.trace.value.as_ref()?;
    sink("BUDDY_TRACE", name, &header(config, torch, memory))
}

/// The sink of a trace of device memory.
pub fn device_sink(config: &Config, torch: &str, name: &str) -> Option<Box<dyn Sink>> {
    let header = header(config, torch, Memory::Device);
    sink("BUDDY_DEVICE_TRACE", name, &header)
}

fn sink(variable: &str, name: &str, header: &Header) -> Option<Box<dyn Sink>> {
    match FileSink::create(name, header) {
        Ok(sink) => Some(Box::new(sink)),
        Err(why) => {
            log::warn(|| format!("{variable}={name:?} records nothing: {why}"));
            None
        }
    }
}

/// What this run is, and which memory its trace is about.
pub fn header(config: &Config, torch: &str, memory: Memory) -> Header {
    let (rank, world_size) = launcher::rank_of_all().unwrap_or((0, 1));
    Header {
        unit: Unit::Nanoseconds,
        memory,
        torch: Some(torch.to_owned()),
        rank: Some(rank as u64),
        world_size: Some(world_size as u64),
        group_limit: Cgroup::least_limit(&Files::below(Path::new("/"))),
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
    let others = ["BUDDY_TRACE", "BUDDY_DEVICE_TRACE", "BUDDY_LOG"];
    all.into_iter()
        .filter_map(|(_, it)| setting(it))
        .filter(|(name, _)| !others.contains(&name.as_str()))
        .collect()
}
