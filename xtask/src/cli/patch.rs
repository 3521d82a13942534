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
    /// Check that a series gives what is pinned from what a release ships
    Verify(Verify),
    /// Put a series into a PyTorch source tree, in git or not
    Apply(Apply),
    /// Say which hunks of a series still have their lines in another tree
    Drift(Drift),
    /// Write the commits that follow a release's own header back as its series
    Export(Export),
    /// Carry a release's series to another release, or to a source tree
    #[command(after_help = REBASE)]
    Rebase(Rebase),
}

const REBASE: &str = "Works in a git repository of its own, target/rebase/FROM-to-TO, with the files that the series changes, \
     and prints git's range-diff of the series before and after. Changes neither patches/ nor DIR: the last line \
     says what takes the result there. A conflict is left there to git, and the command exits with 1.";

/// Options of `patch rebase`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("goal").required(true).args(["to", "source"]))]
pub struct Rebase {
    /// The release whose series it is
    #[arg(long, value_name = "VERSION")]
    pub from: String,
    /// The release to carry it to, as its official wheel has the header
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// A PyTorch source tree to carry it to, in git or not; it is only read
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// The Python whose wheels are fetched, where they have to be
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
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
}

/// Options of `patch export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The checkout
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// The release whose series it is [default: what version.txt and the header's hash say]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
}
