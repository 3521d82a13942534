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
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
pub(crate) mod device;
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
use pinbuddy_live::NodeUse;
use pinbuddy_machine::{Cgroup, Files};
use pinbuddy_store::AUTO;
use serde_json::{Map, Value};

use crate::config::Config;
use crate::log;
use pinbuddy_store::launcher;

/// The sink of `BUDDY_TRACE`, made at the first pinned request; with `both`, it has device memory, too; `nodes` says
/// what serves each NUMA node. A file that cannot be written is said once.
pub fn pinned_sink(
    config: &Config,
    torch: &str,
    both: bool,
    nodes: fn() -> Option<Vec<NodeUse>>,
) -> Option<Box<dyn Sink>> {
    let memory = if both { Memory::Both } else { Memory::Pinned };
    let name = config.trace.value.as_ref()?;
    let header = header(config, torch, memory);
    let file = sink(config, ("BUDDY_TRACE", name), &header)?;
    Some(Box::new(file.with_nodes(nodes)))
}

/// The sink of a trace of device memory.
pub fn device_sink(config: &Config, torch: &str, name: &str) -> Option<Box<dyn Sink>> {
    let header = header(config, torch, Memory::Device);
    Some(Box::new(sink(config, ("BUDDY_DEVICE_TRACE", name), &header)?))
}

fn sink(config: &Config, (variable, name): (&str, &str), header: &Header) -> Option<FileSink> {
    let made = no_plan_in(config, name).and_then(|()| FileSink::create(name, header));
    match made {
        Ok(sink) => Some(sink),
        Err(why) => {
            log::warn(|| format!("{variable}={name:?} records nothing: {why}"));
            None
        }
    }
}

/// Whether no plan is in the file of this name: the trace would replace it, or it the trace.
///
/// # Errors
///
/// Which variable names that file, too.
pub fn no_plan_in(config: &Config, name: &str) -> Result<(), String> {
    let file = |name: &str| {
        let path = place::path(name);
        let found = path.canonicalize().or_else(|_| std::path::absolute(&path));
        found.unwrap_or(path)
    };
    for (variable, plan) in [("BUDDY_PLAN", &config.plan.value), ("BUDDY_DEVICE_PLAN", &config.device_plan.value)] {
        if plan.as_ref().is_some_and(|it| it != AUTO && file(it) == file(name)) {
            return Err(format!("{variable} names that file, too; name another one"));
        }
    }
    Ok(())
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
    all.into_iter().filter_map(|(_, it)| setting(it)).filter(|(name, _)| !others.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_not_written_over_a_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.plan");
        let same = folder.path().join(".").join("run.plan");
        for variable in ["BUDDY_PLAN", "BUDDY_DEVICE_PLAN"] {
            // The plan is not there yet, and is.
            for text in [None, Some("a plan")] {
                if let Some(text) = text {
                    std::fs::write(&path, text).unwrap();
                }
                let (config, _) = Config::read(|name| match name {
                    "BUDDY_TRACE" => Some(same.to_str()?.into()),
                    _ => (name == variable).then(|| path.to_str().unwrap().into()),
                });
                assert!(pinned_sink(&config, "2.15.0", false, || None).is_none());
                let name = path.to_str().unwrap();
                assert!(device_sink(&config, "2.15.0", name).is_none());
                let said = no_plan_in(&config, name).unwrap_err();
                assert!(said.starts_with(variable), "{said}");
                assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), text);
                let other = folder.path().join("other");
                assert!(device_sink(&config, "2.15.0", other.to_str().unwrap()).is_some());
            }
            std::fs::remove_file(&path).unwrap();
        }
    }
}
