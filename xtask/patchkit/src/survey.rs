//! Where a series' hunks belong in files that may have changed since the series was written.
//!
//! git only says that a hunk does not apply. This says where its lines moved to, or which of them are gone. Each
//! hunk that is found is put in before the next one is looked for; a hunk that is not found is skipped, and its
//! nearest match is reported. git decides what applies.
//! Invariant: line numbers are those of the file before anything was put in.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use diffy::{Hunk, Line};

use super::files::Files;
use super::git::Direction;
use super::place::{Place, Spot};
use super::series::{self, Diff, Patch};

/// How many lines around the nearest match are searched for a line that is not in its place.
const AROUND: usize = 12;

/// A file while hunks are put in.
struct Text {
    /// The lines with their numbers; a line that was put in has none.
    lines: Vec<(String, Option<usize>)>,
    /// Hunks that were skipped: where they start, and how many lines they would have added.
    skipped: Vec<(usize, isize)>,
}

/// Looks for every hunk of the patches, in this order, in `files`.
pub(crate) fn survey(order: &[&Patch], files: &Files, direction: Direction) -> Result<Vec<Spot>> {
    let mut survey = Survey::new(files);
    for Patch { name, path, .. } in order {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        survey.patch(name, &text, direction)?;
    }
    Ok(survey.spots)
}

struct Survey<'a> {
    texts: BTreeMap<&'a str, Text>,
    spots: Vec<Spot>,
}

impl<'a> Survey<'a> {
    fn new(files: &'a Files) -> Self {
        let present = files
            .iter()
            .filter_map(|(path, bytes)| Some((path, bytes.as_ref()?)));
        let texts = present.map(|(path, bytes)| (path.as_str(), Text::new(bytes)));
        Self {
            texts: texts.collect(),
            spots: Vec::new(),
        }
    }

    fn patch(&mut self, name: &str, text: &str, direction: Direction) -> Result<()> {
        for Diff { path, patch, .. } in series::diffs(text)? {
            let Some(text) = self.texts.get_mut(path.as_str()) else {
                continue;
            };
            for (hunk, number) in patch.hunks().iter().zip(1..) {
                let place = match direction {
                    Direction::Forward => text.put_in(hunk),
                    Direction::Reverse => text.put_in(&hunk.reverse()),
                };
                self.spots.push(Spot {
                    patch: name.to_owned(),
                    file: path.clone(),
                    hunk: number,
                    place,
                });
            }
        }
        Ok(())
    }
}

impl Text {
    fn new(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let numbered = text.lines().zip(1..);
        let lines = numbered.map(|(line, number)| (line.to_owned(), Some(number)));
        Self {
            lines: lines.collect(),
            skipped: Vec::new(),
        }
    }

    /// Puts a hunk in where it belongs, or skips it.
    fn put_in(&mut self, hunk: &Hunk<'_, str>) -> Place {
        let new_start = hunk.new_range().start();
        let above = self.skipped.iter().filter(|(start, _)| *start <= new_start);
        let skew: isize = above.map(|(_, growth)| growth).sum();
        let expected = new_start.cast_signed() - 1 - skew;
        let lines = hunk.lines().iter().filter_map(|line| match line {
            Line::Context(text) | Line::Delete(text) => Some(text.trim_end_matches('\n')),
            Line::Insert(_) => None,
        });
        let before: Vec<&str> = lines.collect();
        let starts = 0..=self.lines.len().saturating_sub(before.len());
        let nearness = |start: usize| Reverse((start.cast_signed() - expected).unsigned_abs());
        let best = starts.max_by_key(|start| (self.weight(*start, &before), nearness(*start)));
        let start = best.unwrap_or_default();
        let (line, by) = (self.line(start), start.cast_signed() - expected);
        let matching = self.matching(start, &before).count();
        if matching == before.len() {
            self.replace(start, hunk);
            return match by {
                0 => Place::Unchanged { line },
                by => Place::Moved { line, by },
            };
        }
        let growth = hunk.new_range().len().cast_signed() - hunk.old_range().len().cast_signed();
        self.skipped.push((new_start, growth));
        if self.weight(start, &before) <= before.len() {
            return Place::Gone;
        }
        Place::Changed {
            line,
            by,
            matching,
            of: before.len(),
            lost: self.lost(start, &before),
        }
    }

    /// The lines of `before` that are in their places if the first is at `start`.
    fn matching<'a>(&'a self, start: usize, before: &[&'a str]) -> impl Iterator<Item = &'a str> {
        let here = self.lines[start..].iter().map(|(line, _)| line.as_str());
        let pairs = here.zip(before.iter().copied());
        pairs.filter(|(here, line)| here == line).map(|it| it.0)
    }

    /// How many lines match. A telling line counts for more than all braces and blank lines together.
    fn weight(&self, start: usize, before: &[&str]) -> usize {
        let telling = before.len() + 1;
        let matching = self.matching(start, before);
        matching
            .map(|line| if is_telling(line) { telling } else { 1 })
            .sum()
    }

    /// The telling lines that are not near `start`.
    fn lost(&self, start: usize, before: &[&str]) -> Vec<String> {
        let from = start.saturating_sub(AROUND);
        let to = (start + before.len() + AROUND).min(self.lines.len());
        let near = &self.lines[from..to];
        let lost = before
            .iter()
            .filter(|line| is_telling(line) && !near.iter().any(|(here, _)| here == *line));
        lost.map(|line| (*line).to_owned()).collect()
    }

    /// The number of a line before anything was put in.
    fn line(&self, start: usize) -> usize {
        let mut numbers = self.lines[start..].iter().filter_map(|(_, number)| *number);
        numbers.next().unwrap_or(self.lines.len())
    }

    fn replace(&mut self, start: usize, hunk: &Hunk<'_, str>) {
        let mut old = self.lines.split_off(start).into_iter();
        for line in hunk.lines() {
            match line {
                Line::Context(_) => self.lines.extend(old.next()),
                Line::Delete(_) => drop(old.next()),
                Line::Insert(text) => {
                    let text = text.trim_end_matches('\n').to_owned();
                    self.lines.push((text, None));
                }
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
