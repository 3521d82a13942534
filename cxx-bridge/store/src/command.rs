//! A command line: which program it starts, and which of its arguments decide the program's memory.
//!
//! The program is its name and its content: a script's base name alone is the same for many programs, and its path differs between
//! machines. A script that was edited is another program. Arguments keep their order. Not among them: seeds, ranks, ports and
//! secrets. A path is `PATH`, since programs read other data from it and write other results to it; of a file of settings the
//! content counts, and of a model the last part of its name. Of results nothing counts, and a word without a slash is no path
//! unless its option says so: what a run leaves behind must not change the key of the next. Numbers and truths are never paths.
//!
//! Invariant: no text that looks like a secret stands here in clear, whatever its option is called. It counts by its hash, so that
//! two revisions of a model, which look alike, have two keys. Knows the disk through [`Look`] alone.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::key::hash;

mod kind;

use kind::Kind;

/// What is in the place of a path.
const PATH: &str = "PATH";

/// So many bytes of a file are looked at, and its length.
const MOST_CONTENT: u64 = 256 << 10;

/// How the text of a process begins that `multiprocessing` has spawned: nothing in it says which program it is.
const SPAWNED: &str = "from multiprocessing.";

/// Files of settings.
const SETTINGS: [&str; 6] = [".yaml", ".yml", ".json", ".toml", ".ini", ".cfg"];

/// How programs begin that run what a person types, or a notebook has.
const INTERACTIVE: [&str; 3] = ["ipykernel", "ipython", "colab_kernel"];

/// Text this long with no separator, of letters and digits, looks like a secret.
const LIKE_A_SECRET: usize = 20;

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
}

/// Files as they are.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Look for Disk {
    fn content(&self, path: &Path) -> Option<String> {
        // A pipe would be waited for.
        let found = path.metadata().ok().filter(fs::Metadata::is_file)?;
        let mut content = Vec::new();
        let file = File::open(path).ok()?;
        file.take(MOST_CONTENT).read_to_end(&mut content).ok()?;
        Some(hash(&[&content, &found.len().to_le_bytes()]))
    }
}

impl Command {
    /// Of these words, the first of which is the program as it was called; `None` if they do not say which program it is: an
    /// interactive Python or a notebook, a script on standard input or one that cannot be read, a process that
    /// `multiprocessing` has spawned, or a name that is no file's path, as Ray's workers have.
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
                let content = content.or_else(|| look.content(&main))?;
                (base(&path).to_owned(), Some(content))
            }
        };
        let name = program.to_ascii_lowercase();
        if INTERACTIVE.iter().any(|it| name.starts_with(it)) {
            return None;
        }
        Some(Self { program, content, arguments: arguments(rest, look) })
    }
}

/// The words of this process's command line; an empty one if that cannot be read.
pub fn words() -> Vec<String> {
    split(&fs::read("/proc/self/cmdline").unwrap_or_default())
}

/// Words as `/proc/PID/cmdline` has them.
fn split(text: &[u8]) -> Vec<String> {
    let words = text.strip_suffix(b"\0").unwrap_or(text).split(|it| *it == 0);
    let text = |it| String::from_utf8_lossy(it).into_owned();
    words.map(text).collect()
}

/// What people call the program of these words: its script or module, not its interpreter.
pub fn name(words: &[String]) -> String {
    let (first, rest) = words.split_first().unzip();
    let own = base(first.map_or("", String::as_str)).to_owned();
    match entry(rest.filter(|_| is_python(&own)).unwrap_or_default()) {
        Some((Entry::Module(name), _)) => name,
        Some((Entry::Script(path), _)) if !path.is_empty() => base(&path).to_owned(),
        _ => own,
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

/// The arguments that decide memory, as they count.
fn arguments(words: &[String], look: &impl Look) -> Vec<String> {
    let mut kept = Vec::new();
    // The option before, whose value may come.
    let mut before = ("", Kind::Plain);
    for word in words {
        let is_option = word.starts_with('-') && !is_number(word);
        let (name, inline) = match word.split_once('=') {
            Some((name, text)) if is_option || is_name(name) => (name, Some(text)),
            _ => (word.as_str(), None),
        };
        if !is_option && inline.is_none() {
            match std::mem::replace(&mut before, ("", Kind::Plain)) {
                (_, Kind::Seed) if is_number(word) || word.contains(['.', ':']) => {}
                (option, Kind::PerhapsSecret) if is_number(word) => {
                    kept.extend([option.to_owned(), word.clone()]);
                }
                (_, Kind::Secret | Kind::PerhapsSecret) => {}
                (_, kind) => kept.push(value(kind, word, look)),
            }
            continue;
        }
        let kind = Kind::of(name.trim_start_matches(['-', '+', '~']));
        before = match inline {
            None => (name, kind),
            Some(_) => ("", Kind::Plain),
        };
        match (kind, inline) {
            (Kind::PerhapsSecret, Some(text)) if is_number(text) => kept.push(word.clone()),
            (Kind::Seed | Kind::Secret | Kind::PerhapsSecret, _) => {}
            (_, None) => kept.push(clear(name)),
            (_, Some(text)) => kept.push(format!("{}={}", clear(name), value(kind, text, look))),
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
    if is_number(text) || matches!(text, "true" | "True" | "false" | "False") {
        return text.to_owned();
    }
    if kind != Kind::Output
        && SETTINGS.iter().any(|it| text.ends_with(it))
        && let Some(content) = look.content(Path::new(text))
    {
        return format!("{PATH}:{content}");
    }
    match kind {
        Kind::Model => clear(base(text)),
        Kind::Path | Kind::Output => PATH.to_owned(),
        _ if text.contains('/') => PATH.to_owned(),
        _ => clear(text),
    }
}

/// The text, or a hash of it if it looks like a secret.
fn clear(text: &str) -> String {
    let is_mixed = |it: &str| it.contains(|it: char| it.is_ascii_digit()) && it.contains(|it: char| it.is_alphabetic());
    let mut runs = text.split(|it: char| !it.is_alphanumeric());
    match runs.any(|it| it.len() >= LIKE_A_SECRET && is_mixed(it)) {
        true => format!("HASH:{}", hash(&[text.as_bytes()])),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
