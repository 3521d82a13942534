//! Where a plan is read and written: the file that a variable names, or one that is kept by what this process is (`auto`).
//!
//! Of a kept one, the store decides the folder, the name and what goes; here is what a process says of itself. Its file begins with
//! the key, in a line; behind it is what a named file has. Knows no kind of plan.
//!
//! Invariants: whatever fails costs one line, and the program goes on without a plan; a program that has no key is told so in a
//! milestone alone, since nobody has asked for its plan; no folder is made before there is a plan to write; nothing is read or
//! written in a folder that is another user's or that others may write, where a name could be a trap.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use pinbuddy_plan::file::MadeFor;
use pinbuddy_store::{AUTO, Command, Disk, Folder, Key, Launch, Memory, Role, devices, words};
use serde::Serialize;
use serde_json::{Value, json};

use super::Choice;
use super::unusable::{ANOTHER, Unusable, is_plan, text};
use crate::config::{self, Config};
use crate::log;
use crate::record::place;
use crate::surroundings;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    pub(super) kept: Option<Arc<InFolder>>,
}

#[derive(Debug)]
pub(super) struct InFolder {
    folder: Folder,
    key: Key,
    /// Whether the last run found that the plan which this run uses does not fit.
    pub(super) was_marked: AtomicBool,
}

/// What to do about a folder of kept plans.
pub(crate) const TO_DO: &str = "set BUDDY_PLAN_DIR to one that this user may write to";

impl Place {
    /// The file that a variable names.
    pub fn named(path: PathBuf) -> Self {
        Self { path, kept: None }
    }

    /// Of a variable with this value; `None` where there is none, or where `auto` finds no key.
    ///
    /// # Errors
    ///
    /// Why `auto` has no folder, as a line.
    pub(crate) fn of(
        value: Option<&str>,
        memory: Memory,
        config: &Config,
        torch: &str,
    ) -> Result<Option<Self>, String> {
        match value {
            Some(AUTO) if config.disable.value => Ok(None),
            Some(AUTO) => Self::kept(memory, config, torch),
            other => Ok(other.map(|name| Self::named(place::path(name)))),
        }
    }

    fn kept(memory: Memory, config: &Config, torch: &str) -> Result<Option<Self>, String> {
        // Read once: a program may be long, and both memories ask.
        static HERE: OnceLock<Option<Command>> = OnceLock::new();
        let command = HERE.get_or_init(|| Command::of(&words(), &Disk));
        Self::of_command(command.clone(), memory, config, torch)
    }

    fn of_command(
        command: Option<Command>,
        memory: Memory,
        config: &Config,
        torch: &str,
    ) -> Result<Option<Self>, String> {
        let Some(command) = command else {
            let why = "the command line does not say which program this is: name a file";
            log::info(|| no_effect(memory, why));
            return Ok(None);
        };
        let variable = |name: &str| std::env::var(name).ok();
        let folder = Folder::of(config.plan_dir.value.as_deref(), variable).ok_or_else(|| {
            let why = "none of BUDDY_PLAN_DIR, XDG_CACHE_HOME and HOME names a folder: set BUDDY_PLAN_DIR";
            no_effect(memory, why)
        })?;
        check(folder.path()).map_err(|why| no_effect(memory, &why))?;
        let launch = Launch::of(variable);
        let key = Key::pinned(command, launch, torch, config.planned_from_mb());
        let key = match memory {
            Memory::Pinned => key,
            Memory::Device => key.on_device(launch, devices()),
        };
        Ok(Some(Self::keep(folder, key)))
    }

    fn keep(folder: Folder, key: Key) -> Self {
        Self {
            path: folder.file(&key),
            kept: Some(Arc::new(InFolder { folder, key, was_marked: AtomicBool::new(false) })),
        }
    }

    /// Whether it is one that was chosen here.
    pub fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether what is there is replaced, whatever it is: a file with a name that nobody else chooses.
    pub(super) fn is_ours(&self) -> bool {
        // Not what a link leads to, and nothing that this user may not read.
        let is_file = |path| fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
        self.is_kept() && is_file(&self.path) && fs::File::open(&self.path).is_ok()
    }

    /// The run, whose plan may be another rank's of the same role.
    pub(crate) fn run(&self, run: MadeFor) -> MadeFor {
        let Some(kept) = &self.kept else {
            return run;
        };
        MadeFor {
            world_size: u32::try_from(kept.key.world_size).unwrap_or(u32::MAX),
            rank: u32::from(kept.key.role == Role::Other),
            ..run
        }
    }

    /// Whether a file with this text is of this place's key.
    pub(super) fn check(&self, text: &str) -> Result<(), Unusable> {
        match &self.kept {
            Some(kept) if Key::read(text).as_ref() != Some(&kept.key) => {
                Err(Unusable::stale(&"its first line is not this program's key"))
            }
            _ => Ok(()),
        }
    }

    /// The text there, which a plan may replace. It may not where the program has put a file of its own at the name of its user's plan;
    /// a kept name nobody else has.
    pub(super) fn text_to_replace(&self) -> io::Result<Option<String>> {
        let why = match text(&self.path) {
            Err(_) if self.is_kept() => return Ok(None),
            Ok(there) if self.is_kept() || there.as_deref().is_none_or(is_plan) => return Ok(there),
            Ok(_) => format!("a file that is no plan came there meanwhile: {ANOTHER}"),
            Err(Unusable { why, to_do }) => format!("{why}: {}", to_do.unwrap_or(ANOTHER)),
        };
        Err(io::Error::other(why))
    }

    /// Whether there may be a file: the folder of a kept one is not made before it is needed, and may be no folder.
    pub(super) fn has_folder(&self) -> bool {
        self.kept.as_ref().is_none_or(|it| it.folder.path().is_dir())
    }

    /// The plan is used.
    pub(super) fn touch(&self) {
        if let Some(kept) = &self.kept {
            let is_marked = Folder::touch(&self.path);
            kept.was_marked.store(is_marked, Ordering::Relaxed);
        }
    }

    /// A file is to be written: its folder is made.
    pub(super) fn prepare(&self) -> Result<(), String> {
        let mut to_do = "name a file in a folder that this user may write to";
        if let Some(kept) = &self.kept {
            to_do = TO_DO;
            // What is wrong then is said of the folder.
            let made = kept.folder.make();
            made.map_err(|why| {
                let folder = kept.folder.path().display();
                format!("its folder {folder} cannot be made ({why}): {TO_DO}")
            })?;
            // Somebody else may have made it first.
            check(kept.folder.path())?;
        }
        place::may_create(&self.path, to_do)
    }

    /// The file to replace. A link that a user has named stays one, and its file is replaced; nobody makes one of a kept name.
    pub(super) fn real(&self) -> PathBuf {
        let real = (!self.is_kept()).then(|| fs::canonicalize(&self.path).ok());
        real.flatten().unwrap_or_else(|| self.path.clone())
    }

    /// What a file has before its plan.
    pub(super) fn head(&self) -> String {
        let key = self.kept.as_ref().map(|it| it.key.head());
        key.unwrap_or_default()
    }

    /// A file was written: others go, if there are too many.
    pub(super) fn trim(&self) {
        if let Some(kept) = &self.kept {
            kept.folder.trim(&self.path);
        }
    }
}

/// Why `auto` chooses no file.
fn no_effect(memory: Memory, why: &str) -> String {
    format!("{}=auto has no effect: {why}", memory.variable())
}

/// Whether this folder may be used, if it is there.
fn check(folder: &Path) -> Result<(), String> {
    let Ok(found) = fs::metadata(folder) else {
        return Ok(());
    };
    config::trusted(&found, surroundings::user()).map_err(|why| {
        let folder = folder.display();
        format!("its folder {folder} is not used: {why}. BUDDY_PLAN_DIR names another")
    })
}

/// What `auto` chose for one kind of memory, for people and `stats()`.
#[cfg_attr(not(feature = "torch"), allow(dead_code))]
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chosen {
    /// The file.
    file: PathBuf,
    /// `used`, `new` (this run is to write it), or `none`.
    state: &'static str,
}

#[cfg_attr(not(feature = "torch"), allow(dead_code))]
impl Chosen {
    /// What becomes of the file at this place, if it was chosen here.
    pub(crate) fn of<P>(choice: &Choice<P>, place: Option<&Place>) -> Option<Self> {
        let place = place.filter(|it| it.is_kept())?;
        let state = match choice {
            Choice::Nothing => "none",
            Choice::Use(_) => "used",
            Choice::Record(_) => "new",
        };
        let file = place.path.clone();
        Some(Self { file, state })
    }

    /// One line for people, of each memory.
    pub(crate) fn say(pinned: Option<&Self>, device: Option<&Self>) {
        for (memory, chosen) in [(Memory::Pinned, pinned), (Memory::Device, device)] {
            if let Some(Self { file, state }) = chosen {
                let variable = memory.variable();
                log::info(|| format!("{variable}=auto: {} is {state}", file.display()));
            }
        }
    }

    /// The same for programs.
    pub(crate) fn show(pinned: Option<&Self>, device: Option<&Self>) -> Value {
        json!({ "pinned": pinned, "device": device })
    }
}

#[cfg(test)]
pub(super) mod tests;
