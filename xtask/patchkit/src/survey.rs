//! Where a series' hunks belong in files that may have changed since they were written.
//!
//! Each hunk is looked for below the ones before it, which are put in as far as they were found. What
//! is not there is skipped and its nearest match reported. Reports; what applies is git's to decide.
//! Invariant: line numbers are those of the file as it came, whatever was put in meanwhile.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::hunk::{FileDiff, Hunk, Line};

/// How far around the best match a line that has moved a little is looked for.
const AROUND: usize = 12;

/// One hunk and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// The patch, by its file name.
    pub patch: String,
    /// The upstream path.
    pub file: String,
    /// From 1, in the patch and file.
    pub hunk: usize,
    /// The place.
    #[serde(flatten)]
    pub place: Place,
}

/// Where a hunk's lines are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum Place {
    /// All where the patch has them.
    Unchanged {
        /// The first, from 1.
        line: usize,
    },
    /// All together, but elsewhere.
    Moved {
        /// The first, from 1.
        line: usize,
        /// How many lines further down than the patch has them.
        by: isize,
    },
    /// Not all: upstream changed what the hunk relies on.
    Changed {
        /// Where most of them are.
        line: usize,
        /// How many lines further down than the patch has them.
        by: isize,
        /// How many are at their places there.
        matching: usize,
        /// Of how many.
        of: usize,
        /// Those that are nowhere near.
        lost: Vec<String>,
    },
    /// Nothing like them is left.
    Gone,
}

impl Place {
    /// Whether git would apply the hunk there.
    pub fn is_found(&self) -> bool {
        matches!(self, Self::Unchanged { .. } | Self::Moved { .. })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unchanged { line } => write!(f, "unchanged, at line {line}"),
            Self::Moved { line, by } => write!(f, "moved to line {line}, {}", Off(*by)),
            Self::Gone => write!(f, "nothing like its lines is in the file"),
            Self::Changed {
                line,
                by,
                matching,
                of,
                lost,
            } => {
                let off = Off(*by);
                write!(
                    f,
                    "nearest match at line {line}, {off}: {matching} of {of} lines"
                )?;
                if lost.is_empty() {
                    return write!(f, ", others come between");
                }
                lost.iter()
                    .try_for_each(|text| write!(f, "\n  gone: {}", text.trim()))
            }
        }
    }
}

/// How far off, in words.
struct Off(isize);

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.0.abs() == 1 { "line" } else { "lines" };
        match self.0 {
            0 => write!(f, "where it is expected"),
            by if by > 0 => write!(f, "{by} {lines} further down"),
            by => write!(f, "{} {lines} further up", -by),
        }
    }
}

/// A file while hunks are put in.
struct Text {
    /// Lines, and which number each had; none for those put in.
    lines: Vec<(String, Option<usize>)>,
    /// Hunks that were skipped: where, and by how much the file is shorter for that.
    skipped: Vec<(usize, isize)>,
}

/// Looks for every hunk of patches, in order, in `files` by their upstream paths.
pub(crate) fn survey(
    patches: &[(&str, Vec<FileDiff>)],
    files: &BTreeMap<String, Vec<u8>>,
) -> Vec<Spot> {
    let mut texts: BTreeMap<&str, Text> = BTreeMap::new();
    for (path, bytes) in files {
        let text = String::from_utf8_lossy(bytes);
        let numbered = text.lines().zip(1..);
        let lines = numbered.map(|(line, number)| (line.to_owned(), Some(number)));
        let (lines, skipped) = (lines.collect(), Vec::new());
        texts.insert(path, Text { lines, skipped });
    }
    let mut spots = Vec::new();
    for (patch, diffs) in patches {
        for diff in diffs {
            let Some(text) = texts.get_mut(diff.path.as_str()) else {
                continue;
            };
            spots.extend(diff.hunks.iter().zip(1..).map(|(hunk, number)| Spot {
                patch: (*patch).to_owned(),
                file: diff.path.clone(),
                hunk: number,
                place: text.put_in(hunk),
            }));
        }
    }
    spots
}

impl Text {
    /// Puts a hunk in where it belongs, or skips it.
    fn put_in(&mut self, hunk: &Hunk) -> Place {
        let skew: isize = self
            .skipped
            .iter()
            .filter(|(start, _)| *start <= hunk.new_start)
            .map(|(_, growth)| growth)
            .sum();
        let expected = hunk.new_start.cast_signed() - 1 - skew;
        let before: Vec<&str> = hunk.before().collect();
        let starts = 0..=self.lines.len().saturating_sub(before.len());
        let away = |start: usize| (start.cast_signed() - expected).unsigned_abs();
        let whole = starts
            .clone()
            .filter(|start| self.matching(*start, &before) == before.len())
            .min_by_key(|start| away(*start));
        if let Some(start) = whole {
            let (line, by) = (self.line(start), start.cast_signed() - expected);
            self.replace(start, hunk);
            return match by {
                0 => Place::Unchanged { line },
                by => Place::Moved { line, by },
            };
        }
        self.skipped.push((hunk.new_start, hunk.growth()));
        let weight = |start: usize| self.weight(start, &before);
        let best = starts.max_by_key(|start| (weight(*start), usize::MAX - away(*start)));
        let Some(start) = best.filter(|start| weight(*start) > before.len()) else {
            return Place::Gone;
        };
        Place::Changed {
            line: self.line(start),
            by: start.cast_signed() - expected,
            matching: self.matching(start, &before),
            of: before.len(),
            lost: self.lost(start, &before),
        }
    }

    /// How many of `before` are where they would be if the first were at `start`.
    fn matching(&self, start: usize, before: &[&str]) -> usize {
        self.pairs(start, before)
            .filter(|(here, line)| here == line)
            .count()
    }

    /// The same, but a line that says something counts for more than all braces and blanks do.
    fn weight(&self, start: usize, before: &[&str]) -> usize {
        let one = |line: &str| {
            if is_telling(line) {
                before.len() + 1
            } else {
                1
            }
        };
        self.pairs(start, before)
            .filter(|(here, line)| here == line)
            .map(|(_, line)| one(line))
            .sum()
    }

    fn pairs<'a>(
        &'a self,
        start: usize,
        before: &'a [&'a str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let here = self.lines[start..].iter().map(|(line, _)| line.as_str());
        here.zip(before.iter().copied())
    }

    /// Lines that say something and are not near `start`.
    fn lost(&self, start: usize, before: &[&str]) -> Vec<String> {
        let from = start.saturating_sub(AROUND);
        let to = (start + before.len() + AROUND).min(self.lines.len());
        let near = &self.lines[from..to];
        let lost = before
            .iter()
            .filter(|line| is_telling(line) && !near.iter().any(|(here, _)| here == *line));
        lost.map(|line| (*line).to_owned()).collect()
    }

    /// The number of a line in the file as it came.
    fn line(&self, start: usize) -> usize {
        let mut numbers = self.lines[start..].iter().filter_map(|(_, number)| *number);
        numbers.next().unwrap_or(self.lines.len())
    }

    fn replace(&mut self, start: usize, hunk: &Hunk) {
        let mut old = self.lines.split_off(start).into_iter();
        for line in &hunk.lines {
            match line {
                Line::Context(_) => self.lines.extend(old.next()),
                Line::Removed(_) => drop(old.next()),
                Line::Added(text) => self.lines.push((text.clone(), None)),
            }
        }
        self.lines.extend(old);
    }
}

fn is_telling(line: &str) -> bool {
    line.chars().filter(|it| it.is_alphanumeric()).count() > 3
}

#[cfg(test)]
mod tests;
