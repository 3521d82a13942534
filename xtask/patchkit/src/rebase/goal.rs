//! The goal of a rebase: a release, or a source tree. Where the result lies, and the command that takes it to the goal.
//!
//! Invariant: a tree is only read.

use std::path::Path;

use anyhow::Result;

use super::Job;
use crate::files::Files;
use crate::series::Patch;
use crate::tree::Tree;
use crate::unsaved;
use xtask_support::paths;

/// What a series is carried to.
pub enum Goal {
    /// A release, with the files of its official wheel.
    Release(String),
    /// A source tree, with the files that it has now.
    Tree(Tree),
}

impl Goal {
    /// The task, in a folder below `folder`.
    pub fn job<'a>(&self, from: &str, series: &'a [Patch], folder: &Path) -> Job<'a> {
        let command = format!("cargo xtask patch rebase --from {from}");
        match self {
            Self::Release(version) => {
                let folder = folder.join(format!("{from}-to-{version}"));
                let next = format!(
                    "cargo xtask patch export --source {} --torch {version}",
                    paths::show(&folder)
                );
                Job {
                    series,
                    from: format!("torch {from}"),
                    to: format!("torch {version}"),
                    command: format!("{command} --to {version}"),
                    folder,
                    next,
                }
            }
            Self::Tree(tree) => {
                let shown = tree.root.display();
                let name = tree.root.file_name().unwrap_or_default().to_string_lossy();
                let folder = folder.join(format!("{from}-to-{name}"));
                let here = paths::show(&folder);
                let next = if tree.root.join(".git").exists() {
                    format!("git -C {here} format-patch --stdout to..new | git -C {shown} am")
                } else {
                    format!("git -C {here} diff to..new | git -C {shown} apply")
                };
                Job {
                    series,
                    from: format!("torch {from}"),
                    to: shown.to_string(),
                    command: format!("{command} --source {shown}"),
                    folder,
                    next,
                }
            }
        }
    }
}

/// The files of a tree that a series touches. Refuses changes that are not committed: the result could not be applied
/// beside them.
pub fn files(tree: &Tree, series: &[Patch]) -> Result<Files> {
    let mut files = Files::new();
    for path in series.iter().flat_map(|patch| patch.files.keys()) {
        files.insert(path.clone(), tree.read(path)?);
    }
    let touched: Vec<&str> = files.keys().map(String::as_str).collect();
    unsaved::refuse_changes(&tree.root, &touched, "git commit or git stash them")?;
    Ok(files)
}
