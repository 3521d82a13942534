//! What is in a patch: files, and hunks of lines. Knows nothing of trees, and applies nothing.
//!
//! Invariant: a hunk has as many lines as its `@@` line says, so a signature below is no part of it.

use anyhow::{Context, Result, bail};

/// The changes of one patch to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The upstream path.
    pub path: String,
    /// In order.
    pub hunks: Vec<Hunk>,
}

/// One `@@` and the lines below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its first line before the change, from 1.
    pub old_start: usize,
    /// The same after the change.
    pub new_start: usize,
    /// In order.
    pub lines: Vec<Line>,
}

/// A line of a hunk, without its first character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// On both sides.
    Context(String),
    /// Only before.
    Removed(String),
    /// Only after.
    Added(String),
}

impl Hunk {
    /// The lines that must be there.
    pub fn before(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Removed(text) => Some(text.as_str()),
            Line::Added(_) => None,
        })
    }

    /// How many lines longer it makes the file.
    pub fn growth(&self) -> isize {
        let one = |line: &Line| match line {
            Line::Context(_) => 0,
            Line::Removed(_) => -1,
            Line::Added(_) => 1,
        };
        self.lines.iter().map(one).sum()
    }

    /// What takes it back.
    pub fn reversed(&self) -> Self {
        let lines = self.lines.iter().cloned().map(|line| match line {
            Line::Added(text) => Line::Removed(text),
            Line::Removed(text) => Line::Added(text),
            context @ Line::Context(_) => context,
        });
        Self {
            old_start: self.new_start,
            new_start: self.old_start,
            lines: lines.collect(),
        }
    }
}

/// Reads the text of a patch; what is not a diff is passed over.
pub fn parse(patch: &str) -> Result<Vec<FileDiff>> {
    let mut files: Vec<FileDiff> = Vec::new();
    let whole = patch.strip_suffix('\n').unwrap_or(patch);
    let mut lines = whole.split('\n').enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            let (path, hunks) = (path.to_owned(), Vec::new());
            files.push(FileDiff { path, hunks });
        }
        let Some(ranges) = line.strip_prefix("@@ -") else {
            continue;
        };
        let file = files
            .last_mut()
            .with_context(|| format!("line {}: a hunk before any file", number + 1))?;
        let (old, new) = ranges
            .split_once(" @@")
            .and_then(|(ranges, _)| ranges.split_once(" +"))
            .with_context(|| format!("line {}: no ranges in {line:?}", number + 1))?;
        let (old_start, mut old_left) = range(old)?;
        let (new_start, mut new_left) = range(new)?;
        let mut hunk = Hunk {
            old_start,
            new_start,
            lines: Vec::new(),
        };
        while old_left > 0 || new_left > 0 {
            let Some((number, line)) = lines.next() else {
                bail!("the last hunk ends early");
            };
            let (before, after, line) = match line.split_at_checked(1) {
                // Editors strip the blank of an empty context line.
                None => (1, 1, Line::Context(String::new())),
                Some((" ", text)) => (1, 1, Line::Context(text.to_owned())),
                Some(("-", text)) => (1, 0, Line::Removed(text.to_owned())),
                Some(("+", text)) => (0, 1, Line::Added(text.to_owned())),
                Some(("\\", _)) => continue,
                Some(_) => bail!("line {}: {line:?} in a hunk", number + 1),
            };
            if before > old_left || after > new_left {
                bail!("line {}: more lines than its @@ says", number + 1);
            }
            (old_left, new_left) = (old_left - before, new_left - after);
            hunk.lines.push(line);
        }
        file.hunks.push(hunk);
    }
    Ok(files)
}

/// `5,3` or `5`, which is one line.
fn range(text: &str) -> Result<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let number = |text: &str| {
        text.parse::<usize>()
            .with_context(|| format!("{text:?} in an @@ line"))
    };
    Ok((number(start)?, number(count)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "Subject: x\n\n--- a/A.h\n+++ b/A.h\n@@ -3,2 +3,3 @@ struct A {\n one\n-two\n+TWO\n+2\n\
        @@ -9 +10 @@\n-x\n+-- y\n--- /dev/null\n+++ b/B.h\n@@ -0,0 +1 @@\n+b\n-- \n2.40\n";

    #[test]
    fn files_hunks_and_lines() {
        let files = parse(PATCH).unwrap();
        let shape: Vec<_> = files
            .iter()
            .map(|file| (file.path.as_str(), file.hunks.len()))
            .collect();
        assert_eq!(shape, [("A.h", 2), ("B.h", 1)]);
        let hunk = &files[0].hunks[0];
        assert_eq!((hunk.old_start, hunk.new_start, hunk.growth()), (3, 3, 1));
        assert_eq!(hunk.before().collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(
            hunk.reversed().before().collect::<Vec<_>>(),
            ["one", "TWO", "2"]
        );
        assert_eq!(hunk.reversed().reversed(), *hunk);
        assert_eq!(files[0].hunks[1].lines[1], Line::Added("-- y".into()));
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        for broken in [
            "@@ -1 +1 @@\n-a\n+b\n",
            "+++ b/A.h\n@@ -1,2 +1 @@\n-a\n",
            "+++ b/A.h\n@@ -x +1 @@\n",
            "+++ b/A.h\n@@ -1,2 +1,2 @@\n a\n?\n",
            "+++ b/A.h\n@@ -1,2 +1,0 @@\n-a\n+b\n",
        ] {
            assert!(parse(broken).is_err(), "{broken:?}");
        }
    }
}
