//! The benchmark: a program that `cargo xtask` starts. It builds nothing itself.
//!
//! It is given two environments with torch, the harness and the simulator.

#![allow(
    unreachable_pub,
    reason = "in a program, pub says what a module offers the others"
)]

mod bench;
mod cli;

use std::process::ExitCode;

use clap::Parser as _;
use cli::Command;
use xtask_support::{failure, scratch};

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let result = scratch::clean_up_when_interrupted().and_then(|()| match &cli.command {
        Command::Bench(args) => bench::run(args),
        Command::Smoke(args) => bench::smoke(args),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            failure::say(&error);
            ExitCode::FAILURE
        }
    }
}
