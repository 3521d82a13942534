//! The command line of `check`.

use std::path::PathBuf;

use clap::Args;

/// Options of `check`.
#[derive(Debug, Args)]
#[command(
    after_help = "With no name, says what there is. docs/reliability-checks.md says what each of them shows."
)]
pub struct Check {
    /// The checks to run
    #[arg(value_name = "WHAT")]
    pub what: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "what")]
    pub all: bool,
    /// Write the table there as JSON, anew after each check; with no file, print it as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Actions of each model
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    pub actions: u64,
    /// Seconds of each fuzz target, of the soak, and of each way that a sanitizer looks on
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub seconds: u64,
    /// Seconds of the soak, where they are others
    #[arg(long, value_name = "N")]
    pub soak_seconds: Option<u64>,
}
