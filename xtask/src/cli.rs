//! The command line, and nothing else: what can be asked, not how it is done.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

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
    /// Say what this machine offers for building and for pinned memory, and what to change
    Doctor(Doctor),
    /// Create (once) and print a virtual environment with the fork wheel or the official one
    Venv(Venv),
    /// Run a command with the simulated CUDA runtime in front of the real one
    Sim(Sim),
    /// Run every test: Rust, snapshots, the fork wheel in the simulator, PyTorch's own
    Test(Test),
    /// Run PyTorch's own pinned-memory tests against the fork wheel
    TestUpstream(TestUpstream),
}

/// Options of `build-wheel`.
#[derive(Debug, Args)]
pub struct BuildWheel {
    /// The torch release to fork [default: the newest supported one]
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
}

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Exits with 0 when build-wheel and programs with the fork can run here.")]
pub struct Doctor {
    /// The Python to look for torch in, and to build for
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
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

/// Options of `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Only what needs no torch wheel: Rust tests and snapshots
    #[arg(long)]
    pub quick: bool,
}

/// Options of `test-upstream`.
#[derive(Debug, Args)]
pub struct TestUpstream {
    /// A PyTorch source tree to take the tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// The torch release to test [default: the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Test the official wheel only
    #[arg(long)]
    pub stock: bool,
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
        for command in cli
            .get_subcommands_mut()
            .filter(|it| it.get_name() != "help")
        {
            let name = format!("help_{}", command.get_name());
            insta::assert_snapshot!(name, command.render_long_help().to_string());
        }
    }
}
