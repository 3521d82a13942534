//! The command line, and nothing else: what can be asked, not how it is done.

pub mod gpu;
pub mod patch;
mod source_build;
mod test;
pub mod upstream_pr;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::build_wheel::Wanted;
pub use source_build::{Launcher, SourceBuild};
pub use test::{Test, TestClients, TestUpstream};

/// Turn an official PyTorch wheel into one whose pinned memory is warm from the first step.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One command per file of this crate.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build a fork wheel from an official torch wheel
    BuildWheel(BuildWheel),
    /// Build a small wheel that gives an official torch the same allocator, with no fork
    BuildPlugin(BuildPlugin),
    /// Say what this machine offers for building and for pinned memory, and what to change
    Doctor(Doctor),
    /// Check what no compiler looks at: the sources' shape, scripts, and workflows
    Lint,
    /// Check and use the patches on their own: on what a release ships, or on a source tree
    Patch(patch::Patch),
    /// Create (once) and print a virtual environment with the fork wheel or the official one
    Venv(Venv),
    /// Run a command with the simulated CUDA runtime in front of the real one
    Sim(Sim),
    /// Write workloads as traces of pinned-memory requests, for replays
    #[command(disable_help_flag = true)]
    Trace(Handed),
    /// Replay traces on models of allocators, with no CUDA and no PyTorch, and compare what they pin
    #[command(disable_help_flag = true)]
    Simulate(Handed),
    /// Run every test: Rust, snapshots, the fork wheel in the simulator, PyTorch's own
    Test(Test),
    /// Build and try the fork of every supported release, one after the other
    Matrix(Matrix),
    /// Run PyTorch's own pinned-memory tests against the fork wheel
    TestUpstream(TestUpstream),
    /// Run client programs with stock, the fork and the plug-in, and compare all that they can see
    TestClients(TestClients),
    /// Propose the extension points to PyTorch, or the whole fork to a mainline of one's own
    UpstreamPr(upstream_pr::UpstreamPr),
    /// Prepare a run on a machine with a GPU and no compiler (ci/gpu), and draw what it has measured
    Gpu(gpu::Gpu),
    /// Compare the fork with the official wheel and other allocators, on the same requests in turns
    #[command(disable_help_flag = true)]
    Bench(Handed),
}

/// A command line that the program `xtask-bench` reads.
#[derive(Clone, Debug, Args)]
pub struct Handed {
    /// All that follows.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Options of `build-wheel`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "With --source, PyTorch itself is built, for hours: docs/source-builds.md. The tree is not touched \
                  without --keep; what is interrupted goes on with the same command."
)]
pub struct BuildWheel {
    /// The torch release to fork: 2.15.0, 2.15 or latest [default: the newest supported one, or the wheel's]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// An official wheel at hand, instead of fetching one
    #[arg(long, value_name = "FILE")]
    pub wheel: Option<PathBuf>,
    /// The Python that the wheel is for
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Where the fork wheel goes
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub out: PathBuf,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Where cargo works: an empty folder compiles everything
    #[arg(long, value_name = "DIR", hide = true)]
    pub cargo: Option<PathBuf>,
    /// Build PyTorch from this source tree instead of forking an official wheel
    #[arg(long, value_name = "DIR", conflicts_with_all = ["wheel", "torch"])]
    pub source: Option<PathBuf>,
    #[command(flatten)]
    pub building: SourceBuild,
}

impl From<&BuildWheel> for Wanted {
    fn from(args: &BuildWheel) -> Self {
        Self {
            torch: args.torch.clone(),
            wheel: args.wheel.clone(),
            python: args.python.clone(),
            out: args.out.clone(),
            cargo: args.cargo.clone(),
        }
    }
}

impl BuildWheel {
    /// As on a command line with these and nothing else.
    pub fn plain(torch: Option<&str>, python: &Path, out: &Path) -> Self {
        Self {
            torch: torch.map(str::to_owned),
            wheel: None,
            python: python.to_path_buf(),
            out: out.to_path_buf(),
            dry_run: false,
            json: false,
            cargo: None,
            source: None,
            building: SourceBuild::default(),
        }
    }
}

/// Options of `build-plugin`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The wheel holds a library for each release and fits every Python; docs/plugin.md says how it is \
                  used. torch itself is not in it, and not required by it."
)]
pub struct BuildPlugin {
    /// A torch release to build for, any number of times [default: the newest supported one]
    #[arg(long, value_name = "VERSION", num_args = 1..)]
    pub torch: Vec<String>,
    /// For every supported release
    #[arg(long, conflicts_with = "torch")]
    pub all: bool,
    /// Also for an official wheel at hand, such as one for another CUDA version, any number of times
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub wheel: Vec<PathBuf>,
    /// A Python that the official wheels are fetched for; the plug-in fits any
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Where the wheel goes
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub out: PathBuf,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exits with 0 when build-wheel and programs with the fork can run here.")]
pub struct Doctor {
    /// The Python to look for torch in, and to build for
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Also want a GPU that programs can use, as --real of other commands does
    #[arg(long)]
    pub gpu: bool,
    /// Print the report, and all that it was made from, as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `venv`.
#[derive(Debug, Args)]
pub struct Venv {
    /// The torch release [default: the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// The official wheel instead of the fork
    #[arg(long)]
    pub stock: bool,
    /// The Python to make the environment with
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}

/// Options of `sim`.
#[derive(Debug, Args)]
pub struct Sim {
    /// How many GPUs to simulate
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub devices: u32,
    /// The command to run and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Options of `matrix`.
#[derive(Debug, Args)]
#[command(
    after_help = "Official wheels that the cache does not have are fetched one at a time and removed again; \
                  headers and libraries stay there."
)]
pub struct Matrix {
    /// Only this release, any number of times [default: the last patch release of each minor one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Vec<String>,
    /// Stop where the library is linked: no wheel is written and nothing is installed
    #[arg(long)]
    pub quick: bool,
    /// Write the table there as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The Python to build for
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Scripts and the README rely on these texts.
    #[test]
    fn help_of_every_command() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        insta::assert_snapshot!("help", cli.render_long_help().to_string());
        for command in without_help(&mut cli) {
            let name = format!("help_{}", command.get_name());
            insta::assert_snapshot!(name.as_str(), command.render_long_help().to_string());
            for below in without_help(command) {
                let name = format!("{name}_{}", below.get_name());
                insta::assert_snapshot!(name.as_str(), below.render_long_help().to_string());
            }
        }
    }

    fn without_help(command: &mut clap::Command) -> impl Iterator<Item = &mut clap::Command> {
        let all = command.get_subcommands_mut();
        // Those that are handed on are xtask-bench's.
        all.filter(|it| it.get_name() != "help" && !it.is_disable_help_flag_set())
    }
}
