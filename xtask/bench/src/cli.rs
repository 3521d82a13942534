//! The command line of the commands that `cargo xtask` hands on to this program.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use pinbuddy_core::{Growth, WarmUp};
use pinbuddy_replay::policy::Kind;
use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::workload::WORKLOADS;

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
    /// Write workloads as traces of pinned-memory requests, for replays
    Trace(Trace),
    /// Replay traces on models of allocators, with no CUDA and no PyTorch, and compare what they pin
    Simulate(Simulate),
    /// Prepare a run on a machine with a GPU and no compiler (ci/gpu), and plot its results
    Gpu(Gpu),
    /// Compare the fork with the official wheel and other allocators, in turns on the same requests
    Bench(Bench),
    /// Run a few turns of the parts that need the harness alone, as a test
    #[command(hide = true)]
    Smoke(Smoke),
}

/// Options of `gpu`.
#[derive(Debug, Args)]
pub struct Gpu {
    /// Which part of it.
    #[command(subcommand)]
    pub command: GpuCommand,
}

/// What comes after ci/gpu/run.sh.
#[derive(Debug, Subcommand)]
pub enum GpuCommand {
    /// Draw the plots of a run's results.json
    Plot(Plot),
}

/// Options of `gpu plot`.
#[derive(Debug, Args)]
pub struct Plot {
    /// What the run wrote
    #[arg(value_name = "RESULTS.json")]
    pub results: PathBuf,
    /// Where the plots go
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
}

/// Options of `trace`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each workload is one file of JSON lines; docs/simulate.md says what they are."
)]
pub struct Trace {
    /// The workloads to write
    #[arg(value_parser = PossibleValuesParser::new(WORKLOADS.map(|it| it.name)), hide_possible_values = true)]
    #[arg(required_unless_present = "list", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// List the workloads
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub made: Made,
    /// Where the traces go
    #[arg(long, value_name = "DIR", default_value = "target/traces")]
    pub out: PathBuf,
}

/// How workloads are made.
#[derive(Clone, Copy, Debug, Args)]
pub struct Made {
    /// The seed of varying sizes: the same seed gives the same trace
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many steps of a workload [default: its own number]
    #[arg(long, value_name = "N")]
    pub steps: Option<u32>,
}

/// Options of `simulate`.
#[derive(Debug, Args)]
#[command(
    after_help = "docs/simulate.md says what is measured, and what the keys of the JSON mean."
)]
pub struct Simulate {
    /// Files that `trace` wrote, or names of workloads (`cargo xtask trace --list`) [default: every
    /// workload]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<String>,
    /// A policy to replay them on, any number of times [default: all of them]
    #[arg(long = "policy", value_name = "POLICY", value_parser = policies())]
    pub policies: Vec<Kind>,
    /// Device memory instead: generated trainings (TRACE names some of them) on the model of PyTorch's allocator, with
    /// a plan in front of it and without
    #[arg(long, conflicts_with_all = ["policies", "steps"])]
    pub device: bool,
    #[command(flatten)]
    pub made: Made,
    /// Print the results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub settings: Pinbuddy,
}

/// The settings of the policies pinbuddy and pinbuddy-exact.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Settings of pinbuddy, as the BUDDY_ variables of these names")]
pub struct Pinbuddy {
    /// Size of a block pinned ahead, in MiB
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub block_size_mb: u32,
    /// How many blocks the warm-up pins; unset: as much as demand shows
    #[arg(long, value_name = "N")]
    pub block_count: Option<u16>,
    /// The smallest request that blocks serve, in MiB
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub threshold_mb: u32,
    /// When blocks are pinned ahead; pinbuddy-exact has `off`
    #[arg(long, value_enum, default_value = "background")]
    pub warmup: WarmUpMode,
    /// What is pinned when nothing fits; pinbuddy-exact has `exact`
    #[arg(long, value_enum, default_value = "segment")]
    pub growth: GrowthMode,
}

/// `BUDDY_WARMUP`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum WarmUpMode {
    /// By a thread, from the first request that finds no room
    Background,
    /// All of them by that request
    Sync,
    /// Never
    Off,
}

/// `BUDDY_GROWTH`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum GrowthMode {
    /// Up to a block, as demand shows
    Segment,
    /// No more than the request
    Exact,
}

impl Pinbuddy {
    /// As the model takes them.
    pub fn settings(self) -> Settings {
        let bytes = |mib| u64::from(mib) << 20;
        Settings {
            block_bytes: bytes(self.block_size_mb),
            block_count: self.block_count.map(u64::from),
            threshold_bytes: bytes(self.threshold_mb),
            warm_up: match self.warmup {
                WarmUpMode::Background => WarmUp::Background,
                WarmUpMode::Sync => WarmUp::Sync,
                WarmUpMode::Off => WarmUp::Off,
            },
            growth: match self.growth {
                GrowthMode::Segment => Growth::Segment,
                GrowthMode::Exact => Growth::Exact,
            },
        }
    }
}

fn policies() -> impl TypedValueParser<Value = Kind> {
    let names = PossibleValuesParser::new(Kind::ALL.map(Kind::name));
    names.try_map(|name| Kind::named(&name).ok_or("no such policy"))
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

    use super::{Cli, Command};

    /// The help needs the defaults written down in this file.
    #[test]
    fn the_settings_of_pinbuddy_are_by_default_the_models_own() {
        let cli = Cli::try_parse_from(["cargo xtask", "simulate"]).unwrap();
        let Command::Simulate(args) = cli.command else {
            panic!("another command");
        };
        assert_eq!(args.settings.settings(), Default::default());
    }

    /// Reviews changes of help texts, which scripts and documents rely on.
    #[test]
    fn help_of_every_command() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        for path in [&["bench"][..], &["simulate"], &["trace"], &["gpu", "plot"]] {
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

    /// The help of a setting begins as the page's explanation of the BUDDY_ variable.
    #[test]
    fn settings_are_explained_as_on_their_page() {
        let (page, mut cli) = (page("variables.md"), Cli::command());
        cli.build();
        let simulate = cli.find_subcommand("simulate").unwrap();
        let settings = |it: &&clap::Arg| it.get_help_heading().is_some();
        assert_eq!(simulate.get_arguments().filter(settings).count(), 5);
        for option in simulate.get_arguments().filter(settings) {
            let long = option.get_long().unwrap().to_uppercase().replace('-', "_");
            let start = format!("| `BUDDY_{long}` |");
            let row = page.lines().find(|it| it.starts_with(&start)).unwrap();
            let has = |text: String| assert!(row.contains(&text), "{text:?} is not in {row}");
            let help = option.get_help().unwrap().to_string();
            let first = help.split(';').next().unwrap_or_default();
            has(format!("| {}", lower(first)));
            for value in option.get_possible_values() {
                let help = value.get_help().unwrap().to_string();
                has(format!("`{}`: {}", value.get_name(), lower(&help)));
            }
        }
    }

    fn lower(text: &str) -> String {
        let (first, rest) = text.split_at(1);
        first.to_lowercase() + rest
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
        let own = |words: &Vec<String>| {
            let name = words.first().map_or("", String::as_str);
            let plot = words.get(1).is_some_and(|it| it == "plot");
            matches!(name, "bench" | "simulate" | "trace") || name == "gpu" && plot
        };
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
