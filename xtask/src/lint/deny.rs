//! cargo-deny on what we depend on. `deny.toml` has the rules: licences, bans, sources, advisories.
//!
//! Advisories are in a repository of their own, which not every machine reaches: where it cannot be fetched, that is
//! said, and is no failure.
//!
//! Invariant: before cargo-deny is believed, it has complained of everything that is wrong in [`sample`].

mod sample;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};

use crate::support::refusal::refuse;
use crate::support::{cargo, paths};

/// What became of the advisories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advisories {
    /// None is about a dependency.
    LookedAt,
    /// The database cannot be had, and why.
    NotHad(String),
}

/// What is asked for what needs no database.
const RULES: [&str; 3] = ["bans", "licenses", "sources"];

/// How long fetching the database may take, in seconds: a network may swallow what is sent to it.
const PATIENCE: &str = "120";

/// cargo-deny, told where things are.
struct Deny {
    program: PathBuf,
    /// The Cargo.toml.
    manifest: PathBuf,
    config: PathBuf,
    /// Further environment variables.
    environment: Vec<(String, String)>,
}

/// Checks all dependencies with the cargo-deny in `program`.
pub fn check(program: &Path) -> Result<Advisories> {
    let root = paths::root();
    let manifest = root.join("Cargo.toml");
    let config = root.join("deny.toml");
    fetch()?;
    sample::is_complained_of(program, &manifest, &config)?;
    let deny = Deny {
        program: program.to_owned(),
        manifest,
        config,
        environment: Vec::new(),
    };
    if let Some(complaints) = deny.rules(&["--locked"])? {
        return Err(bad(complaints));
    }
    match deny.advisories()? {
        Ok(advisories) => Ok(advisories),
        Err(complaints) => Err(bad(complaints)),
    }
}

/// Has cargo download what other systems need, too: a build here downloads less, and cargo-deny asks of all.
fn fetch() -> Result<()> {
    let fetched = run(cargo::command().args(["fetch", "--locked", "--quiet"]))?;
    ensure!(
        fetched.status.success(),
        "cargo fetch --locked: {}",
        text(&fetched)
    );
    Ok(())
}

fn bad(complaints: String) -> anyhow::Error {
    refuse("a dependency is not as it should be")
        .found(complaints)
        .expected("what deny.toml asks for")
        .remedy("do without it, take another version, or change deny.toml with a reason")
        .into()
}

impl Deny {
    /// What it says of licences, bans and sources, if anything.
    fn rules(&self, options: &[&str]) -> Result<Option<String>> {
        let mut command = self.command(options);
        complaints(&run(command.arg("check").args(RULES))?)
    }

    /// What it says of advisories; `Err` has the complaints.
    fn advisories(&self) -> Result<Result<Advisories, String>> {
        let mut fetch = Command::new("timeout");
        fetch.args(["--kill-after=10", PATIENCE]);
        fetch.arg(&self.program);
        let fetched = run(self
            .options(&mut fetch, &["--locked"])
            .args(["fetch", "db"]))?;
        if !fetched.status.success() {
            let said = text(&fetched);
            let why = said
                .lines()
                .rfind(|it| !it.trim().is_empty())
                .map_or_else(|| format!("not within {PATIENCE} s"), str::to_owned);
            return Ok(Ok(Advisories::NotHad(why)));
        }
        // What is there is not fetched again, so that a failure is an advisory.
        let mut command = self.command(&["--locked", "--offline"]);
        let complaints = complaints(&run(command.args(["check", "advisories"]))?)?;
        Ok(complaints.map_or(Ok(Advisories::LookedAt), Err))
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.options(&mut command, options);
        command
    }

    fn options<'c>(&self, command: &'c mut Command, options: &[&str]) -> &'c mut Command {
        command
            .args(["--color=never", "--manifest-path"])
            .arg(&self.manifest)
            .arg("--config")
            .arg(&self.config)
            .args(options)
            // Nobody is there to be asked for a password.
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
    }
}

fn run(command: &mut Command) -> Result<Output> {
    let shown = format!("{command:?}");
    command.output().with_context(|| format!("running {shown}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing where all is well.
fn complaints(output: &Output) -> Result<Option<String>> {
    if output.status.success() {
        return Ok(None);
    }
    let said = text(output);
    ensure!(
        !said.trim().is_empty(),
        "cargo-deny ended with {} and said nothing",
        output.status
    );
    Ok(Some(said))
}
