//! The outcomes of a series on a tree, each with its name, for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::place::Spot;

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The series applies to the header that the release ships, and the result is pinned.
    Clean,
    /// The header is the pinned result before the series is applied.
    AlreadyApplied,
    /// The series applies, but the header is not the one that the release ships.
    Drifted {
        /// The upstream path.
        file: String,
        /// SHA-256.
        found: String,
        /// SHA-256.
        expected: String,
    },
    /// The series does not apply.
    Conflict {
        /// The first patch that does not.
        patch: String,
        /// git's message.
        git: String,
        /// The hunks of the series whose lines are not there.
        hunks: Vec<Spot>,
    },
    /// A file that the series changes is not there.
    Missing {
        /// The upstream path.
        file: String,
        /// The patch that changes it.
        patch: String,
    },
    /// The file's lines end in CR LF, and the patches' in LF.
    LineEndings {
        /// The upstream path.
        file: String,
    },
    /// The series applies to the header that the release ships, and the result is not the pinned one.
    Unexpected {
        /// The upstream path.
        file: String,
        /// SHA-256.
        found: String,
        /// SHA-256.
        expected: String,
    },
}

impl Outcome {
    /// Whether the outcome is as pinned.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Clean | Self::AlreadyApplied)
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Clean | Self::AlreadyApplied => "",
            Self::Drifted { .. } => {
                "restore the release's own header, or see what moved: cargo xtask patch drift --source DIR"
            }
            Self::Conflict { .. } => {
                "restore the release's own files, or refresh the patches named above"
            }
            Self::Missing { .. } => "pass the root of a whole PyTorch source tree",
            Self::LineEndings { .. } => {
                "check it out with LF: git config core.autocrlf input, then git checkout on the file anew"
            }
            Self::Unexpected { .. } => {
                "if the series was changed on purpose, set patched_sha256 in patches/versions.toml to what was found; otherwise restore the series"
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("clean"),
            Self::AlreadyApplied => f.write_str("already applied"),
            Self::Drifted {
                file,
                found,
                expected,
            } => write!(
                f,
                "drifted: the series applies, but {file} is not the one that the release ships\n  \
                 found     SHA-256 {found}\n  expected  SHA-256 {expected}"
            ),
            Self::Conflict { patch, git, hunks } => {
                write!(f, "conflict: {patch} does not apply")?;
                for line in git.lines() {
                    write!(f, "\n  git says  {line}")?;
                }
                for Spot {
                    patch,
                    file,
                    hunk,
                    place,
                } in hunks
                {
                    let place = place.to_string().replace('\n', "\n    ");
                    write!(f, "\n  {patch}\n    hunk {hunk} of {file}\n    {place}")?;
                }
                Ok(())
            }
            Self::Missing { file, patch } => {
                write!(f, "missing: {patch} changes {file}, which is not there")
            }
            Self::LineEndings { file } => {
                write!(
                    f,
                    "line endings: {file} has CR LF, upstream and the patches have LF"
                )
            }
            Self::Unexpected {
                file,
                found,
                expected,
            } => {
                let pinned = match expected.as_str() {
                    "" => "a patched_sha256; none is pinned",
                    hash => &format!("SHA-256 {hash}"),
                };
                write!(
                    f,
                    "unexpected: after the series, {file} is not what patches/versions.toml pins\n  \
                     found     SHA-256 {found}\n  expected  {pinned}"
                )
            }
        }
    }
}
