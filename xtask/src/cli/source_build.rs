//! The options of `build-wheel --source`.

use clap::{Args, ValueEnum};

/// Options of `build-wheel --source`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "With --source")]
pub struct SourceBuild {
    /// The GPUs to build kernels for, as TORCH_CUDA_ARCH_LIST takes them: 9.0, or 8.0;9.0
    #[arg(long, value_name = "LIST", requires = "source")]
    pub cuda_arch: Option<String>,
    /// The compiler cache [default: CMAKE_{C,CXX,CUDA}_COMPILER_LAUNCHER of the environment]
    #[arg(long, value_enum, requires = "source")]
    pub launcher: Option<Launcher>,
    /// How many compilers run at once [default: as cores and memory allow]
    #[arg(long, value_name = "N", requires = "source")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Build in the tree itself, and leave the series and the build there
    #[arg(long, requires = "source")]
    pub keep: bool,
}

/// A compiler cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// mozilla/sccache
    Sccache,
    /// ccache
    Ccache,
}

impl Launcher {
    /// The program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Sccache => "sccache",
            Self::Ccache => "ccache",
        }
    }
}
