//! The command line: options and help texts, no behaviour.

pub mod patch;
mod test;
#[cfg(test)]
mod written;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::build_wheel::{Options, Wanted};
pub use test::Test;

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
    /// Check a release's patches, apply them to a source tree, or edit them as commits
    Patch(patch::Patch),
    /// Make a virtual environment with the fork wheel or the official one, once, and print its path
    Venv(Venv),
    /// Run a command with the simulated CUDA runtime in front of the real one
    Sim(Sim),
    /// Run the tests of a change: Rust, the fork wheel and the plug-in in the simulator, PyTorch's own
    Test(Test),
    /// Propose the extension points to PyTorch, or the whole fork to a mainline of one's own
    #[command(disable_help_flag = true)]
    UpstreamPr(Handed),
    /// Compare the fork with the official wheel and other allocators, in turns on the same requests
    #[command(disable_help_flag = true)]
    Bench(Handed),
}

/// The arguments of a command that is handed on to another program.
#[derive(Clone, Debug, Args)]
pub struct Handed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Options of `build-wheel`.
#[derive(Clone, Debug, Default, Args)]
#[command(
    after_help = "With --source, PyTorch itself is built, which takes hours: docs/source-builds.md. PyTorch's own variables \
                  (TORCH_CUDA_ARCH_LIST, MAX_JOBS, CMAKE_CUDA_COMPILER_LAUNCHER) hold. The same command resumes an \
                  interrupted build."
)]
pub struct BuildWheel {
    /// The request.
    #[command(flatten)]
    pub wanted: Wanted,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Build PyTorch from this source tree instead of forking an official wheel
    #[arg(long, value_name = "DIR", conflicts_with_all = ["wheel", "torch", "default", "project_url", "build"])]
    pub source: Option<PathBuf>,
    /// With --source: build in the tree itself, and leave the series and the build there
    #[arg(long, requires = "source")]
    pub keep: bool,
}

/// Options of `build-plugin`.
#[derive(Clone, Debug, Default, Args)]
#[command(
    after_help = "The wheel has a library for each release and fits every Python; docs/plugin.md says how to use it. It \
                  neither contains nor requires torch.",
    mut_arg("python", |it| it.help("The Python whose official wheels are fetched; the plug-in fits any Python"))
)]
pub struct BuildPlugin {
    /// A torch release to build for, any number of times [default: the newest supported one]
    #[arg(long, value_name = "VERSION", num_args = 1..)]
    pub torch: Vec<String>,
    /// Build for every supported release
    #[arg(long, conflicts_with = "torch")]
    pub all: bool,
    /// Also build for this official wheel, such as one for another CUDA version, any number of times
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub wheel: Vec<PathBuf>,
    /// The options of every wheel of ours.
    #[command(flatten)]
    pub options: Options,
    /// Print the summary as JSON on standard output
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
    /// Print the folders of its CUDA's headers instead: for ci/gpu/programs.sh
    #[arg(long, hide = true)]
    pub headers: bool,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    /// Reviews changes of help texts, which scripts and the README rely on.
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

    /// Includes commands that are handed on.
    #[test]
    fn the_page_lists_every_command() {
        let page = std::fs::read_to_string(crate::support::paths::root().join("docs/commands.md"));
        let page = page.unwrap();
        let cli = Cli::command();
        for command in cli.get_subcommands() {
            let about = command.get_about().unwrap();
            let row = format!("| `cargo xtask {}` | {about} |", command.get_name());
            assert!(page.contains(&row), "docs/commands.md should have {row}");
        }
        let rows = page.lines().filter(|it| it.starts_with("| `cargo xtask"));
        assert_eq!(rows.count(), cli.get_subcommands().count(), "and no others");
    }

    fn without_help(command: &mut clap::Command) -> impl Iterator<Item = &mut clap::Command> {
        let all = command.get_subcommands_mut();
        // The help of a command that is handed on is its program's.
        all.filter(|it| it.get_name() != "help" && !it.is_disable_help_flag_set() && !it.is_hide_set())
    }
}
