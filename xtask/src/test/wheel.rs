//! Tests of a fork wheel as a file.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::build_wheel::plan::Plan;
use crate::build_wheel::summary::Summary;
use crate::build_wheel::{self, Options, Wanted, fetch};
use crate::python::tools;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::tally::Tally;
use crate::wheel::provenance::Provenance;

/// An independent reader compares the fork wheel with the official one, and so one with defaults and a link, which has the same library.
pub fn invariants(args: &Wanted, built: &Summary) -> Result<Tally> {
    let mut tally = checked(args, built, &[])?;
    let out = Scratch::folder(&paths::target().join("wheel/with-defaults"))?;
    let args = Wanted {
        options: Options {
            default: vec!["BUDDY_LOG=info".into(), "BUDDY_PLAN=a \\ \"b\"".into()],
            build: Some(7),
            project_url: vec!["Source=https://git.example/torch".into()],
            ..Options::plain(&args.options.python, out.path())
        },
        ..args.clone()
    };
    let other = build_wheel::build(&args)?;
    // The build has read every byte back; what defaults change is looked at once more.
    let only = ["additions", "versions", "defaults"];
    tally.add(checked(&args, &other, &only)?);
    let [plain, with] = [&built.path, &other.path].map(|path| Provenance::read(path));
    let (plain, with) = (plain?, with?);
    let is_named = other.version != built.version && with.inputs.defaults.len() == 2;
    let is_named = is_named && with.inputs.links.len() == 1 && with.inputs.build == Some(7);
    tally.add(Tally::one().checked(is_named && with.library_sha256 == plain.library_sha256));
    Ok(tally)
}

/// What that reader finds, with these options.
fn checked(args: &Wanted, built: &Summary, options: &[&str]) -> Result<Tally> {
    let plan = Plan::make(args)?;
    let tools = tools::ensure(&plan.python)?;
    let (official, _) = fetch::cached(&plan.cache, &plan.release, &plan.python)
        .context("the official wheel is no longer in the cache")?;
    let mut command = Command::new(&tools.python);
    command.arg(paths::root().join("tests/python/check_wheel.py")).arg(&built.path).arg(official).args(options);
    let output = command.stderr(Stdio::inherit()).output()?;
    let results: BTreeMap<String, Option<String>> = serde_json::from_slice(&output.stdout)?;
    let failed = results.iter().filter(|(_, problem)| problem.is_some());
    let names: Vec<_> = failed.map(|(name, _)| name.clone()).collect();
    Ok(Tally { passed: results.len() - names.len(), failed: names.len(), names, ..Tally::default() }
        .checked(output.status.success()))
}

/// Builds again from scratch, and compares.
pub fn reproducible(args: &Wanted, first: &Summary) -> Result<Tally> {
    let folder = paths::target().join("wheel");
    let out = Scratch::folder(&folder.join("again"))?;
    let fresh = Scratch::folder(&folder.join("cargo-again"))?;
    let second = build_wheel::build(&Wanted {
        wheel: None,
        options: Options::plain(&args.options.python, out.path()),
        cargo: Some(fresh.path().to_path_buf()),
        ..args.clone()
    })?;
    same("two builds differ", &second.sha256, &first.sha256)
}

/// One test: two wheels or libraries have one hash.
pub fn same(what: &str, found: &str, expected: &str) -> Result<Tally> {
    if found == expected {
        return Ok(Tally::one());
    }
    Err(refuse(what).found(format!("SHA-256 {found}")).expected(format!("SHA-256 {expected}")).into())
}
