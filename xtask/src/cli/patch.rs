//! The command line of `patch`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

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
    /// Carry a release's series to another release, or to a source tree
    #[command(after_help = REBASE)]
    Rebase(Rebase),
}

const APPLY: &str =
    "Changes all files or none. Where the series is there already, says so and exits with 0.";
const UNAPPLY: &str =
    "Changes all files or none. Where the series is not there, says so and exits with 0.";

const REBASE: &str = "Works in a git repository of its own, target/rebase/FROM-to-TO, with the files that the series changes \
     and no others, and prints git's range-diff of the series before and after. Changes neither patches/ nor \
     DIR: the last lines say what takes the result there. Where a patch is in conflict it stops and exits with \
     1, and the folder has what any git rebase leaves.";

/// Options of `patch rebase`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("goal").required(true).args(["to", "source"]))]
pub struct Rebase {
    /// The release whose series it is
    #[arg(long, value_name = "VERSION")]
    pub from: String,
    /// The release to carry it to, as its official wheel has the files
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// A PyTorch source tree to carry it to, in git or not; it is only read
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Go on after a conflict, with what was edited
    #[arg(long = "continue", conflicts_with = "restart")]
    pub go_on: bool,
    /// Throw away what was edited in the folder, and begin anew
    #[arg(long)]
    pub restart: bool,
    /// The Python whose wheels are fetched, where they have to be
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}

/// Options of `patch verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 where every outcome is clean or already applied. Where a release's header is not in \
                  the cache, fetches the official wheel, keeps the header and not the wheel; --source fetches \
                  nothing."
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
    /// The Python whose wheel is fetched, where one has to be
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
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
