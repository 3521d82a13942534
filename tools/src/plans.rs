//! `plans`: the plans that `BUDDY_PLAN=auto` and `BUDDY_DEVICE_PLAN=auto` have made, and which of them a command line has.
//!
//! The folder, its files and their keys are the store's, which programs use as well. Reads of a plan only what `ls` shows of it.

mod why;

use std::env;
use std::fmt::{self, Display};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use pinbuddy_config::{Config, Surroundings, trusted};
use pinbuddy_plan::Plan;
use pinbuddy_plan::file::device::DevicePlan;
use pinbuddy_plan::file::{MOST_TEXT, NO_PLAN};
use pinbuddy_store::{Folder, Kept, Key, MOST_HEAD, body};
use serde::Serialize;

use crate::cli::{self, PlansAction};
use crate::output::{self, Output};
use crate::show;

/// The command.
///
/// # Errors
///
/// There is no such plan, or a file cannot be read or written.
pub fn run(args: &cli::Plans) -> Result<ExitCode> {
    let config = config(args.library.as_deref());
    let folder = folder(&config)?;
    match &args.action {
        PlansAction::Ls { json } => list(&folder, *json)?,
        PlansAction::Show { key, json } => show(&find(&folder, key)?, *json)?,
        PlansAction::Rm { keys } => remove(&folder, keys)?,
        PlansAction::Export { key, file } => export(&find(&folder, key)?, file)?,
        PlansAction::Import { file } => import(&folder, file)?,
        PlansAction::Why(asked) => return why::run(&folder, &config, asked),
    }
    Ok(ExitCode::SUCCESS)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|it| !it.is_empty())
}

/// What a program is set to here, with this library: the site's file and the wheel's count as well. The program says what is wrong
/// with them.
fn config(library: Option<&Path>) -> Config {
    let user = rustix::process::geteuid().as_raw();
    let library = library.map(Path::to_owned);
    Config::from_environment(&Surroundings { user, library }).0
}

fn folder(config: &Config) -> Result<Folder> {
    Folder::of(config.plan_dir.value.as_deref(), variable)
        .context("there is no folder of plans: none of BUDDY_PLAN_DIR, XDG_CACHE_HOME and HOME names one")
}

/// A plan, for people and programs.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    file: String,
    bytes: u64,
    used_seconds_ago: u64,
    key: Key,
}

impl Shown {
    fn of(kept: &Kept) -> Self {
        let ago = SystemTime::now().duration_since(kept.used);
        Self {
            name: name(&kept.path),
            file: kept.path.display().to_string(),
            bytes: kept.bytes,
            used_seconds_ago: ago.unwrap_or_default().as_secs(),
            key: kept.key.clone(),
        }
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { world_size, torch, .. } = &self.key;
        let (bytes, ago) = (show::bytes(self.bytes), ago(self.used_seconds_ago));
        let many = show::count_of(*world_size as u64, "process", "processes");
        write!(f, "{}  {bytes}, used {ago} ago, torch {torch}, {many}: {}", self.name, line(&self.key))
    }
}

/// The program with the arguments that count.
fn line(key: &Key) -> String {
    let words = [&key.program].into_iter().chain(&key.arguments);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn ago(seconds: u64) -> String {
    let units = [(86400, "day"), (3600, "hour"), (60, "minute")];
    match units.iter().find(|(unit, _)| seconds >= *unit) {
        Some((unit, noun)) => show::count(seconds / unit, noun),
        None => show::count(seconds, "second"),
    }
}

fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// For messages.
fn named(folder: &Folder) -> String {
    format!("the folder of plans, {}", folder.path().display())
}

fn all(folder: &Folder) -> Result<Vec<Kept>> {
    let why = || format!("{}, cannot be read", named(folder));
    folder.list().with_context(why)
}

fn list(folder: &Folder, json: bool) -> Result<()> {
    let all: Vec<Shown> = all(folder)?.iter().map(Shown::of).collect();
    if json {
        return output::print(&output::pretty(&all)?);
    }
    let bytes = all.iter().map(|it| it.bytes).sum();
    let many = show::count(all.len() as u64, "plan");
    let (bytes, path) = (show::bytes(bytes), folder.path().display());
    let end = format!("{many}, {bytes}, in {path}\n");
    let lines: String = all.iter().map(|it| format!("{it}\n")).collect();
    output::print(&(lines + &end))
}

/// The one plan with this name, or whose name begins or ends so.
fn find(folder: &Folder, asked: &str) -> Result<Kept> {
    let all = all(folder)?;
    if let Some(exact) = all.iter().find(|it| name(&it.path) == asked) {
        return Ok(exact.clone());
    }
    let is_near = |it: &&Kept| name(&it.path).starts_with(asked) || name(&it.path).ends_with(asked);
    let near: Vec<&Kept> = all.iter().filter(is_near).collect();
    match near[..] {
        [one] => Ok(one.clone()),
        [] => bail!("there is no plan {asked:?} in {}: `pinbuddy plans ls` lists all", folder.path().display()),
        _ => {
            let names: Vec<String> = near.iter().map(|it| name(&it.path)).collect();
            bail!("{asked:?} may be each of {}", names.join(", "))
        }
    }
}

fn show(kept: &Kept, json: bool) -> Result<()> {
    let shown = Shown::of(kept);
    if json {
        return output::print(&output::pretty(&shown)?);
    }
    let key = match serde_json::to_value(&kept.key)? {
        serde_json::Value::Object(key) => key,
        other => bail!("{other} is no key"),
    };
    let facts = match text(&kept.path) {
        Ok(text) => facts(&kept.key, &text),
        Err(why) => format!("{why:#}"),
    };
    let known = key.iter().filter(|(_, value)| !value.is_null());
    let row = |(name, value)| format!("  {name:<13} {value}\n");
    let rows: String = known.map(row).collect();
    output::print(&format!("{shown}\n  {:<13} {}\n{rows}  {:<13} {facts}\n", "file", shown.file, "plan"))
}

/// What a plan reserves, its slots, and of how many requests it is.
///
/// # Errors
///
/// Why there is none that can be used.
fn read(key: &Key, text: &str) -> Result<(u64, usize, u64)> {
    use pinbuddy_store::Memory::{Device, Pinned};
    let own = body(text);
    if own.starts_with(&format!(r#"{{"format":"{NO_PLAN}""#)) {
        bail!("nothing of this program's can be planned");
    }
    let read = match key.memory {
        Pinned => Plan::read(own).map(|it| (it.reserved(), it.slots.len(), it.facts.requests)),
        Device => DevicePlan::read(own).map(|it| {
            let plans = it.plans.iter().map(|(_, plan)| plan);
            let sums = plans.map(|it| (it.reserved(), it.slots.len(), it.facts.requests));
            sums.fold((0, 0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1, sum.2 + it.2))
        }),
    };
    Ok(read?)
}

/// The same, in a few words.
fn facts(key: &Key, text: &str) -> String {
    match read(key, text) {
        Ok((reserved, slots, requests)) => {
            let (bytes, slots) = (show::bytes(reserved), show::count(slots as u64, "slot"));
            format!("{bytes} in {slots}, of {}", show::count(requests, "recorded request"))
        }
        Err(why) => format!("none: {why}"),
    }
}

fn remove(folder: &Folder, keys: &[String]) -> Result<()> {
    // All of them are there, or none goes.
    let file = |key: &String| match folder.named(key) {
        Some(exact) => Ok(exact),
        None => find(folder, key).map(|it| it.path),
    };
    let found: Result<Vec<PathBuf>> = keys.iter().map(file).collect();
    for path in found? {
        match fs::remove_file(&path) {
            Err(why) if why.kind() != ErrorKind::NotFound => {
                return Err(why).with_context(|| format!("{} cannot be removed", path.display()));
            }
            _ => output::print(&format!("removed {}\n", name(&path)))?,
        }
    }
    Ok(())
}

/// The text of a plan's file, of a length that plans have.
fn text(path: &Path) -> Result<String> {
    let most = (MOST_TEXT + MOST_HEAD) as u64;
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|it| it.take(most + 1).read_to_string(&mut text));
    read.with_context(|| format!("{} cannot be read", path.display()))?;
    if text.len() as u64 > most {
        bail!("{} is longer than any plan", path.display());
    }
    Ok(text)
}

fn export(kept: &Kept, file: &Path) -> Result<()> {
    let text = text(&kept.path)?;
    let why = || format!("{} has no plan to export", kept.path.display());
    read(&kept.key, &text).with_context(why)?;
    put(file, &[&kept.path], &text)
}

fn put(file: &Path, inputs: &[&Path], text: &str) -> Result<()> {
    let out = Output::new(file, inputs)?.private();
    out.write(|to| std::io::Write::write_all(to, text.as_bytes()))
}

fn import(folder: &Folder, file: &Path) -> Result<()> {
    let text = text(file)?;
    let (key, shown, named) = (Key::read(&text), file.display(), named(folder));
    let key = key.with_context(|| format!("{shown} is no exported plan: its first line is no key"))?;
    read(&key, &text).with_context(|| format!("{shown} has no plan that can be used"))?;
    folder.make().with_context(|| format!("{named}, cannot be made"))?;
    let found = fs::metadata(folder.path());
    let found = found.with_context(|| format!("{named}, cannot be read"))?;
    if let Err(why) = trusted(&found, rustix::process::geteuid().as_raw()) {
        bail!("no program would use a plan in {named}: {why}");
    }
    let path = folder.file(&key);
    put(&path, &[], &text)?;
    folder.trim(&path);
    output::print(&format!("imported {}\n", key.name()))
}
