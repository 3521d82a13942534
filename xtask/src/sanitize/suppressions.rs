//! What a sanitizer is told to say nothing of: a line each of `tests/sanitize/suppressions`, with its reason above it.
//!
//! A line that nothing matches any more is an error: the sanitizer says at the end of each run which ones it used.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::Sanitizer;
use crate::support::paths;
use crate::support::refusal::refuse;

/// The file of a sanitizer's, where it has one.
pub fn file(sanitizer: Sanitizer) -> PathBuf {
    paths::root().join(format!(
        "tests/sanitize/suppressions/{}.txt",
        sanitizer.name()
    ))
}

/// Which of them were used.
pub struct Seen {
    unused: Vec<String>,
    file: PathBuf,
}

impl Seen {
    /// None yet.
    pub fn read(sanitizer: Sanitizer) -> Result<Self> {
        let file = file(sanitizer);
        let text =
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let lines = text
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with('#'));
        let unused: Vec<String> = lines.map(str::to_owned).collect();
        ensure!(
            unused.iter().all(|it| it.contains(':')),
            "{}: each line is KIND:NAME",
            file.display()
        );
        Ok(Self { unused, file })
    }

    /// Crosses off those that a run used.
    pub fn take(&mut self, said: &str) {
        self.unused.retain(|line| {
            !said
                .lines()
                .any(|it| it.trim_end().ends_with(line.as_str()))
        });
    }

    /// An error where a line is stale.
    pub fn finish(self) -> Result<()> {
        if self.unused.is_empty() {
            return Ok(());
        }
        Err(refuse("a suppression is stale")
            .found(self.unused.join("\n"))
            .expected("each line to match something in a run")
            .remedy(format!("delete it from {}", paths::show(&self.file)))
            .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_no_run_used_is_named() {
        let seen = |said: &str| {
            let unused = vec!["race:one".to_owned(), "race:two".to_owned()];
            let mut seen = Seen {
                unused,
                file: PathBuf::from("thread.txt"),
            };
            seen.take(said);
            seen.finish().map_err(|it| it.to_string())
        };
        let all = "ThreadSanitizer: Matched 2 suppressions (pid=1):\n3 race:one\n1 race:two\n";
        assert_eq!(seen(all), Ok(()));
        assert!(seen("3 race:one").unwrap_err().contains("race:two"));
    }

    #[test]
    fn each_sanitizer_has_a_file() {
        for sanitizer in Sanitizer::ALL {
            Seen::read(sanitizer).unwrap();
        }
    }
}
