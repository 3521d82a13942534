//! A key: what decides a program's memory. It names a plan's file, and is the file's first line, so that people can read it.
//!
//! The rest of the file is the plan, as a run with a file of its own writes it. Pure.
//!
//! Invariants: equal keys have equal names, on every machine and from every build (FNV-1a of the key's JSON, whose order is that of
//! the fields here); a name is safe in a path.

use std::collections::BTreeSet;
use std::hash::Hasher as _;

use fnv::FnvHasher;
use serde::{Deserialize, Serialize};

use crate::{Command, Launch, Role};

/// The longest first line that is read: 1 MiB.
pub const MOST_HEAD: usize = 1 << 20;

/// The longest part of a file's name that says which program it is of.
const MOST_PROGRAM: usize = 40;

/// Which memory a plan is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Pinned host memory.
    Pinned,
    /// A GPU's memory.
    Device,
}

impl Memory {
    /// The variable that says where its plan is.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Pinned => "BUDDY_PLAN",
            Self::Device => "BUDDY_DEVICE_PLAN",
        }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Which memory.
    pub memory: Memory,
    /// The script's base name, the module's, `-c`, or a program's.
    pub program: String,
    /// A hash of what it is, as [`Command::content`] says.
    pub content: Option<String>,
    /// Arguments that decide memory.
    pub arguments: Vec<String>,
    /// How many processes work together.
    pub world_size: usize,
    /// What this one does among them.
    pub role: Role,
    /// Which of its machine's it is, of device memory alone, where its role does not say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_rank: Option<usize>,
    /// PyTorch's version.
    pub torch: String,
    /// Pinbuddy's.
    pub pinbuddy: String,
    /// The smallest request that is planned, in MiB, where that is set.
    pub threshold_mb: Option<usize>,
    /// The model of the GPU, of device memory alone, where it is known.
    pub device: Option<String>,
}

/// What is before a key in its line.
const HEAD: &str = r#"{"format":"pinbuddy-key","version":1,"key":"#;

impl Key {
    /// Of pinned memory, for a process with this release of PyTorch.
    pub fn pinned(command: Command, launch: Launch, torch: &str, threshold_mb: Option<usize>) -> Self {
        Self {
            memory: Memory::Pinned,
            program: command.program,
            content: command.content,
            arguments: command.arguments,
            world_size: launch.world_size,
            role: launch.role,
            local_rank: None,
            torch: torch.to_owned(),
            pinbuddy: env!("CARGO_PKG_VERSION").to_owned(),
            threshold_mb,
            device: None,
        }
    }

    /// The same program's, of the memory of this kind of device.
    pub fn on_device(self, launch: Launch, device: Option<String>) -> Self {
        Self {
            memory: Memory::Device,
            local_rank: Some(launch.local_rank).filter(|it| *it > 1),
            // Plans of device memory have thresholds of their own.
            threshold_mb: None,
            device,
            ..self
        }
    }

    /// The name, without the ending of its file: the program, which memory, and a hash of the whole key.
    pub fn name(&self) -> String {
        let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_');
        let program: String = self.program.chars().filter(is_plain).collect();
        let program = program.trim_start_matches('.');
        let end = program.len().min(MOST_PROGRAM);
        let program = match &program[..end] {
            "" => "program",
            some => some,
        };
        let memory = match self.memory {
            Memory::Pinned => "pinned",
            Memory::Device => "device",
        };
        format!("{program}-{memory}-{}", hash(&[self.json().as_bytes()]))
    }

    /// The first line of its file.
    pub fn head(&self) -> String {
        format!("{HEAD}{}}}\n", self.json())
    }

    /// The key in a text's first line.
    pub fn read(text: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let json = line.strip_prefix(HEAD)?.strip_suffix('}')?;
        serde_json::from_str(json).ok()
    }

    /// In what another key differs, as `name`, this one's, the other's.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let fields = |key: &Self| match serde_json::to_value(key) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (own, others) = (fields(self), fields(other));
        let names: BTreeSet<&String> = own.keys().chain(others.keys()).collect();
        let differs = |name: &String| {
            let [own, other] = [&own, &others].map(|it| it.get(name).unwrap_or(&serde_json::Value::Null));
            (own != other).then(|| (name.clone(), own.to_string(), other.to_string()))
        };
        names.into_iter().filter_map(differs).collect()
    }

    fn json(&self) -> String {
        // Text and numbers: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A text without the key in its first line, if there is one.
pub fn body(text: &str) -> &str {
    match text.starts_with(HEAD) {
        true => text.split_once('\n').map_or("", |(_, body)| body),
        false => text,
    }
}

/// FNV-1a of these parts, in hexadecimal digits.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = FnvHasher::default();
    for part in parts {
        hasher.write(part);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Launch = Launch { world_size: 1, role: Role::First, local_rank: 0 };

    /// A key of a program with these arguments.
    pub(crate) fn key(program: &str, arguments: &[&str]) -> Key {
        let command = Command {
            program: program.to_owned(),
            content: Some("00000000000000aa".to_owned()),
            arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
        };
        Key::pinned(command, ALONE, "2.15.0", None)
    }

    #[test]
    fn a_name_is_the_same_in_every_build() {
        let key = Key { pinbuddy: "0.1.0".to_owned(), ..key("train.py", &["--batch", "8"]) };
        assert_eq!(key.name(), "train.py-pinned-1e443638463e9f70");
        let device = key.on_device(ALONE, Some("NVIDIA H100".to_owned()));
        assert_eq!(device.name(), "train.py-device-7ab74d80af97872d");
    }

    #[test]
    fn whatever_differs_gives_another_name() {
        let one = key("train.py", &["--batch", "8"]);
        let mut names = vec![one.name()];
        let edits: [fn(&mut Key); 9] = [
            |it| it.program.push('x'),
            |it| it.content = Some("00000000000000ab".to_owned()),
            |it| it.arguments[1] = "16".to_owned(),
            |it| it.world_size = 2,
            |it| it.role = Role::Other,
            |it| it.local_rank = Some(2),
            |it| it.torch = "2.11.0".to_owned(),
            |it| it.pinbuddy.push('1'),
            |it| it.threshold_mb = Some(4),
        ];
        for edit in edits {
            let mut other = one.clone();
            edit(&mut other);
            assert_eq!(one.differences(&other).len(), 1);
            names.push(other.name());
        }
        let on = |device: Option<&str>, local_rank| {
            let launch = Launch { local_rank, ..ALONE };
            one.clone().on_device(launch, device.map(str::to_owned)).name()
        };
        names.extend([on(Some("A100"), 0), on(Some("H100"), 0), on(None, 0), on(None, 2), on(None, 3)]);
        assert_eq!(on(None, 0), on(None, 1), "their roles differ");
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    proptest! {
        #[test]
        fn a_name_is_safe_and_a_head_is_read_as_it_was_written(program in ".{0,80}", arguments in prop::collection::vec(".{0,20}", 0..4)) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let key = key(&program, &arguments);
            let name = key.name();
            prop_assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it)), "{name}");
            prop_assert!(!name.starts_with('.') && name.len() <= MOST_PROGRAM + 24, "{name}");
            let text = format!("{}the plan\n", key.head());
            prop_assert_eq!(Key::read(&text), Some(key));
            prop_assert_eq!(body(&text), "the plan\n");
        }

        #[test]
        fn no_text_is_read_as_a_key_by_mistake(text in ".{0,200}") {
            prop_assert_eq!(Key::read(&text), None);
            prop_assert_eq!(body(&text), text.as_str());
        }
    }
}
