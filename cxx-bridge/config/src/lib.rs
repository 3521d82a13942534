//! The `BUDDY_*` environment variables: their values, and a warning for each that cannot be used.
//!
//! Knows nothing of the engine and prints nothing: it turns strings into a [`Config`] and a list of
//! warnings, so that every case can be tested without the process environment. A bad value never stops
//! a program: the next origin's is used ([`setting`]), and one warning names the variable, the value found and
//! the one in use. [`variables`] lists them, [`defaults`] says how a file sets them.
//!
//! The build tool checks a wheel's defaults with this crate, so it needs no CUDA, no torch and no C++.

#![forbid(unsafe_code)]

#[macro_use]
mod words;

pub mod defaults;
mod files;
mod level;
pub mod memory;
mod parse;
mod pytorch;
pub mod setting;
pub mod variables;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pinbuddy_core::{Growth, Settings, WarmUp};
use serde::{Serialize, Serializer};

use defaults::Layer;
pub use files::{BESIDE_LIBRARY, Surroundings, trusted};
pub use level::Level;
use memory::Memory;
use setting::Reader;
pub use setting::{Origin, Setting};

/// Bytes in one of the megabytes that the `_MB` variables count in.
pub const MIB: usize = 1 << 20;

words! {
    /// When segments are pinned ahead of requests.
    pub enum Mode {
        /// By a thread, from the first pinned request on.
        Background = "background",
        /// All of them, by the first pinned request.
        Sync = "sync",
        /// Not at all: memory is pinned when it is needed.
        Off = "off",
    }
}

impl From<Mode> for WarmUp {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Background => Self::Background,
            Mode::Sync => Self::Sync,
            Mode::Off => Self::Off,
        }
    }
}

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Size of a segment pinned by the warm-up, in MiB; at least 1.
    pub block_size_mb: Setting<usize>,
    /// How many segments the warm-up pins; 0 pins none ahead; by default as demand shows.
    pub block_count: Setting<Option<usize>>,
    /// The smallest request that the engine serves, in MiB; 0 means all.
    pub threshold_mb: Setting<usize>,
    /// When segments are pinned ahead.
    pub warm_up: Setting<Mode>,
    /// What is pinned when nothing fits.
    #[serde(serialize_with = "growth_as_text")]
    pub growth: Setting<Growth>,
    /// The most that the engine pins, in MiB; by default it depends on the machine.
    pub max_mb: Setting<Option<usize>>,
    /// Idle memory goes back after so many seconds; -1 never. Unset: what a clear left to a plan.
    pub idle_s: Setting<Option<i64>>,
    /// Where the memory comes from.
    #[serde(flatten)]
    pub memory: Memory,
    /// The file to which requests are recorded.
    pub trace: Setting<Option<String>>,
    /// Whether other programs can see how memory stands.
    pub live: Setting<bool>,
    /// The file to which requests for device memory are recorded.
    pub device_trace: Setting<Option<String>>,
    /// What is said on standard error.
    pub log: Setting<Level>,
    /// The plan's file, or `auto`.
    pub plan: Setting<Option<String>>,
    /// Where that is, which `auto` leaves to be chosen: nothing read here.
    #[serde(skip)]
    pub plan_file: Option<PathBuf>,
    /// Whether a plan that cannot be used is replaced.
    pub plan_update: Setting<bool>,
    /// Where plans are kept that `auto` chooses.
    pub plan_dir: Setting<Option<String>>,
    /// The file of the plans for device memory.
    pub device_plan: Setting<Option<String>>,
    /// Whether memory that is used after it was freed, or past its end, is looked for.
    pub guard: Setting<bool>,
    /// Whether PyTorch's own allocator stays in place.
    pub disable: Setting<bool>,
}

/// The idle time of so many seconds; none if they are negative.
fn idle(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

impl Config {
    /// Reads every variable through `lookup`; returns the configuration and the warnings to show.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        Self::layered(lookup, &[])
    }

    /// The same, with these files behind it: an earlier one counts before a later one.
    pub fn layered(lookup: impl Fn(&str) -> Option<OsString>, layers: &[Layer]) -> (Self, Vec<String>) {
        use parse::{block_size, folder, megabytes, name, number, seconds, switch, word};
        let mut reader = Reader::new(lookup, layers);
        let block_size_mb = reader.read(variables::BLOCK_SIZE_MB, 1024, block_size);
        let block_count = reader.read(variables::BLOCK_COUNT, None, |text| {
            let count = number(text)?;
            // All blocks together must be addressable.
            match (block_size_mb.value * MIB).checked_mul(count) {
                Some(total) if total <= isize::MAX as usize => Ok(Some(count)),
                _ => Err(parse::TOO_LARGE),
            }
        });
        let config = Self {
            block_size_mb,
            block_count,
            threshold_mb: reader.read(variables::THRESHOLD_MB, 4, megabytes),
            warm_up: reader.read(variables::WARMUP, Mode::Background, |text| {
                word(text, Mode::WORDS, "is none of background, sync and off")
            }),
            growth: reader.read(variables::GROWTH, Growth::Segment, |text| {
                let words = [("segment", Growth::Segment), ("exact", Growth::Exact)];
                word(text, &words, "is neither segment nor exact")
            }),
            max_mb: reader.read(variables::MAX_MB, None, |text| megabytes(text).map(Some)),
            idle_s: reader.read(variables::IDLE_S, None, |text| seconds(text).map(Some)),
            memory: Memory::read(&mut reader),
            trace: reader.read(variables::TRACE, None, name),
            live: reader.read(variables::LIVE, false, switch),
            device_trace: reader.read(variables::DEVICE_TRACE, None, name),
            log: reader.read(variables::LOG, Level::Warn, |text| {
                word(text, Level::WORDS, "is none of off, warn, info and debug")
            }),
            plan: reader.read(variables::PLAN, None, name),
            plan_file: None,
            plan_update: reader.read(variables::PLAN_UPDATE, false, switch),
            plan_dir: reader.read(variables::PLAN_DIR, None, folder),
            device_plan: reader.read(variables::DEVICE_PLAN, None, name),
            guard: reader.read(variables::GUARD, false, switch),
            disable: reader.read(variables::DISABLE, false, switch),
        };
        let (size, threshold) = (config.block_size_mb.value, config.threshold_mb.value);
        if size < threshold && !config.disable.value && !config.guard.value {
            reader.warnings.push(format!(
                "BUDDY_BLOCK_SIZE_MB is {size} and BUDDY_THRESHOLD_MB {threshold}: a block is too \
                 small for any request that it could serve"
            ));
        }
        (config, reader.warnings)
    }

    /// Reads the process environment, the site's file and the wheel's, and looks for misspelt names.
    pub fn from_environment(surroundings: &Surroundings) -> (Self, Vec<String>) {
        let (layers, mut warnings) = surroundings.layers(|name| std::env::var_os(name));
        let (mut config, of_values) = Self::layered(|name| std::env::var_os(name), &layers);
        warnings.extend(of_values);
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        warnings.extend(variables::misspelt(names));
        warnings.extend(config.compare_with_pytorch(|name| std::env::var_os(name)));
        (config, warnings)
    }

    /// The warning if `BUDDY_MAX_MB` is more than there is: so many bytes, which "this machine has", or who
    /// else has them.
    pub fn compare_with(&mut self, (bytes, whose): (u64, &str)) -> Option<String> {
        let (asked, there) = (self.max_mb.value?, bytes / MIB as u64);
        if asked as u64 <= there {
            return None;
        }
        let remark = format!("more than the {there} MiB that {whose}");
        let warning = format!("BUDDY_MAX_MB is {asked}, {remark}; what is free bounds pins all the same");
        self.max_mb.remark = Some(remark);
        Some(warning)
    }

    /// Size of a segment pinned by the warm-up, in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_size_mb.value * MIB
    }

    /// What the provisioner is set to.
    pub fn of_the_provisioner(&self) -> Settings {
        Settings {
            segment_bytes: self.block_bytes(),
            threshold_bytes: self.threshold_bytes(),
            growth: self.growth.value,
            warm_up: self.warm_up.value.into(),
            count: self.block_count.value,
            idle: self.idle_s.value.and_then(idle),
        }
    }

    /// After so long without use a plan's memory goes back, and sooner after a clear; none if never.
    pub fn plan_idle(&self) -> Option<Duration> {
        self.idle_s.value.map_or(Some(Duration::MAX), idle)
    }

    /// The smallest request that is planned, in MiB, where somebody has set it: part of what decides which plan a program has.
    pub fn planned_from_mb(&self) -> Option<usize> {
        match self.threshold_mb.origin {
            Origin::Default => None,
            _ => Some(self.threshold_mb.value),
        }
    }

    /// The smallest request that the engine serves, in bytes; with `BUDDY_GUARD=1` all.
    pub fn threshold_bytes(&self) -> usize {
        if self.guard.value {
            // What upstream's lists serve is not looked at.
            return 0;
        }
        self.threshold_mb.value * MIB
    }
}

/// As text, which the engine's crate does not know.
fn growth_as_text<S: Serializer>(setting: &Setting<Growth>, serializer: S) -> Result<S::Ok, S::Error> {
    let value = match setting.value {
        Growth::Exact => "exact",
        _ => "segment",
    };
    setting.with(value).serialize(serializer)
}

/// The settings of these variables and no others, for tests; the first of a name counts.
pub fn of_pairs(variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    Config::read(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value.into())
    })
}

#[cfg(test)]
mod tests;
