//! The build tool's entry point: reads the command line and dispatches to one file per command.

#![allow(
    unreachable_pub,
    reason = "in a program, pub says what a module offers the others"
)]

mod bench;
mod build_plugin;
mod build_wheel;
mod cli;
mod clients;
mod doctor;
mod gpu;
mod lint;
mod matrix;
mod patch;
mod python;
mod release;
mod report;
mod runtime;
mod sim;
mod simulate;
mod source_build;
mod support;
mod test;
mod trace;
mod upstream;
mod upstream_pr;
mod venv;
mod wheel;

use std::process::ExitCode;

use clap::Parser as _;
use cli::Command;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let result = support::scratch::clean_up_when_interrupted().and_then(|()| match &cli.command {
        Command::BuildWheel(args) => match &args.source {
            Some(tree) => source_build::run(args, tree),
            None => build_wheel::run(args),
        },
        Command::BuildPlugin(args) => build_plugin::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Lint => lint::run(),
        Command::Patch(args) => patch::run(args),
        Command::Venv(args) => venv::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Matrix(args) => matrix::run(args),
        Command::Test(args) => test::run(args),
        Command::TestUpstream(args) => upstream::run(args),
        Command::TestClients(args) => clients::run(args),
        Command::UpstreamPr(args) => upstream_pr::run(args),
        Command::Gpu(args) => gpu::run(args),
        Command::Bench(args) => bench::run(args),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// What is wrong, and below it what that came from, innermost last.
fn report(error: &anyhow::Error) {
    let mut said = error.to_string();
    eprintln!("error: {said}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some causes only repeat what is within the one before.
        if !said.ends_with(&cause) {
            eprintln!("  because   {}", cause.replace('\n', "\n            "));
        }
        said = cause;
    }
    if error.chain().any(support::disk::is_full) {
        eprintln!("  to do     free some space, then run the same command again");
    }
}
