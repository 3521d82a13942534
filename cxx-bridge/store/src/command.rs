//! A command line: which program it starts, and which of its arguments decide the program's memory.
//!
//! The program is its name and its content: a script's base name alone is the same for many programs, and its path differs between
//! machines. A script that was edited is another program. Arguments keep their order. Not among them: seeds, ranks, ports and
//! secrets. A path is `PATH`, since programs read other data from it and write other results to it; of a file of settings the
//! content counts, and of a model the last part of its name. Values of options for paths are `PATH`, whether there is a file or
//! not: the first run makes it. Numbers are never paths.
//!
//! Knows the disk through [`Look`] alone.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::key::hash;

/// What is in the place of a path.
const PATH: &str = "PATH";

/// So many bytes of a file are looked at, and its length.
const MOST_CONTENT: u64 = 256 << 10;

/// How the text of a process begins that `multiprocessing` has spawned: nothing in it says which program it is.
const SPAWNED: &str = "from multiprocessing.";

/// Files of settings.
const SETTINGS: [&str; 6] = [".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"];

/// Options that say nothing of memory, beside those whose name has `seed` in it.
const DROPPED: [&str; 6] = [
    "local_rank",
    "node_rank",
    "master_addr",
    "master_port",
    "rdzv_endpoint",
    "rdzv_id",
];

/// Words in names of options whose values are nobody's business.
const SECRET: [&str; 4] = ["token", "password", "secret", "key"];

/// How words end in names of options for paths.
const FOR_PATHS: [&str; 6] = ["dir", "path", "file", "folder", "output", "save"];

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The script's base name, the module's, `-c`, or a program's.
    pub program: String,
    /// A hash of the script, of the module if it lies in the working folder, of the text, or of a program's first 256 KiB.
    pub content: Option<String>,
    /// Arguments that decide memory.
    pub arguments: Vec<String>,
}

/// What is known of files.
pub trait Look {
    /// A hash of a regular file's content.
    fn content(&self, path: &Path) -> Option<String>;

    /// Whether there is anything at this path.
    fn exists(&self, path: &Path) -> bool;
}

/// Files as they are.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Look for Disk {
    fn content(&self, path: &Path) -> Option<String> {
        // A pipe would be waited for.
        let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let mut content = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MOST_CONTENT).read_to_end(&mut content).ok()?;
        Some(hash(&[&content, &found.len().to_le_bytes()]))
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}

impl Command {
    /// Of these words, the first of which is the program as it was called; `None` if they do not say which program it is: an
    /// interactive Python, a script on standard input, a process that `multiprocessing` has spawned, or a name that is no file's
    /// path, as Ray's workers have.
    pub fn of(words: &[String], look: &impl Look) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        if !is_python(first) {
            return Some(Self {
                program: base(first).to_owned(),
                content: Some(look.content(Path::new(first))?),
                arguments: arguments(rest, look),
            });
        }
        let (entry, rest) = entry(rest)?;
        let (program, content) = match entry {
            Entry::Text(text) if text.starts_with(SPAWNED) => return None,
            Entry::Text(text) => ("-c".to_owned(), Some(hash(&[text.as_bytes()]))),
            Entry::Module(name) => {
                let path = name.replace('.', "/");
                let files = [format!("{path}.py"), format!("{path}/__main__.py")];
                let content = files.iter().find_map(|it| look.content(Path::new(it)));
                (name, content)
            }
            Entry::Script(path) => {
                let main = Path::new(&path).join("__main__.py");
                let content = look.content(Path::new(&path));
                let content = content.or_else(|| look.content(&main));
                (base(&path).to_owned(), content)
            }
        };
        Some(Self {
            program,
            content,
            arguments: arguments(rest, look),
        })
    }
}

/// What Python runs.
enum Entry {
    Script(String),
    Module(String),
    Text(String),
}

fn is_python(program: &str) -> bool {
    base(program).starts_with("python")
}

/// The last part of a path.
fn base(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// What Python's own options lead to, and the arguments behind it; `None` if it reads a script from standard input.
fn entry(words: &[String]) -> Option<(Entry, &[String])> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let Some(options) = word.strip_prefix('-') else {
            return Some((Entry::Script(word.clone()), &words[at..]));
        };
        if options.is_empty() {
            return None;
        }
        if options.starts_with('-') {
            at += usize::from(options == "-check-hash-based-pycs");
            continue;
        }
        // The first letter that takes a value, which is the rest of the word or the next one.
        let Some(letter) = options.find(['c', 'm', 'W', 'X']) else {
            continue;
        };
        let (rest, taken) = match &options[letter + 1..] {
            "" => (words.get(at)?.as_str(), 1),
            rest => (rest, 0),
        };
        at += taken;
        match options.as_bytes()[letter] {
            b'c' => return Some((Entry::Text(rest.to_owned()), &words[at..])),
            b'm' => return Some((Entry::Module(rest.to_owned()), &words[at..])),
            _ => {}
        }
    }
    None
}

/// What an option's name says of its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Seed,
    Secret,
    Model,
    Path,
    Plain,
}

impl Kind {
    /// Of an option with this name, which has no dashes in front.
    fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase().replace('-', "_");
        let mut words = name.split(['_', '.']);
        let last = name.rsplit('.').next().unwrap_or(&name);
        if name.contains("seed") || DROPPED.contains(&last) {
            return Self::Seed;
        }
        if words.clone().any(|it| SECRET.contains(&it)) {
            return Self::Secret;
        }
        let is_out = words.clone().any(|it| matches!(it, "out" | "output"));
        if name.contains("model") && !is_out && !name.ends_with("dir") {
            return Self::Model;
        }
        let is_path = words.any(|word| FOR_PATHS.iter().any(|it| word.ends_with(it)));
        match is_path || is_out {
            true => Self::Path,
            false => Self::Plain,
        }
    }
}

/// The arguments that decide memory, as they count.
fn arguments(words: &[String], look: &impl Look) -> Vec<String> {
    let mut kept = Vec::new();
    // Of the option before, whose value may come.
    let mut before = Kind::Plain;
    for word in words {
        let is_option = word.starts_with('-') && !is_number(word);
        let (name, inline) = match word.split_once('=') {
            Some((name, text)) if is_option || is_name(name) => (name, Some(text)),
            _ => (word.as_str(), None),
        };
        if !is_option && inline.is_none() {
            let kind = std::mem::replace(&mut before, Kind::Plain);
            let is_dropped = match kind {
                Kind::Seed => is_number(word) || word.contains(['.', ':']),
                Kind::Secret => true,
                _ => false,
            };
            if !is_dropped {
                kept.push(value(kind, word, look));
            }
            continue;
        }
        let kind = Kind::of(name.trim_start_matches(['-', '+', '~']));
        before = match inline {
            None => kind,
            Some(_) => Kind::Plain,
        };
        match (kind, inline) {
            (Kind::Seed | Kind::Secret, _) => {}
            (_, None) => kept.push(name.to_owned()),
            (_, Some(text)) => kept.push(format!("{name}={}", value(kind, text, look))),
        }
    }
    kept
}

/// Whether `name=` may be an assignment, as Hydra's are.
fn is_name(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '~']);
    let rest = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') && text.chars().all(rest)
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// A value, as it counts.
fn value(kind: Kind, text: &str, look: &impl Look) -> String {
    let path = Path::new(text);
    if is_number(text) {
        return text.to_owned();
    }
    if SETTINGS.iter().any(|it| text.ends_with(it))
        && let Some(content) = look.content(path)
    {
        return format!("{PATH}:{content}");
    }
    match kind {
        Kind::Model => base(text).to_owned(),
        Kind::Path => PATH.to_owned(),
        _ if text.contains('/') || look.exists(path) => PATH.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
