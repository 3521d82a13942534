//! The command line of `patch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Handed;

/// Options of `patch`.
#[derive(Debug, Args)]
pub struct Patch {
    /// What to do with a series.
    #[command(subcommand)]
    pub command: Command,
}

/// What can be done with a series.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check that a series gives what is pinned from what a release ships
    Verify(Verify),
    /// Put a series into a PyTorch source tree, in git or not
    Apply(Apply),
    /// Say which hunks of a series still have their lines in another tree
    #[command(disable_help_flag = true)]
    Drift(Handed),
    /// Write the commits that follow a release's own header back as its series
    #[command(disable_help_flag = true)]
    Export(Handed),
    /// Carry a release's series to another release, or to a source tree
    #[command(disable_help_flag = true)]
    Rebase(Handed),
    /// Print a release's own header, for `ci/patch.py`
    #[command(hide = true)]
    Header(Verify),
}

/// Options of `patch verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Where a release's header is not in the cache, fetches the official wheel, keeps the header and not the \
                  wheel. ci/rules.sh checks the patches' form."
)]
pub struct Verify {
    /// The torch release [default: the newest supported one]
    #[arg(long, value_name = "VERSION", conflicts_with = "all")]
    pub torch: Option<String>,
    /// Every supported release, also those of which only the sources can be forked
    #[arg(long)]
    pub all: bool,
    /// The Python whose wheel is fetched, where one has to be
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}

/// Options of `patch apply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Applies all of it, to the release's own header, or nothing. Where the series is there already, says so \
                  and exits with 0. `git apply -R` takes a patch out again, and `git am` makes commits of them: \
                  CONTRIBUTING.md."
)]
pub struct Apply {
    /// The tree: a checkout, or an unpacked source archive
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// The release whose series it is [default: what version.txt and the header's hash say]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
}
