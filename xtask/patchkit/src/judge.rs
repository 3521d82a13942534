//! Tries a series on copies of files, and names the outcome.
//!
//! A function reads the files, from a tree, a wheel or a commit. Invariant: no tree is changed.

use anyhow::Result;

pub use super::files::Files;
use super::files::{self, Reader, has_returns};
use super::git::Direction;
use super::outcome::Outcome;
use super::series::Patch;
use super::survey::survey;
use crate::release::Release;
use xtask_support::hash::Digest;

/// A series to try.
#[derive(Clone, Copy)]
pub struct Trial<'a> {
    /// The header whose hashes are pinned.
    pub header: &'a str,
    /// The release that pins them.
    pub release: &'a Release,
    /// Its series.
    pub series: &'a [Patch],
}

/// The result.
#[derive(Debug)]
pub struct Judgement {
    /// The outcome.
    pub outcome: Outcome,
    /// The files that the series touches, before.
    pub before: Files,
    /// The files after; the same as before if the series did not apply.
    pub after: Files,
}

impl Trial<'_> {
    /// Applies the series to the files that `read` returns.
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

    /// Takes the series back. `Clean`: the result is the header that the release ships. `AlreadyApplied`: the
    /// header is that one before.
    pub fn reverse(&self, read: &Reader<'_>) -> Result<Judgement> {
        self.attempt(read, Direction::Reverse, |found, result| {
            if result == self.release.header_sha256 {
                Outcome::Clean
            } else {
                self.drifted(found, &self.release.patched_sha256)
            }
        })
    }

    /// Applies a series that no hash is pinned for. Returns the files that it touches, before and after; they are
    /// the same if the series was applied before.
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

    /// In one direction. `judge` names the outcome of a series that applied, by the header's hashes before and
    /// after.
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

    /// An outcome that needs no attempt: a file is missing, or has other line endings.
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

    /// A process that was killed between two files leaves the files that the series adds. They are no conflict
    /// if they are exactly what the series would add.
    fn beside_leftovers(&self, before: &Files) -> Result<Option<Files>> {
        let mut without = before.clone();
        let mut left = Files::new();
        for (path, &added) in self.series.iter().flat_map(|patch| &patch.files) {
            let bytes = added.then(|| without.insert(path.clone(), None).flatten());
            if let Some(Some(bytes)) = bytes {
                left.insert(path.clone(), Some(bytes));
            }
        }
        if left.is_empty() {
            return Ok(None);
        }
        let order: Vec<&Patch> = self.series.iter().collect();
        let after = files::apply(&order, &without, Direction::Forward)?.ok();
        let same = |after: &Files| {
            left.iter()
                .all(|(path, bytes)| after.get(path) == Some(bytes))
        };
        Ok(after.filter(same))
    }

    /// The files after the series, or the conflict.
    fn run(&self, before: &Files, direction: Direction) -> Result<Result<Files, Outcome>> {
        let mut order: Vec<&Patch> = self.series.iter().collect();
        if direction == Direction::Reverse {
            order.reverse();
        }
        let stuck = match files::apply(&order, before, direction)? {
            Ok(after) => return Ok(Ok(after)),
            Err(stuck) => stuck,
        };
        let mut hunks = survey(&order, before, direction)?;
        hunks.retain(|spot| !spot.place.is_found());
        Ok(Err(Outcome::Conflict {
            patch: stuck.patch,
            git: stuck.git,
            hunks,
        }))
    }
}
