//! `pinbuddy-tools`: reads the command line and starts one file per command.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use pinbuddy_tools::cli::{Cli, Command};
use pinbuddy_tools::{advise, explain, place, plan, report, top};

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because   {cause}");
            }
            if let Some(message) = explain::known(&format!("{error:#}")) {
                eprintln!("  see       pinbuddy explain '{message}'");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Top(args) => return top::run(args),
        Command::Explain(args) => return explain::run(args),
        Command::Advise(args) => advise::run(args),
        Command::Report(args) => report::run(args),
        Command::Plan(args) => match &args.instance {
            Some(file) => place::run(file, args),
            None => plan::run(args.trace.as_deref().unwrap_or(Path::new("")), args),
        },
    }?;
    Ok(ExitCode::SUCCESS)
}
