//! The command line of `verify-wheel`.

use std::path::PathBuf;

use clap::Args;

/// Options of `verify-wheel`.
#[derive(Debug, Args)]
pub struct VerifyWheel {
    /// The wheel: a fork, a plug-in, or any other
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The SHA-256 that the whole file is to have [default: that in FILE.sha256, if it is there]
    #[arg(long, value_name = "HASH")]
    pub sha256: Option<String>,
    /// A wheel known to be good, the same or the official one that a fork was made of: names the first byte that differs
    #[arg(long, value_name = "WHEEL")]
    pub like: Option<PathBuf>,
}
