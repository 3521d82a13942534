//! Lines that a compiler made code of, and whether they ran in any of the programs.
//!
//! Lines of tests are left out: files and folders called tests, modules behind `#[cfg(test)]`, and in other files each item behind `#[cfg(test)]`, which
//! ends where its indentation says. Sources are as rustfmt leaves them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use anyhow::{Context as _, Result};

use crate::support::paths;

/// A part of the sources.
pub struct Part {
    /// What to call it.
    pub name: &'static str,
    /// Its folders in the checkout.
    pub folders: &'static [&'static str],
    /// How many hundredths of its lines have to run.
    pub at_least: u64,
}

impl Part {
    fn has(&self, file: &str) -> bool {
        let rest = |folder: &&str| file.strip_prefix(*folder);
        let mut rests = self.folders.iter().filter_map(rest);
        rests.any(|it| it.starts_with('/'))
    }
}

#[derive(Debug, Default)]
struct File {
    /// Lines that are left out.
    of_tests: Vec<Range<u64>>,
    /// Each line with code, and whether it ran.
    ran: BTreeMap<u64, bool>,
}

/// All files of the parts, by their paths in the checkout.
pub struct Lines {
    parts: &'static [Part],
    files: BTreeMap<String, File>,
}

impl Lines {
    /// Of these parts, and nothing is known yet.
    pub fn of(parts: &'static [Part]) -> Self {
        Self {
            parts,
            files: BTreeMap::new(),
        }
    }

    /// Adds what a program says of a file. `path` is as its compiler had it: the checkout's part is looked for in it. What
    /// is in none of the parts, or of tests, is left out.
    pub fn add(&mut self, path: &str, seen: impl IntoIterator<Item = (u64, bool)>) -> Result<()> {
        let Some(name) = self.in_the_checkout(path) else {
            return Ok(());
        };
        let file = match self.files.entry(name) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let text = fs::read_to_string(paths::root().join(new.key()))
                    .with_context(|| format!("reading {}, which was compiled", new.key()))?;
                new.insert(File {
                    of_tests: of_tests(&text),
                    ran: BTreeMap::new(),
                })
            }
        };
        for (number, ran) in seen {
            if !file.of_tests.iter().any(|it| it.contains(&number)) {
                *file.ran.entry(number).or_default() |= ran;
            }
        }
        Ok(())
    }

    fn in_the_checkout(&self, path: &str) -> Option<String> {
        let folders = self.parts.iter().flat_map(|part| part.folders);
        let mut starts = folders.filter_map(|folder| path.find(&format!("{folder}/")));
        let name = &path[starts.next()?..];
        (!is_of_tests(name)).then(|| name.to_owned())
    }

    /// How many lines a part has, and how many of them ran.
    pub fn count(&self, part: &Part) -> (u64, u64) {
        let lines = self.files_of(part).flat_map(|(_, file)| file.ran.values());
        lines.fold((0, 0), |(all, ran), it| (all + 1, ran + u64::from(*it)))
    }

    /// Each file of a part with lines that did not run, and these.
    pub fn not_run(&self, part: &Part) -> impl Iterator<Item = (&str, String)> {
        self.files_of(part).filter_map(|(name, file)| {
            let missing = file.ran.iter().filter(|(_, ran)| !**ran);
            let numbers: Vec<String> = missing.map(|(number, _)| number.to_string()).collect();
            (!numbers.is_empty()).then(|| (name.as_str(), numbers.join(" ")))
        })
    }

    fn files_of(&self, part: &Part) -> impl Iterator<Item = (&String, &File)> {
        self.files.iter().filter(|(name, _)| part.has(name))
    }
}

/// Whether a file of the checkout is compiled for tests alone.
fn is_of_tests(name: &str) -> bool {
    if name.split('/').any(|it| it == "tests" || it == "tests.rs") {
        return true;
    }
    let Some((folder, stem)) = name.strip_suffix(".rs").and_then(|it| it.rsplit_once('/')) else {
        return false;
    };
    let parents = [
        format!("{folder}.rs"),
        format!("{folder}/mod.rs"),
        format!("{folder}/lib.rs"),
    ];
    parents.iter().any(|parent| {
        let text = fs::read_to_string(paths::root().join(parent)).unwrap_or_default();
        text.contains(&format!("#[cfg(test)]\nmod {stem};"))
    })
}

/// The lines of a Rust source that only tests have, counted from 1.
fn of_tests(text: &str) -> Vec<Range<u64>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.trim() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            let ends = |it: &&str| {
                let rest = it.strip_prefix(indent).unwrap_or_default();
                rest == "}" || rest.starts_with(char::is_alphabetic) && rest.ends_with([';', '}'])
            };
            let length = lines[at..]
                .iter()
                .position(ends)
                .unwrap_or(lines.len() - at);
            found.push(at as u64 + 1..(at + length) as u64 + 2);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: [Part; 1] = [Part {
        name: "engine",
        folders: &["rust-core/engine/src"],
        at_least: 95,
    }];

    #[test]
    fn a_line_runs_where_one_program_runs_it_and_tests_are_left_out() {
        let mut lines = Lines::of(&ENGINE);
        let file = "rust-core/engine/src/word.rs";
        lines
            .add(&format!("/a/b/{file}"), [(1, false), (2, false)])
            .unwrap();
        lines
            .add(&format!("pinbuddy/{file}"), [(2, true), (3, false)])
            .unwrap();
        lines
            .add("rust-core/engine/src/audit/tests.rs", [(1, false)])
            .unwrap();
        lines
            .add("/registry/anyhow/src/lib.rs", [(1, false)])
            .unwrap();
        assert_eq!(lines.count(&ENGINE[0]), (3, 1));
        let missing: Vec<_> = lines.not_run(&ENGINE[0]).collect();
        assert_eq!(missing, [(file, "1 3".to_owned())]);
        assert!(
            lines
                .add("rust-core/engine/src/gone.rs", [(1, true)])
                .is_err()
        );
    }

    #[test]
    fn a_module_behind_cfg_test_is_of_tests() {
        assert!(is_of_tests("cxx-bridge/src/backing/region/measured.rs"));
        assert!(!is_of_tests("cxx-bridge/src/backing/region.rs"));
        assert!(!is_of_tests("cxx-bridge/cpp/block.h"));
    }

    #[test]
    fn what_only_tests_have_ends_where_its_indentation_says() {
        let text = "fn a() {\n}\n#[cfg(test)]\nmod other;\nimpl A {\n    #[cfg(test)]\n    fn b() {\n        {\n        }\n    }\n    fn c() {}\n}\n#[cfg(test)]\nmod tests {\n    fn d() {}\n}\n";
        assert_eq!(of_tests(text), [3..5, 6..11, 13..17]);
    }
}
