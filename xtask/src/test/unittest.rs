//! Tests of Python's own `unittest`, found in a folder and counted.

use std::process::Command;

use anyhow::Result;

use crate::support::tally::{self, Tally};
use crate::support::{paths, relay};

/// Has `python`, a command that starts an interpreter, run the tests of a folder, which is given from the root on.
pub fn discover(mut python: Command, folder: &str) -> Result<Tally> {
    python
        .args(["-m", "unittest", "discover", "--verbose"])
        .arg("--start-directory")
        .arg(paths::root().join(folder))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let (text, success) = relay::run(&mut python)?;
    Ok(tally::unittest(&text).checked(success))
}
