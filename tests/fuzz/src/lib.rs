//! Readers of what nobody vouches for, each as a function of bytes that panics where something is
//! wrong: a crash, an answer that contradicts itself, or one that the reader's promise rules out.
//!
//! The tests run each on its corpus, on changed copies of that and on bytes at random; `ci/explore.sh
//! fuzz` has libFuzzer look for bytes that reach new code. Knows neither.

#![forbid(unsafe_code)]

pub mod live;
pub mod machine;
pub mod mutate;
pub mod patches;
pub mod plan;
pub mod settings;
pub mod snapshot;
pub mod table;
pub mod trace;
pub mod wheels;

/// A target: its name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them. Each has a test of the same name in `tests/targets.rs`.
pub const TARGETS: [Target; 15] = [
    ("engine", |bytes| {
        let _actions = pinbuddy_model::engine::run(bytes);
    }),
    ("provisioner", |bytes| {
        let _actions = pinbuddy_model::provisioner::run(bytes);
    }),
    ("trace", trace::run),
    ("snapshot", snapshot::run),
    ("settings", settings::run),
    ("patch", patches::run),
    ("record", wheels::record),
    ("metadata", wheels::metadata),
    ("zip", wheels::zip),
    ("machine", machine::run),
    ("kernel_lists", machine::lists),
    ("plan", plan::run),
    ("device_plan", plan::device),
    ("live_page", live::run),
    ("table", table::run),
];

/// An empty folder, in memory where there is such a place: it is written to a thousand times a second.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder for files that are read")
}

/// The bytes as text, as far as they are some: for readers that are handed text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
