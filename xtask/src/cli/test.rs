//! The command lines of `test`, `test-upstream` and `test-clients`.

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
    /// Run only the fork's tests, on this machine's GPU, without those that need the simulator
    #[arg(long, conflicts_with = "quick")]
    pub real: bool,
    /// Also run what proves a release rather than a change: a second build for equal bytes, the CMake of source
    /// builds, the GPU run tried in the simulator, and Python tests with programs started instead of forked
    #[arg(long, conflicts_with_all = ["quick", "real"])]
    pub nightly: bool,
    /// Run only the table's rows whose names contain TEXT, and what they need
    #[arg(long, value_name = "TEXT", conflicts_with = "quick")]
    pub only: Option<String>,
    /// A PyTorch source tree to take PyTorch's own tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
}

/// Options of `test-upstream`.
#[derive(Debug, Args)]
#[command(
    after_help = "With --real, --source needs the release's tag, whole or only the tests (ci/upstream-checkout.sh). A test \
                  that also fails with stock is shown, but is not a failure."
)]
pub struct TestUpstream {
    /// A PyTorch source tree to take the tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// The torch release to test [default: the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Test the official wheel only
    #[arg(long)]
    pub stock: bool,
    /// Use this machine's GPU instead of the simulator, and also run the tests of graphs and copies
    #[arg(long, requires = "source")]
    pub real: bool,
    /// Test the extension points alone, as `upstream-pr` proposes them, with the official wheel's libraries
    #[arg(long, conflicts_with_all = ["torch", "stock"])]
    pub seam: bool,
    /// Run the tests of device memory instead, with and without a plan
    #[arg(long, conflicts_with_all = ["torch", "stock", "real", "seam"])]
    pub device: bool,
}

/// Options of `test-clients`.
#[derive(Debug, Args)]
#[command(
    after_help = "docs/clients.md explains the clients, what is compared, and the known differences. A difference that \
                  tests/clients/differences.toml does not list is a failure, and so is a listed one that no longer \
                  exists."
)]
pub struct TestClients {
    /// The clients to run [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The torch release; versions of libraries are chosen for the newest [default: the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Use this machine's GPU instead of the simulator
    #[arg(long)]
    pub real: bool,
    /// Compare the fork with stock while one of ten calls to CUDA or the kernel fails
    #[arg(long, conflicts_with_all = ["torch", "real", "json", "python"])]
    pub faults: bool,
    /// Write the table, and everything that was compared, as JSON to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The Python to make the environments with
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}
