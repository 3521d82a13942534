//! Runs the fork's tests with the plug-in beside an official torch.
//!
//! The library is a debug build that asserts its invariants, such as no driver call under a lock (I5). The released
//! plug-in is checked to have the fork wheel's library, byte for byte, so that results for one hold for the other.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::fork::{self, Pass};
use super::{Ready, wheel};
use crate::build_plugin::{self, Summary as Plugin};
use crate::build_wheel::Options;
use crate::build_wheel::compile::Flavour;
use crate::build_wheel::summary::Summary;
use crate::cli;
use crate::support::paths;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;
use crate::venv;
use crate::wheel::provenance::Provenance;

/// The released plug-in: it has the fork wheel's library and, with `twice`, is the same in two builds.
pub fn wheel(torch: Option<&str>, python: &Path, fork: &Summary, twice: bool) -> Result<Tally> {
    let first = build(torch, python, Flavour::Wheel, &paths::root().join("dist"))?;
    let library = Provenance::read(&fork.path)?.library_sha256;
    let own = &first.of.libraries[0].sha256;
    let mut tally = wheel::same("the plug-in's library is not the fork's", own, &library)?;
    if twice {
        let again = Scratch::folder(&paths::target().join("wheel/again"))?;
        let second = build(torch, python, Flavour::Wheel, again.path())?;
        let what = "two builds of the plug-in differ";
        tally.add(wheel::same(what, &second.sha256, &first.sha256)?);
    }
    Ok(tally)
}

/// pytest with the debug build as a plug-in, without timing tests. A test fails if another library is loaded. With
/// `all` no program is forked (`tests/python/start.py`). `PINBUDDY_TEST_LIBRARY=coverage` has the library count its
/// lines (`ci/coverage.sh`).
pub fn python_tests(torch: Option<&str>, ready: &Ready<'_>) -> Result<Tally> {
    let (stock, python) = (&ready.stock, ready.python);
    let counts = env::var_os("PINBUDDY_TEST_LIBRARY").is_some_and(|it| it == "coverage");
    let (flavour, name) = match counts {
        true => (Flavour::Coverage, "coverage"),
        false => (Flavour::Debug, "plugin"),
    };
    let folder = paths::target().join("wheel").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let plugin = build(torch, python, flavour, &folder)?;
    let stock_name = stock.file_name().unwrap_or_default().to_string_lossy();
    let folder = stock.with_file_name(stock_name.replace("-stock-", &format!("-{name}-")));
    venv::share(stock, &folder)?;
    let wheel = plugin.path.display().to_string();
    venv::require(&folder, python, &[&wheel, "pytest", "pytest-xdist", "pyyaml"])?;
    fork::run(Pass::Behaviour, ready, &folder, |command| {
        command.env("PINBUDDY_EXPECT_DEBUG", "1").env("PINBUDDY_FORK_PYTHON", ready.fork.python());
    })
}

fn build(torch: Option<&str>, python: &Path, flavour: Flavour, out: &Path) -> Result<Plugin> {
    let args = cli::BuildPlugin {
        torch: torch.map(str::to_owned).into_iter().collect(),
        options: Options::plain(python, out),
        ..cli::BuildPlugin::default()
    };
    build_plugin::build(&args, flavour)
}
