//! `cargo xtask gpu`: prepares a run on a machine with a GPU but no compiler.
//!
//! `programs` compiles, `plot` draws the results; the run itself is tests/gpu, in Python. Both work on given
//! folders, so that the packed program needs no checkout.

mod programs;

use anyhow::Result;

use crate::cli::gpu::{Command, Gpu};
use crate::programs::BENCH;

pub fn run(args: &Gpu) -> Result<()> {
    match &args.command {
        Command::Programs(args) => programs::run(args),
        Command::Plot(words) => match BENCH.hand_on(&["gpu", "plot"], words)? {},
    }
}

pub mod plot {
    pub use crate::bench::plot as draw;
}
