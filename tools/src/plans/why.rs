//! `plans why`: which plans a command line has, and if there is none, which are near and in what they differ.
//!
//! Invariant: a command line has the keys here that its process has.

use std::env;
use std::fmt::{self, Display};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pinbuddy_config::Config;
use pinbuddy_store::{Command, Disk, Folder, Kept, Key, Launch, Memory};
use serde::Serialize;

use super::{all, line, name, variable};
use crate::{cli, output};

/// Starts programs, and has no plan.
const LAUNCHER: &str = "torchrun";
/// So many near plans are shown of each memory.
const MOST_NEAR: usize = 3;

/// What a command line has of one memory.
#[derive(Debug, Serialize)]
struct Answer {
    memory: Memory,
    name: String,
    file: String,
    is_there: bool,
    /// The last run with it found that it does not fit.
    is_marked: bool,
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
    let torch = torch.context("no torch is installed beside this command: name its version with --torch VERSION")?;
    // Without what follows a plus sign, as runs know it.
    let torch = torch.split('+').next().unwrap_or_default();
    let words = started(asked.command.clone(), variable("PATH").as_deref());
    let command = of(&words).with_context(|| refusal(&words))?;
    let launch = Launch::of(variable);
    let pinned = Key::pinned(command, launch, torch, config.planned_from_mb());
    let device = pinned.clone().on_device(launch, pinbuddy_store::devices());
    let all = all(folder)?;
    let answers = [pinned, device].map(|key| answer(folder, key, &all));
    if asked.json {
        output::print(&output::pretty(&answers)?)?;
    } else {
        let [pinned, device] = &answers;
        output::print(&format!("{pinned}{device}"))?;
    }
    Ok(output::ends(answers.iter().any(|it| it.is_there)))
}

/// The words of the process that these start: of a Python script that is called by its path, or by a name that is on `PATH`, the
/// interpreter comes first. Another program has its name as it was called.
fn started(mut words: Vec<String>, on: Option<&str>) -> Vec<String> {
    let Some(first) = words.first() else {
        return words;
    };
    let script = match first.contains('/') {
        true => Some(PathBuf::from(first)),
        false => on.and_then(|on| {
            let mut found = env::split_paths(on).map(|it| it.join(first));
            found.find(|it| it.is_file())
        }),
    };
    if let Some(script) = script.filter(|it| is_script(it)) {
        words[0] = script.to_string_lossy().into_owned();
        words.insert(0, "python".to_owned());
    }
    words
}

/// Whether it is a script that Python runs.
fn is_script(path: &Path) -> bool {
    // So much of the first line Linux reads.
    let mut begin = [0; 256];
    let many = fs::File::open(path).and_then(|mut it| it.read(&mut begin));
    let text = String::from_utf8_lossy(&begin[..many.unwrap_or(0)]);
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && first.contains("python")
}

/// The program that these words start; not the launcher, whose plan is none of the run's.
fn of(words: &[String]) -> Option<Command> {
    Command::of(words, &Disk).filter(|it| it.program != LAUNCHER)
}

/// Why these words have no key.
fn refusal(words: &[String]) -> String {
    if words.iter().take(2).any(|it| Path::new(it).ends_with(LAUNCHER)) {
        return format!(
            "{LAUNCHER} only starts the program: ask for a process that it starts, as by \
             `WORLD_SIZE=8 LOCAL_RANK=0 pinbuddy plans why -- python FILE ...`"
        );
    }
    let first = words.first().map_or("", String::as_str);
    match first.contains('/') || first.starts_with("python") {
        true => "the command line does not say which program it starts: no plan by `auto` have an interactive Python, a notebook, a process \
                 that multiprocessing spawns, and a file that cannot be read"
            .to_owned(),
        false => format!(
            "{first} is no Python script on PATH; another program has a plan by `auto` only if it is called by its path"
        ),
    }
}

fn answer(folder: &Folder, key: Key, all: &[Kept]) -> Answer {
    let file = folder.file(&key);
    let there = all.iter().find(|it| it.path == file && it.key == key);
    let is_there = there.is_some();
    let is_other = |it: &&Kept| it.key.memory == key.memory && it.key != key;
    let near = all.iter().filter(is_other).map(|it| Near { name: name(&it.path), differs: key.differences(&it.key) });
    let mut near: Vec<Near> = near.collect();
    near.sort_by_key(|it| it.differs.len());
    near.truncate(if is_there { 0 } else { MOST_NEAR });
    Answer {
        memory: key.memory,
        name: key.name(),
        file: file.display().to_string(),
        is_there,
        is_marked: there.is_some_and(|it| it.is_marked),
        key,
        near,
    }
}

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = match (self.is_there, self.is_marked) {
            (true, false) => "there is a plan",
            (true, true) => {
                "there is a plan that did not fit its last run: the next run that it does not fit removes it"
            }
            (false, _) => "there is no plan: the next run is recorded",
        };
        writeln!(f, "{}=auto: {there}", self.memory.variable())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_by_its_path_or_on_path_and_another_program_is_as_it_was_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let long = format!("#!/{}/bin/python3\nimport serve\n", "a".repeat(100));
        fs::write(at("serve"), long).unwrap();
        fs::write(at("train"), "\u{7f}ELF").unwrap();
        let path = format!("/none:{}", folder.path().display());
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |line: &str| started(words(line), Some(&path)).join(" ");
        let serve = format!("python {} model", at("serve"));
        assert_eq!(of("serve model"), serve);
        assert_eq!(of(&format!("{} model", at("serve"))), serve);
        for other in ["train --batch 8", "none", &at("train"), "python serve"] {
            assert_eq!(of(other), other);
        }
        let key = |line: &str| {
            let words = words(&of(line));
            super::of(&words).map(|it| it.program).ok_or_else(|| refusal(&words))
        };
        assert_eq!(key("serve model"), Ok("serve".to_owned()));
        assert_eq!(key(&at("train")), Ok("train".to_owned()));
        for name in ["train", "none"] {
            assert!(key(name).unwrap_err().starts_with(&format!("{name} is no Python script on PATH")));
        }
        fs::write(at(LAUNCHER), "#!/usr/bin/python3\n").unwrap();
        for line in [at(LAUNCHER), "torchrun".into(), format!("python {}", at(LAUNCHER))] {
            let said = key(&format!("{line} --nproc-per-node 8 train.py"));
            assert!(said.unwrap_err().contains("plans why -- python FILE"));
        }
        fs::remove_file(at(LAUNCHER)).unwrap();
        assert!(key("torchrun train.py").unwrap_err().contains("plans why -- python FILE"));
        assert!(key("python none.py").unwrap_err().contains("a file that cannot be read"));
    }
}
