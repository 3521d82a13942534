//! Tries a series on files, in a folder of its own, and says what came of it.
//!
//! Knows where files come from only by a function. Invariant: writes nothing outside that folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::git::{self, Direction};
use super::hunk::{self, FileDiff};
use super::outcome::Outcome;
use super::series::Patch;
use super::survey::survey;
use crate::release::Release;
use xtask_support::hash::Digest;

/// Contents by upstream path; none where there is no such file.
pub type Files = BTreeMap<String, Option<Vec<u8>>>;
/// Reads a file by its upstream path.
pub type Reader<'a> = dyn Fn(&str) -> Result<Option<Vec<u8>>> + 'a;

/// What is tried.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The header whose hashes are pinned.
    pub header: &'a str,
    /// The release that pins them.
    pub release: &'a Release,
    /// Its series.
    pub series: &'a [Patch],
}

/// What came of it.
#[derive(Debug)]
pub struct Judgement {
    /// In a word and its details.
    pub outcome: Outcome,
    /// The files before, all that the series touches.
    pub before: Files,
    /// The files after; as before where the series did not apply.
    pub after: Files,
}

impl Trial<'_> {
    /// Applies the series to what `read` gives.
    pub fn forward(&self, read: &Reader<'_>) -> Result<Judgement> {
        self.attempt(read, Direction::Forward, |found, result| {
            let Release {
                header_sha256: pinned,
                patched_sha256: expected,
                ..
            } = self.release;
            if found != *pinned {
                self.drifted(found, pinned)
            } else if result != *expected {
                Outcome::Unexpected {
                    file: self.header.to_owned(),
                    found: result,
                    expected: expected.clone(),
                }
            } else {
                Outcome::Clean
            }
        })
    }

    /// Takes the series back: `Clean` gives the header that the release ships, `AlreadyApplied` says
    /// that it is that already.
    pub fn reverse(&self, read: &Reader<'_>) -> Result<Judgement> {
        self.attempt(read, Direction::Reverse, |found, result| {
            if result == self.release.header_sha256 {
                Outcome::Clean
            } else {
                self.drifted(found, &self.release.patched_sha256)
            }
        })
    }

    /// Applies a series that no hash is pinned for: the files that it touches, before and after. One
    /// that is there already changes nothing.
    pub fn unpinned(&self, read: &Reader<'_>) -> Result<Result<(Files, Files), Outcome>> {
        let before = self.read_all(read)?;
        if let Some(outcome) = self.stands_in_the_way(&before) {
            return Ok(Err(outcome));
        }
        Ok(match self.run(&before, Direction::Forward)? {
            Ok(after) => Ok((before, after)),
            Err(_) if self.run(&before, Direction::Reverse)?.is_ok() => {
                Ok((before.clone(), before))
            }
            Err(conflict) => Err(conflict),
        })
    }

    /// One way or the other; `judge` says of the header's hashes, before and after, what became of a
    /// series that went through.
    fn attempt(
        &self,
        read: &Reader<'_>,
        direction: Direction,
        judge: impl FnOnce(String, String) -> Outcome,
    ) -> Result<Judgement> {
        let before = self.read_all(read)?;
        let unchanged = |before: Files, outcome| Judgement {
            outcome,
            after: before.clone(),
            before,
        };
        if let Some(outcome) = self.stands_in_the_way(&before) {
            return Ok(unchanged(before, outcome));
        }
        let found = self.hash(&before);
        let goal = match direction {
            Direction::Forward => &self.release.patched_sha256,
            Direction::Reverse => &self.release.header_sha256,
        };
        if found == *goal {
            return Ok(unchanged(before, Outcome::AlreadyApplied));
        }
        let tried = match (direction, self.beside_leftovers(&before)?) {
            (Direction::Forward, Some(after)) => Ok(after),
            _ => self.run(&before, direction)?,
        };
        Ok(match tried {
            Ok(after) => Judgement {
                outcome: judge(found, self.hash(&after)),
                before,
                after,
            },
            Err(conflict) => unchanged(before, conflict),
        })
    }

    fn drifted(&self, found: String, expected: &str) -> Outcome {
        Outcome::Drifted {
            file: self.header.to_owned(),
            found,
            expected: expected.to_owned(),
        }
    }

    fn read_all(&self, read: &Reader<'_>) -> Result<Files> {
        let paths = self.series.iter().flat_map(|patch| patch.files.keys());
        paths.map(|path| Ok((path.clone(), read(path)?))).collect()
    }

    /// What makes an attempt pointless.
    fn stands_in_the_way(&self, before: &Files) -> Option<Outcome> {
        let mut added = Vec::new();
        for patch in self.series {
            for (file, &adds) in &patch.files {
                let (file, patch) = (file.clone(), patch.name.clone());
                match &before[&file] {
                    _ if adds => added.push(file),
                    None if !added.contains(&file) => {
                        return Some(Outcome::Missing { file, patch });
                    }
                    Some(text) if has_returns(text) => {
                        return Some(Outcome::LineEndings { file });
                    }
                    _ => {}
                }
            }
        }
        None
    }

    fn hash(&self, files: &Files) -> String {
        let bytes = files.get(self.header).and_then(Option::as_deref);
        Digest::of(bytes.unwrap_or_default()).hex()
    }

    /// A process that was killed between two files leaves those that the series adds. Where they are exactly
    /// what it would add, they are in nobody's way.
    fn beside_leftovers(&self, before: &Files) -> Result<Option<Files>> {
        let mut without = before.clone();
        for (path, &added) in self.series.iter().flat_map(|patch| &patch.files) {
            if added {
                without.insert(path.clone(), None);
            }
        }
        if without == *before {
            return Ok(None);
        }
        let same = |after: &Files| {
            let mut left = before.iter().filter(|(path, _)| without[*path].is_none());
            left.all(|(path, bytes)| bytes.is_none() || after.get(path) == Some(bytes))
        };
        Ok(self.run(&without, Direction::Forward)?.ok().filter(same))
    }

    /// The files after the series, or the conflict.
    fn run(&self, before: &Files, direction: Direction) -> Result<Result<Files, Outcome>> {
        let work = tempfile::tempdir().context("making a folder to patch in")?;
        let work = work.path();
        for (path, bytes) in before {
            let Some(bytes) = bytes else { continue };
            let file = work.join(path);
            fs::create_dir_all(file.parent().unwrap_or(work))?;
            fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
        }
        let mut order: Vec<&Patch> = self.series.iter().collect();
        if direction == Direction::Reverse {
            order.reverse();
        }
        for patch in &order {
            if let Err(git) = git::apply(&patch.path, work, direction)? {
                let patch = patch.name.clone();
                let hunks = conflicts(&order, before, direction)?;
                return Ok(Err(Outcome::Conflict { patch, git, hunks }));
            }
        }
        let after = before
            .keys()
            .map(|path| Ok((path.clone(), read(work, path)?)));
        Ok(Ok(after.collect::<Result<Files>>()?))
    }
}

/// Whether lines end in CR LF.
pub fn has_returns(text: &[u8]) -> bool {
    text.windows(2).any(|pair| pair == b"\r\n")
}

/// A file below a folder, where there is one.
pub fn read(folder: &Path, path: &str) -> Result<Option<Vec<u8>>> {
    let path = folder.join(path);
    match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
    }
}

/// The diffs of a series, by patch.
pub fn diffs<'a>(series: &[&'a Patch]) -> Result<Vec<(&'a str, Vec<FileDiff>)>> {
    let parse = |patch: &&'a Patch| {
        let shown = patch.path.display();
        let text = fs::read_to_string(&patch.path).with_context(|| format!("reading {shown}"))?;
        let diffs = hunk::parse(&text).with_context(|| format!("in {shown}"))?;
        Ok((patch.name.as_str(), diffs))
    };
    series.iter().map(parse).collect()
}

/// The hunks that are not where they should be.
fn conflicts(
    order: &[&Patch],
    before: &Files,
    direction: Direction,
) -> Result<Vec<super::survey::Spot>> {
    let mut patches = diffs(order)?;
    if direction == Direction::Reverse {
        for diff in patches.iter_mut().flat_map(|(_, diffs)| diffs) {
            diff.hunks = diff.hunks.iter().map(hunk::Hunk::reversed).collect();
        }
    }
    let present = before
        .iter()
        .filter_map(|(path, bytes)| Some((path.clone(), bytes.clone()?)));
    let mut spots = survey(&patches, &present.collect());
    spots.retain(|spot| !spot.place.is_found());
    Ok(spots)
}
