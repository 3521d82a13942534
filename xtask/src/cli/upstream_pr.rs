//! The command line of `upstream-pr`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `upstream-pr`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct UpstreamPr {
    /// The PyTorch checkout: the root of a git clone
    #[arg(long, value_name = "DIR")]
    pub source: PathBuf,
    /// What to propose
    #[arg(long, value_enum, default_value = "seam")]
    pub kind: Kind,
    /// The branch or commit to start from [default: HEAD]
    #[arg(
        long,
        value_name = "BRANCH",
        default_value = "HEAD",
        hide_default_value = true
    )]
    pub base: String,
    /// The branch to make [default: host-allocator-subclass, or pinbuddy for --kind full]
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Where the patches and PR_BODY.md go: a folder that is not there yet, or empty
    #[arg(long, value_name = "DIR", default_value = "upstream-pr")]
    pub out: PathBuf,
    /// Results of `bench --json` for the table [default: the newest in docs/results]
    #[arg(long, value_name = "FILE")]
    pub bench: Option<PathBuf>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

const AFTER: &str = "Makes a branch in the checkout, and touches nothing else there: HEAD, the index, files and changes \
                     that are not committed stay as they are. Does everything or nothing. docs/upstream.md says \
                     what is in it and why.";

/// What to propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Only the extension points, with a test and documentation, for PyTorch's maintainers
    Seam,
    /// The whole fork, for the mainline of a distribution of one's own
    Full,
}
