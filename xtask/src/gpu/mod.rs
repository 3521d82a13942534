//! `cargo xtask gpu`: what a run on a machine with a GPU and nothing else needs from one with a compiler.
//!
//! `programs` compiles for it, `plot` draws what it has measured; the run itself is tests/gpu, in Python. Both work
//! on folders that are named to them: the packed program knows no checkout.

mod programs;

use anyhow::Result;

use crate::bench;
use crate::cli::gpu::{Command, Gpu};

/// The command.
pub fn run(args: &Gpu) -> Result<()> {
    match &args.command {
        Command::Programs(args) => programs::run(args),
        Command::Plot(words) => match bench::hand_on(&["gpu", "plot"], words)? {},
    }
}

/// What draws the plots of a run.
pub mod plot {
    pub use crate::bench::plot as draw;
}
