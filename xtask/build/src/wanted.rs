//! A request to build, which is also what the command line says of it.

use std::path::{Path, PathBuf};

use clap::Args;

/// A request to build a fork wheel.
#[derive(Clone, Debug, Default, Args)]
pub struct Wanted {
    /// The torch release to fork: 2.15.0, 2.15 or latest [default: the newest supported one, or the wheel's]
    #[arg(long, value_name = "VERSION")]
    pub torch: Option<String>,
    /// Use this official wheel instead of fetching one
    #[arg(long, value_name = "FILE")]
    pub wheel: Option<PathBuf>,
    /// The options of every wheel of ours.
    #[command(flatten)]
    pub options: Options,
    /// Where cargo works: an empty folder compiles everything
    #[arg(long, value_name = "DIR", hide = true)]
    pub cargo: Option<PathBuf>,
}

/// What a fork wheel and a plug-in have in common.
#[derive(Clone, Debug, Default, Args)]
pub struct Options {
    /// The Python that the wheel is for
    #[arg(long, value_name = "PY", default_value = "python3")]
    pub python: PathBuf,
    /// Where the wheel goes
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub out: PathBuf,
    /// Have the wheel set a variable where neither the environment nor the site's file does, any number of times
    #[arg(long, value_name = "NAME=VALUE")]
    pub default: Vec<String>,
    /// Add a link to METADATA, such as Source=https://git.example.com/torch, any number of times
    #[arg(long, value_name = "LABEL=URL")]
    pub project_url: Vec<String>,
    /// Number the build: of two builds of one version, pip takes the one with the higher number
    #[arg(long, value_name = "N")]
    pub build: Option<u32>,
}

impl Options {
    /// As on a command line with only these.
    pub fn plain(python: &Path, out: &Path) -> Self {
        Self { python: python.to_path_buf(), out: out.to_path_buf(), ..Self::default() }
    }
}
