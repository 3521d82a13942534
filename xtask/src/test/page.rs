//! The report's page in a real browser, a headless Chromium that travels in an npm package, so that nothing is installed;
//! and PyTorch's memory_viz in the same browser, with a snapshot that the report wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::programs::TOOLS;
use crate::support::progress::Progress;
use crate::support::tally::Tally;
use crate::upstream;

use super::npm::{self, Package};
use super::unittest;

const CHROMIUM: Package = Package {
    called: "chromium",
    package: "@sparticuz/chromium@147.0.0",
    integrity: "sha512-4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ==",
};

/// What memory_viz draws with, in the version that it imports.
const D3: Package = Package {
    called: "d3",
    package: "d3@5.16.0",
    integrity: "sha512-4PL5hHaHwX4m7Zr1UapXW23apo6pexCgdetdJ5kTmADpG/7T9Gkxw0M0tf/pjoB63ezCCm0u5UaFYy2aMt0Mcw==",
};

/// Files of the package, and what they are unpacked to.
const UNPACK: &str = "const { readFileSync, writeFileSync } = require('fs');
const { brotliDecompressSync } = require('zlib');
for (const [from, to] of [['chromium', 'chromium'], ['al2023.tar', 'libraries.tar']])
    writeFileSync(to, brotliDecompressSync(readFileSync(`package/bin/${from}.br`)), { mode: 0o755 });";

/// Opens pages, moves their sliders, and looks for complaints. Skipped where there is no npm. `source` is a tree of
/// PyTorch's, with its memory_viz; without it Debian's package has one.
pub fn in_a_browser(python: &Path, source: Option<&Path>) -> Result<Tally> {
    let shell = Shell::new()?;
    if !npm::is_there(&shell) {
        eprintln!("skipped: there is no npm, which a browser for tests is fetched with");
        return Ok(Tally {
            skipped: 1,
            ..Tally::default()
        });
    }
    let chromium = Progress::new(1).step("get Chromium", |_| chromium(&shell))?;
    let mut command = Command::new(python);
    command
        .env("PINBUDDY_TOOLS", TOOLS.ensure()?)
        .env("PINBUDDY_CHROMIUM", chromium);
    let viewer = Progress::new(1).step("get memory_viz", |step| upstream::viewer(source, step))?;
    // A tree that somebody names may be without it.
    if viewer.is_file() {
        command
            .env("PINBUDDY_MEMORY_VIZ", viewer)
            .env("PINBUDDY_D3", d3(&shell)?);
    }
    unittest::discover(command, "tests/page")
}

/// The folder of the program and its libraries.
fn chromium(shell: &Shell) -> Result<PathBuf> {
    CHROMIUM.ensure(shell, |shell| {
        cmd!(shell, "node -e {UNPACK}")
            .quiet()
            .run()
            .context("unpacking Chromium")?;
        cmd!(shell, "tar -xf libraries.tar").quiet().run()?;
        shell.remove_path("libraries.tar")?;
        Ok(())
    })
}

/// Its script.
fn d3(shell: &Shell) -> Result<PathBuf> {
    let folder = D3.ensure(shell, |shell| {
        shell.copy_file("package/dist/d3.js", "d3.js")?;
        Ok(())
    })?;
    Ok(folder.join("d3.js"))
}
