//! The report's page in a real browser: `tests/page`, whose conftest.py fetches the browser.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::pytest;
use crate::programs;
use crate::support::tally::Tally;

/// Opens pages, moves their sliders, and looks for complaints. Skipped where there is no npm. `source` is a tree of
/// PyTorch's, with its memory_viz; without it Debian's package has one.
pub fn in_a_browser(python: &Path, source: Option<&Path>) -> Result<Tally> {
    let mut command = pytest::command(Command::new(python), "tests/page");
    command
        .env("PINBUDDY_TOOLS", programs::tools()?)
        .env("PYTHONPATH", pytest::packages(python, &pytest::TWO)?);
    if let Some(source) = source {
        command.arg("--source").arg(std::path::absolute(source)?);
    }
    pytest::counted(pytest::by_file(&mut command))
}
