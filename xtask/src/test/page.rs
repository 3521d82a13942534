//! The report's page in a real browser: a headless Chromium that travels in an npm package, so that nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::programs::TOOLS;
use crate::support::paths;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;

use super::unittest;

const PACKAGE: &str = "@sparticuz/chromium@147.0.0";
const INTEGRITY: &str = "sha512-4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ==";

/// Files of the package, and what they are unpacked to.
const UNPACK: &str = "const { readFileSync, writeFileSync } = require('fs');
const { brotliDecompressSync } = require('zlib');
for (const [from, to] of [['chromium', 'chromium'], ['al2023.tar', 'libraries.tar']])
    writeFileSync(to, brotliDecompressSync(readFileSync(`package/bin/${from}.br`)), { mode: 0o755 });";

/// Opens pages, moves their sliders, and looks for complaints. Skipped where there is no npm.
pub fn in_a_browser(python: &Path) -> Result<Tally> {
    let shell = Shell::new()?;
    let has = |program: &str| {
        cmd!(shell, "{program} --version")
            .quiet()
            .ignore_stderr()
            .read()
            .is_ok()
    };
    if !has("npm") || !has("node") {
        eprintln!("skipped: there is no npm, which a browser for tests is fetched with");
        return Ok(Tally {
            skipped: 1,
            ..Tally::default()
        });
    }
    let chromium = Progress::new(1).step("get Chromium", |_| ensure(&shell))?;
    let mut command = Command::new(python);
    command
        .env("PINBUDDY_TOOLS", TOOLS.ensure()?)
        .env("PINBUDDY_CHROMIUM", chromium);
    unittest::discover(command, "tests/page")
}

/// The folder of the program and its libraries, fetched if missing.
fn ensure(shell: &Shell) -> Result<PathBuf> {
    let (name, version) = PACKAGE
        .rsplit_once('@')
        .context("a package with its version")?;
    let folder = paths::target()
        .join("tools")
        .join(format!("chromium-{version}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let scratch = Scratch::folder(&folder)?;
    let _inside = shell.push_dir(scratch.path());
    let packed = cmd!(shell, "npm pack --json --silent {PACKAGE}")
        .quiet()
        .ignore_stderr()
        .read();
    let packed = packed.with_context(|| format!("npm cannot fetch {PACKAGE}"))?;
    let packed: serde_json::Value = serde_json::from_str(&packed).context("what npm pack says")?;
    let found = packed[0]["integrity"].as_str().unwrap_or_default();
    if found != INTEGRITY {
        return Err(refuse(format!("{name} {version} is not what it was"))
            .found(found)
            .expected(INTEGRITY)
            .remedy("npm cache clean --force, then run the same command again")
            .into());
    }
    let file = packed[0]["filename"]
        .as_str()
        .context("the name of what npm packed")?;
    cmd!(shell, "tar -xzf {file}").quiet().run()?;
    cmd!(shell, "node -e {UNPACK}")
        .quiet()
        .run()
        .context("unpacking Chromium")?;
    cmd!(shell, "tar -xf libraries.tar").quiet().run()?;
    for rest in [file, "package", "libraries.tar"] {
        let rest = scratch.path().join(rest);
        if rest.is_dir() {
            fs::remove_dir_all(rest)
        } else {
            fs::remove_file(rest)
        }?;
    }
    scratch.publish(&folder)?;
    Ok(folder)
}
