//! The command line of `gpu`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Options of `gpu`.
#[derive(Debug, Args)]
pub struct Gpu {
    /// Which part of it.
    #[command(subcommand)]
    pub command: Command,
}

/// What ci/gpu/pack.sh needs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile the programs of a run and PyTorch's tests, for a machine with that torch and no compiler
    Programs(Programs),
}

/// Options of `gpu programs`.
#[derive(Debug, Args)]
pub struct Programs {
    /// The torch release to compile against
    #[arg(long, value_name = "VERSION")]
    pub torch: String,
    /// A PyTorch source tree to take PyTorch's tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// The Python to use
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Where the folders `bin` and `pytorch` go
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
