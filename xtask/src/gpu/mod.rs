//! `cargo xtask gpu`: prepares a run on a machine with a GPU but no compiler; the run itself is tests/gpu, in Python.

mod programs;

use anyhow::Result;

use crate::cli::gpu::{Command, Gpu};

pub fn run(args: &Gpu) -> Result<()> {
    match &args.command {
        Command::Programs(args) => programs::run(args),
    }
}
