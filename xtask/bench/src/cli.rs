//! The command line of the commands that `cargo xtask` hands on to this program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::bench::choice::Choice;

/// The command line as the user typed it.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What this program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare the fork with the official wheel and other allocators, in turns on the same requests
    Bench(Bench),
    /// Run a few turns of the parts that need the harness alone, as a test
    #[command(hide = true)]
    Smoke(Smoke),
}

/// Options of `bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Ratios are the result; times are of one machine. Runs in the simulator without --real."
)]
pub struct Bench {
    /// Fewer rounds and smaller workloads, for a first look
    #[arg(long)]
    pub quick: bool,
    /// Write the results and their context to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where the plots go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    pub out: PathBuf,
    /// Use this machine's CUDA runtime and GPU instead of the simulator
    #[arg(long)]
    pub real: bool,
    /// Fail if a figure misses its target, for CI
    #[arg(long)]
    pub strict: bool,
    /// Only these parts [default: all]
    #[arg(long, value_name = "PART", num_args = 1.., value_delimiter = ',')]
    pub only: Vec<Choice>,
    /// Also replay this trace (JSON lines) in the part `memory`
    #[arg(long, value_name = "FILE")]
    pub trace: Vec<PathBuf>,
    /// Use this environment with the fork instead of `cargo xtask venv`
    #[arg(long, value_name = "DIR")]
    pub fork: Option<PathBuf>,
    /// Use this environment with the official wheel instead of `cargo xtask venv --stock`
    #[arg(long, value_name = "DIR")]
    pub stock: Option<PathBuf>,
    /// The Python to make environments with
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Say what has to be built for this, as JSON, and do nothing
    #[arg(long, hide = true)]
    pub needs: bool,
    #[command(flatten)]
    pub handed: Handed,
}

/// What `cargo xtask` has built.
#[derive(Debug, Args)]
pub struct Handed {
    /// The harness
    #[arg(long, hide = true)]
    pub harness: Option<PathBuf>,
    /// The folder of the simulator, where CUDA is simulated
    #[arg(long, hide = true)]
    pub simulator: Option<PathBuf>,
    /// The program that builds wheels
    #[arg(long, hide = true)]
    pub xtask: Option<PathBuf>,
}

/// Options of the benchmark's own test.
#[derive(Debug, Args)]
pub struct Smoke {
    /// An environment with the fork
    #[arg(long)]
    pub fork: PathBuf,
    /// An environment with the official wheel
    #[arg(long)]
    pub stock: PathBuf,
    #[command(flatten)]
    pub handed: Handed,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::error::ErrorKind;
    use clap::{CommandFactory as _, Parser as _};
    use xtask_support::calls::commands;
    use xtask_support::paths;

    use super::Cli;

    /// Reviews changes of help texts, which scripts and documents rely on.
    #[test]
    fn help_of_every_command() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        for path in [&["bench"][..], &["gpu", "plot"]] {
            let mut command = &mut cli;
            for name in path {
                command = command.find_subcommand_mut(name).unwrap();
            }
            let name = format!("help_{}", path.join("_"));
            insta::assert_snapshot!(name.as_str(), command.render_long_help().to_string());
        }
    }

    fn page(name: &str) -> String {
        fs::read_to_string(paths::root().join("docs").join(name)).unwrap()
    }

    #[test]
    fn the_page_lists_every_command() {
        let (page, cli) = (page("commands.md"), Cli::command());
        for command in cli.get_subcommands().filter(|it| !it.is_hide_set()) {
            let about = command.get_about().unwrap();
            let row = format!("| `cargo xtask {}` | {about} |", command.get_name());
            assert!(page.contains(&row), "docs/commands.md should have {row}");
        }
    }

    /// Command lines in scripts, workflows and documents. A test of xtask checks the commands that are not
    /// handed on.
    #[test]
    fn command_lines_of_this_checkout_are_taken() {
        let files =
            ["ci", "ci/gpu", ".ci", ".github/workflows", "docs"].map(|it| paths::root().join(it));
        let entries = files
            .iter()
            .flat_map(|it| fs::read_dir(it).unwrap().flatten());
        let text = entries.filter_map(|it| fs::read_to_string(it.path()).ok());
        let text: String = text.collect();
        let said = text.lines().map(str::trim_start);
        // The table of commands has their names alone.
        let not = ["#", "echo ", "| `cargo xtask "];
        let lines = said.filter(|it| !not.iter().any(|start| it.starts_with(start)));
        let own = |words: &Vec<String>| words.first().is_some_and(|it| it == "bench");
        let mut checked = 0;
        for words in lines.flat_map(commands).filter(own) {
            let words = ["cargo xtask".to_owned()].into_iter().chain(words);
            if let Err(error) = Cli::try_parse_from(words) {
                assert_eq!(error.kind(), ErrorKind::DisplayHelp, "{error}");
            }
            checked += 1;
        }
        assert!(checked > 0);
    }
}
