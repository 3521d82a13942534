//! A machine's files, below a root that tests choose. Knows formats, not meanings.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Most files fit, and then they are read at once: the kernel does not say how long they are.
const USUAL: usize = 1 << 12;
/// No more is read of one.
const MOST: u64 = 1 << 24;

/// The files of one machine.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// Those below `root`.
    pub fn below(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// A whole file, without the line break at its end; `None` if it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// The same, or why it cannot be read. What is no UTF-8, in the name of a process for instance, is replaced.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        let mut bytes = Vec::with_capacity(USUAL);
        File::open(self.root.join(path))?.take(MOST).read_to_end(&mut bytes)?;
        bytes.truncate(bytes.trim_ascii_end().len());
        Ok(String::from_utf8(bytes).unwrap_or_else(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()))
    }

    /// Where a link leads.
    pub(crate) fn link(&self, path: &str) -> Option<PathBuf> {
        fs::read_link(self.root.join(path)).ok()
    }

    /// A file that is one number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, in order of the number that they end in.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten();
        let mut names: Vec<_> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| (last_number(name), name.clone()));
        names
    }

    /// Whether there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

fn last_number(name: &str) -> u64 {
    let head = name.trim_end_matches(|it: char| it.is_ascii_digit());
    name[head.len()..].parse().unwrap_or(0)
}

/// What follows `label` on its line, as in `MemTotal:  100 kB`.
pub fn field<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    Some(line.trim())
}

/// The same for a number of KiB, in bytes.
pub fn kib_field(text: &str, label: &str) -> Option<u64> {
    let number: u64 = field(text, label)?.strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

/// Writes the files of a made-up machine: each line is a line of a file's, behind its path. For tests.
pub fn made_up(root: &Path, text: &str) {
    use std::io::Write as _;
    for line in text.lines() {
        let (path, line) = line.split_once(" =").unwrap();
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = File::options();
        let mut file = file.create(true).append(true).open(path).unwrap();
        writeln!(file, "{}", line.trim_start().replace("\\t", "\t")).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let root = tempfile::tempdir().unwrap();
        for name in ["node10", "node2", "online"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let names = Files::below(root.path()).names("");
        assert_eq!(names, ["online", "node2", "node10"]);
    }

    #[test]
    fn numbers_of_kib() {
        let text = "Node 0 MemTotal:       64 kB\nHugepagesize:    2048 kB\n";
        assert_eq!(kib_field(text, "Hugepagesize:"), Some(2 << 20));
        assert_eq!(kib_field(text, "Node 0 MemTotal:"), Some(64 << 10));
        assert_eq!(kib_field(text, "MemFree:"), None);
    }
}
