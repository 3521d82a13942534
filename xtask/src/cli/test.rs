//! The command line of `test`.

use std::path::PathBuf;

use clap::Args;

/// Options of `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Run only what needs no torch wheel: Rust tests and snapshots
    #[arg(long)]
    pub quick: bool,
    /// Test the fork of this torch release, without what is the same for all releases
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["quick", "real"])]
    pub torch: Option<String>,
    /// Run only the fork's tests, on this machine's GPU, without those that need the simulator; with --source (the
    /// release's tag, whole or only the tests: ci/upstream-checkout.sh) PyTorch's own, too
    #[arg(long, conflicts_with = "quick")]
    pub real: bool,
    /// Also run what proves a release rather than a change, or explores: slow tests and more random programs, most timing
    /// tests, all Python tests with the fork wheel, and with programs started instead of forked, a second build for equal bytes,
    /// PyTorch's own tests with the seam alone and with the fork disabled, the CMake of source builds, the library under
    /// sanitizers, and the GPU run tried in the simulator
    #[arg(long, conflicts_with_all = ["quick", "real"])]
    pub all: bool,
    /// Run only the table's rows whose names contain TEXT, and what they need
    #[arg(long, value_name = "TEXT", conflicts_with = "quick")]
    pub only: Option<String>,
    /// A PyTorch source tree to take PyTorch's own tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
}
