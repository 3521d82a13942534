//! `plans why`: which plans a command line has, and if there is none, which are near and in what they differ.
//!
//! Invariant: a command line has the keys here that its process has.

use std::fmt::{self, Display};
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pinbuddy_config::Config;
use pinbuddy_store::{Command, Disk, Folder, Kept, Key, Launch, Memory};
use serde::Serialize;

use super::{all, line, name, variable};
use crate::{cli, output};

/// So many near plans are shown of each memory.
const MOST_NEAR: usize = 3;

/// What a command line has of one memory.
#[derive(Debug, Serialize)]
struct Answer {
    memory: Memory,
    name: String,
    file: String,
    is_there: bool,
    key: Key,
    near: Vec<Near>,
}

/// Another plan of the same memory.
#[derive(Debug, Serialize)]
struct Near {
    name: String,
    /// What differs: its name, the command line's value, the plan's.
    differs: Vec<(String, String, String)>,
}

/// The command.
pub(super) fn run(folder: &Folder, config: &Config, asked: &cli::Why) -> Result<ExitCode> {
    let torch = asked.torch.as_deref();
    let torch = torch.context(
        "no torch is installed beside this command: name its version with --torch VERSION",
    )?;
    // Without what follows a plus sign, as runs know it.
    let torch = torch.split('+').next().unwrap_or_default();
    let command = Command::of(&started(&asked.command), &Disk);
    let command = command.context(
        "the command line does not say which program it starts: an interactive Python, and a process that multiprocessing spawns, have no plan by `auto`",
    )?;
    let launch = Launch::of(variable);
    let pinned = Key::pinned(command, launch, torch, config.planned_from_mb());
    let device = pinned.clone().on_device(pinbuddy_store::devices());
    let all = all(folder)?;
    let answers = [pinned, device].map(|key| answer(folder, key, &all));
    if asked.json {
        output::print(&(serde_json::to_string_pretty(&answers)? + "\n"))?;
    } else {
        let [pinned, device] = &answers;
        output::print(&format!("{pinned}{device}"))?;
    }
    match answers.iter().any(|it| it.is_there) {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// The words of the process that these start: of a Python script that is called by its path, the interpreter comes first.
fn started(words: &[String]) -> Vec<String> {
    let mut begin = [0; 64];
    let is_script = |path: &String| {
        let many = fs::File::open(Path::new(path))
            .and_then(|mut it| it.read(&mut begin))
            .unwrap_or(0);
        let text = String::from_utf8_lossy(&begin[..many]);
        let first = text.lines().next().unwrap_or_default();
        first.starts_with("#!") && first.contains("python")
    };
    let interpreter = words
        .first()
        .is_some_and(is_script)
        .then(|| "python".to_owned());
    interpreter
        .into_iter()
        .chain(words.iter().cloned())
        .collect()
}

fn answer(folder: &Folder, key: Key, all: &[Kept]) -> Answer {
    let file = folder.file(&key);
    let is_there = all.iter().any(|it| it.path == file && it.key == key);
    let others = all
        .iter()
        .filter(|it| it.key.memory == key.memory && it.key != key);
    let mut near: Vec<Near> = others
        .map(|it| Near {
            name: name(&it.path),
            differs: key.differences(&it.key),
        })
        .collect();
    near.sort_by_key(|it| it.differs.len());
    near.truncate(if is_there { 0 } else { MOST_NEAR });
    Answer {
        memory: key.memory,
        name: key.name(),
        file: file.display().to_string(),
        is_there,
        key,
        near,
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, there) = match (self.memory, self.is_there) {
            (Memory::Pinned, true) => ("BUDDY_PLAN", "there is a plan"),
            (Memory::Pinned, false) => ("BUDDY_PLAN", "there is no plan: the next run is recorded"),
            (Memory::Device, true) => ("BUDDY_DEVICE_PLAN", "there is a plan"),
            (Memory::Device, false) => (
                "BUDDY_DEVICE_PLAN",
                "there is no plan: the next run is recorded",
            ),
        };
        writeln!(f, "{memory}=auto: {there}")?;
        writeln!(f, "  key    {}", self.name)?;
        writeln!(f, "  counts {}", line(&self.key))?;
        for near in &self.near {
            writeln!(f, "  near   {}", near.name)?;
            for (what, own, other) in &near.differs {
                writeln!(f, "         {what}: here {own}, there {other}")?;
            }
        }
        Ok(())
    }
}
