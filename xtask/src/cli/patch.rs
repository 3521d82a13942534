//! The command line of `patch`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    /// Say whether a series applies as it is to what a release ships, and gives what is pinned
    Verify(Verify),
    /// Put a series into a PyTorch source tree, in git or not
    #[command(after_help = APPLY)]
    Apply(Change),
    /// Take a series out of a PyTorch source tree again
    #[command(after_help = UNAPPLY)]
    Unapply(Change),
    /// Check the patches' names, messages and size, with no tree at all
    Lint,
    /// Say where the lines that a series relies on are in another tree
    Drift(Drift),
    /// Make a series into commits in a PyTorch checkout, on top of HEAD
    Import(Commits),
    /// Write the commits that follow a release's own header back as its series
    Export(Commits),
}

const APPLY: &str =
    "Changes all files or none. Where the series is there already, says so and exits with 0.";
const UNAPPLY: &str =
    "Changes all files or none. Where the series is not there, says so and exits with 0.";

/// Options of `patch verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 where every outcome is clean or already applied. Fetches the official \
                  wheel where its header is not in the cache; --source fetches nothing."
)]
pub struct Verify {
    /// The torch release [default: the newest supported one]
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["all", "source"])]
    pub torch: Option<String>,
    /// Every supported release
    #[arg(long, conflicts_with = "source")]
    pub all: bool,
    /// A PyTorch source tree, instead of what the official wheel ships
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Print the outcomes as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `patch apply` and `patch unapply`.
#[derive(Debug, Args)]
pub struct Change {
    /// The tree: a checkout, or an unpacked source archive
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// The release whose series it is [default: what version.txt and the header's hash say]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Also where the files have changes of their own, if the series fits exactly all the same
    #[arg(long)]
    pub force: bool,
}

/// Options of `patch drift`.
#[derive(Debug, Args)]
#[command(after_help = "Reports only: exits with 0 whatever moved, changed or is gone.")]
pub struct Drift {
    /// The tree: a checkout, or an unpacked source archive
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// The release whose series it is [default: the tree's own, or the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Print the report as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `patch import` and `patch export`.
#[derive(Debug, Args)]
pub struct Commits {
    /// The checkout
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// The release whose series it is [default: what version.txt and the header's hash say]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
}
