//! Where a series is carried to: a release, or a tree. What the result is called, and what takes it there.
//!
//! Invariant: a tree is only read.

use std::path::Path;

use anyhow::Result;

use super::Job;
use crate::judge::Files;
use crate::series::Patch;
use crate::tree::Tree;
use crate::unsaved;
use xtask_support::paths;

/// What the series is carried to.
pub enum Goal {
    /// As its official wheel has the files.
    Release(String),
    /// As the folder has them.
    Tree(Tree),
}

impl Goal {
    /// In a folder below `folder`.
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

/// The files of a tree that a series touches. Changes that no commit has would be in the way of the result.
pub fn files(tree: &Tree, series: &[Patch]) -> Result<Files> {
    let mut files = Files::new();
    for path in series.iter().flat_map(|patch| patch.files.keys()) {
        files.insert(path.clone(), tree.read(path)?);
    }
    let touched: Vec<&str> = files.keys().map(String::as_str).collect();
    unsaved::refuse_changes(&tree.root, &touched, "git commit or git stash them")?;
    Ok(files)
}
