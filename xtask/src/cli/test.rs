//! The command lines of `test`, `test-upstream` and `test-clients`.

use std::path::PathBuf;

use clap::Args;

/// Options of `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// Only what needs no torch wheel: Rust tests and snapshots
    #[arg(long)]
    pub quick: bool,
    /// The fork of this torch release, and nothing that is the same for all
    #[arg(long, value_name = "VERSION", conflicts_with_all = ["quick", "real"])]
    pub torch: Option<String>,
    /// The fork's tests on this machine's GPU, and nothing else; those of what only the simulator can
    /// do are skipped
    #[arg(long, conflicts_with = "quick")]
    pub real: bool,
    /// What proves a release rather than a change, too: a second build for equal bytes, the CMake of source
    /// builds, what runs on a GPU tried in the simulator, and the programs of Python tests started for real
    #[arg(long, conflicts_with_all = ["quick", "real"])]
    pub nightly: bool,
    /// Only the rows of the table whose names contain this, and what they need
    #[arg(long, value_name = "TEXT", conflicts_with = "quick")]
    pub only: Option<String>,
    /// A PyTorch source tree to take PyTorch's own tests from [default: Debian's 2.6.0 source package]
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
}

/// Options of `test-upstream`.
#[derive(Debug, Args)]
#[command(
    after_help = "--source with --real: the tag of the release, whole or only what the tests are in \
                        (ci/upstream-checkout.sh). What stock fails there, too, is shown, and no failure."
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
    /// On this machine's GPU instead of the simulator, with the tests of graphs and copies, too
    #[arg(long, requires = "source")]
    pub real: bool,
    /// Test the extension points alone, as `upstream-pr` proposes them, with the official wheel's libraries
    #[arg(long, conflicts_with_all = ["torch", "stock"])]
    pub seam: bool,
}

/// Options of `test-clients`.
#[derive(Debug, Args)]
#[command(
    after_help = "docs/clients.md says what each client is, what is compared, and what differs and why. A difference \
                  that tests/clients/differences.toml does not list is a failure, and so is a listed one that is no \
                  longer there."
)]
pub struct TestClients {
    /// The clients to run [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// The torch release; versions of libraries are chosen for the newest [default: the newest supported one]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// On this machine's GPU instead of the simulator
    #[arg(long)]
    pub real: bool,
    /// Write the table, and all that was compared, there as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The Python to make the environments with
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
}
