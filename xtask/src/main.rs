//! The build tool: reads the command line and dispatches to one file per command.

#![allow(unreachable_pub, reason = "in a program, pub says what a module offers the others")]

mod bench;
mod build_plugin;
mod cli;
mod patch;
mod programs;
mod runtime;
mod sanitize;
mod sim;
mod source_build;
mod test;
mod venv;

use std::process::ExitCode;

use build_wheel::plan::Plan;
use clap::Parser as _;
use cli::Command;
use programs::script;
use support::{disk, failure};
use xtask_build as build_wheel;
use xtask_python as python;
use xtask_support as support;
use xtask_wheel as wheel;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let result = support::scratch::clean_up_when_interrupted().and_then(|()| match &cli.command {
        Command::BuildWheel(args) => match &args.source {
            Some(tree) => source_build::run(args, tree),
            None => build(args),
        },
        Command::BuildPlugin(args) => build_plugin::run(args),
        Command::Patch(args) => patch::run(args),
        Command::Venv(args) => venv::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Test(args) => test::run(args),
        Command::UpstreamPr(words) => match script("upstream_pr", &[], words)? {},
        Command::Bench(words) => match bench::run(words)? {},
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::say(&error);
            ExitCode::FAILURE
        }
    }
}

fn build(args: &cli::BuildWheel) -> anyhow::Result<()> {
    if args.dry_run {
        let plan = Plan::make(&args.wanted)?;
        disk::require_writable(&plan.out)?;
        print!("{}", plan.describe());
        return Ok(());
    }
    build_wheel::build(&args.wanted)?.print(args.json)
}
