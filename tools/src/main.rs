//! `pinbuddy-tools`: reads the command line and starts one file per command.

use std::env;
use std::ffi::OsStr;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, FromArgMatches as _};
use pinbuddy_tools::cli::{Cli, Command};
use pinbuddy_tools::{
    advise, completions, doctor, explain, output, place, plan, plans, report, simulate, top, workloads,
};

fn main() -> ExitCode {
    match parsed().map_or_else(|said| said_by_clap(&said), |cli| run(&cli)) {
        Ok(code) => code,
        Err(error) => {
            output::say(format_args!("error: {error}\n"));
            for cause in error.chain().skip(1) {
                output::say(format_args!("  because   {cause}\n"));
            }
            if let Some(message) = explain::known(&format!("{error:#}")) {
                output::say(format_args!("  see       pinbuddy explain '{message}'\n"));
            }
            ExitCode::FAILURE
        }
    }
}

/// The command line, for a program that is called as it was typed: `python -m pinbuddy` says so in place of its path.
fn parsed() -> Result<Cli, clap::Error> {
    let typed = env::args_os().next().unwrap_or_default();
    let typed = Path::new(&typed).file_name().and_then(OsStr::to_str);
    let typed = typed.filter(|it| !it.starts_with(env!("CARGO_PKG_NAME"))).unwrap_or("pinbuddy").to_owned();
    let mut command = Cli::command().bin_name(typed);
    let matches = command.try_get_matches_from_mut(env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|it| it.format(&mut command))
}

/// Help, or what is wrong with the command line.
fn said_by_clap(said: &clap::Error) -> Result<ExitCode> {
    if said.use_stderr() || std::io::stdout().is_terminal() {
        // In colour, where that can be seen.
        let _ = said.print();
    } else {
        output::print(&said.render())?;
    }
    Ok(ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2)))
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Top(args) => return top::run(args),
        Command::Plans(args) => return plans::run(args),
        Command::Explain(args) => return explain::run(args),
        Command::Doctor(args) => return doctor::run(args),
        Command::Advise(args) => advise::run(args),
        Command::Report(args) => report::run(args),
        Command::Trace(args) => workloads::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Plan(args) => match &args.instance {
            Some(file) => place::run(file, args),
            None => plan::run(args.trace.as_deref().unwrap_or(Path::new("")), args),
        },
    }?;
    Ok(ExitCode::SUCCESS)
}
