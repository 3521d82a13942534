//! The command line: options and help texts, no behaviour.

mod plans;
mod simulate;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::doctor::CudaVersion;
pub use plans::{Plans, PlansAction, Why};
pub use simulate::{Made, Pinbuddy, Simulate, Trace};

/// Plans pinned memory and advises on it, from what a program asked for.
#[derive(Debug, Parser)]
#[command(name = "pinbuddy", bin_name = "pinbuddy", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One command per file of this crate.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a plan from a trace or snapshot: what to pin, and where each request goes
    Plan(Plan),
    /// List, show, move and remove the plans that BUDDY_PLAN=auto has made, and say which a command line has
    Plans(Plans),
    /// Say what to set for the program that a trace is of, and what is wrong in it
    Advise(Advise),
    /// Show how pinned memory stands in programs that run with BUDDY_LIVE=1, and who else holds memory
    Top(Top),
    /// Show a trace or snapshot as a page: memory over time, a map of it, advice, settings to try
    Report(Report),
    /// Say what a message of pinbuddy's means, and what to do about it
    Explain(Explain),
    /// Write workloads as traces of pinned-memory requests, for replays
    Trace(Trace),
    /// Replay traces on models of allocators, with no CUDA and no PyTorch, and compare what they pin
    Simulate(Simulate),
    /// Say whether pinbuddy is in place, and what this machine offers for pinned memory
    Doctor(Doctor),
    /// Print a script that completes commands and options in a shell
    Completions(Completions),
}

/// Options of `plan`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A plan from another torch version, world size, rank or threshold is not used. Ctrl-C keeps the best \
                  that was found so far."
)]
pub struct Plan {
    /// A trace (BUDDY_TRACE, BUDDY_DEVICE_TRACE), or a snapshot (torch.cuda.memory._dump_snapshot); - for standard input
    #[arg(value_name = "TRACE|SNAPSHOT", required_unless_present = "instance")]
    pub trace: Option<PathBuf>,
    /// Instead: place the blocks of this table, with the columns id, lower, upper, size; lifetimes are half-open
    #[arg(long, value_name = "CSV", conflicts_with = "trace")]
    pub instance: Option<PathBuf>,
    /// Write the plan to FILE, - for standard output; of a table, the table with a column for the offset
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Stop searching after S seconds
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = seconds, allow_negative_numbers = true)]
    pub time_limit: f64,
    /// How many threads search [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Print the result as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// The memory of device N [default: pinned memory, or where there is none, the device with most requests]
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    pub device: Option<u32>,
    /// The torch version that the plan is for [default: as the trace says]
    #[arg(long, value_name = "VERSION", conflicts_with = "instance", value_parser = version)]
    pub torch: Option<String>,
    /// How many processes the run has [default: as the trace says, or 1]
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    pub world_size: Option<u32>,
    /// Which of them this is [default: as the trace says, or 0]
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    pub rank: Option<u32>,
    /// The smallest request that is planned, in MiB [default: as BUDDY_THRESHOLD_MB was set in the run, or 0]
    #[arg(long, value_name = "N", conflicts_with = "instance")]
    pub threshold_mb: Option<u32>,
}

/// Options of `advise`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Allocators and settings are models that the trace is replayed on; `pinbuddy explain docs/simulate.md` says \
                  what they leave out."
)]
pub struct Advise {
    /// A trace (BUDDY_TRACE), or a snapshot (torch.cuda.memory._dump_snapshot); - for standard input
    #[arg(value_name = "TRACE|SNAPSHOT")]
    pub trace: PathBuf,
    /// Print the advice as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// The memory of device N [default: pinned memory, or where there is none, the device with most requests]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Stop searching for a plan after S seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds, allow_negative_numbers = true)]
    pub time_limit: f64,
    /// How many threads search [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Options of `report`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "The page is one file and needs no network. What allocators would have done are replays on models, which \
                  `pinbuddy explain docs/simulate.md` explains."
)]
pub struct Report {
    /// A trace (BUDDY_TRACE, BUDDY_DEVICE_TRACE), or a snapshot (torch.cuda.memory._dump_snapshot); - for standard input
    #[arg(value_name = "TRACE|SNAPSHOT")]
    pub trace: PathBuf,
    /// Show this plan [default: one that is made now]
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Compare with another trace or snapshot
    #[arg(long, value_name = "TRACE")]
    pub compare: Option<PathBuf>,
    /// Write to FILE, - for standard output [default: beside the trace, with the format's ending; of what comes from a pipe, standard output]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
    /// The memory of device N [default: pinned memory, or where there is none, the device with most requests]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Stop each search, for a plan and among settings, after S seconds
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds, allow_negative_numbers = true)]
    pub time_limit: f64,
    /// How many threads search [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Options of `top`.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("whom").required(true).args(["pids", "all", "launch"]),
    after_help = "Others that hold memory follow: with PINBUDDY; LOCKED by mlock; PINNED, as far as the kernel counts it (RDMA does, CUDA's \
                  driver does not); SHARED, of a process with a GPU open: what CUDA allocated is in it. What other programs \
                  registered shows nowhere. Reads only: a program that runs does not notice. Where the output is no \
                  terminal, the table is printed once. Exit status 1 if nothing could be shown; with --launch, the command's."
)]
pub struct Top {
    /// Show these processes
    #[arg(value_name = "PID", value_parser = process)]
    pub pids: Vec<u32>,
    /// Show all processes of this user
    #[arg(long)]
    pub all: bool,
    /// Start CMD with BUDDY_LIVE=1, and show it and what it starts until it ends; the last option
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    pub launch: Vec<OsString>,
    /// Print the table once
    #[arg(long)]
    pub once: bool,
    /// Print it once as JSON; sizes in bytes
    #[arg(long)]
    pub json: bool,
    /// Write FILE.prom again and again instead, for the node exporter's textfile collector
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub prometheus: Option<PathBuf>,
    /// Look every S seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds, allow_negative_numbers = true)]
    pub interval: f64,
}

/// Options of `explain`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Without a message, a log is read from standard input; on a terminal, all symptoms and messages are listed. \
                  Exit status 1 if nothing is known."
)]
pub struct Explain {
    /// The message or a part of it, words of a symptom, a setting, a word of the glossary, or a page that was named, such as docs/deploy.md
    #[arg(value_name = "MESSAGE", trailing_var_arg = true, allow_hyphen_values = true)]
    pub message: Vec<String>,
}

/// Options of `doctor`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Changes nothing, and makes no context on a GPU. What is in place is what the command of a wheel says; in a \
                  checkout, only the machine is looked at. Exit status 1 if programs cannot pin memory here."
)]
pub struct Doctor {
    /// Print the findings, and the facts that they were made from, as JSON
    #[arg(long)]
    pub json: bool,
    /// The version of CUDA that torch was built for: whether the driver serves it
    #[arg(long, value_name = "VERSION", hide = true)]
    pub cuda: Option<CudaVersion>,
}

/// Options of `completions`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "bash: source <(pinbuddy completions bash), in ~/.bashrc. zsh: the same with zsh, in ~/.zshrc after \
                  compinit. fish: pinbuddy completions fish > ~/.config/fish/completions/pinbuddy.fish."
)]
pub struct Completions {
    /// Which shell
    #[arg(value_enum, hide_possible_values = true)]
    pub shell: Shell,
}

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A page to look at
    Html,
    /// What the page has, for programs
    Json,
    /// A table of blocks
    Csv,
    /// Trace events, which Perfetto opens
    Perfetto,
    /// A snapshot, which PyTorch's memory_viz opens
    Snapshot,
}

impl Format {
    /// Beside a file: the same name with this format's ending.
    pub(crate) fn beside(self, file: &Path) -> PathBuf {
        file.with_extension(match self {
            Self::Html => "report.html",
            Self::Json => "report.json",
            Self::Csv => "blocks.csv",
            Self::Perfetto => "perfetto.json",
            Self::Snapshot => "viz.pickle",
        })
    }
}

fn process(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "expected the number of a process; to start a program, --launch CMD".to_owned())
}

/// A version that a run can have, with what follows a plus sign or without.
fn version(text: &str) -> Result<String, String> {
    let mut parts = text.splitn(3, '.');
    let mut is_number = || {
        let part = parts.next().unwrap_or_default();
        part.starts_with(|it: char| it.is_ascii_digit())
    };
    match is_number() && is_number() && is_number() {
        true => Ok(text.to_owned()),
        false => Err("expected all of torch.__version__, such as 2.15.0".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(_) if seconds <= 1e9 => Ok(seconds),
        _ => Err("expected a number of seconds, 0 or more".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Cli, version};

    #[test]
    fn what_no_run_has_is_no_version() {
        for text in ["", "x", "2", "2.15", "2.15.", "2.15.x", "2.a.0", "+cu130", "torch 2.15.0"] {
            assert!(version(text).is_err(), "{text}");
        }
        for text in ["2.15.0", "2.15.0+cu132", "3.0.0a0+git1f", "2.16.0.dev20260101"] {
            assert_eq!(version(text).unwrap(), text);
        }
    }

    /// Reviews changes of help texts.
    #[test]
    fn help_of_every_command() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let commands = cli.get_subcommands_mut();
        for command in commands.filter(|it| it.get_name() != "help") {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            insta::assert_snapshot!(format!("help_{name}"), help);
        }
    }
}
