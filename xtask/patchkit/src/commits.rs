//! `cargo xtask patch import` and `export`: a series as commits in a PyTorch checkout, to be edited there
//! with git's own means, and the same commits as patches again. `git am` and `git format-patch` do it.
//!
//! Invariant: commits that came from a series export to the same bytes, whatever git is configured to do.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::Shell;

use super::aside::Aside;
use super::files::{self, Files};
use super::judge::Trial;
use super::outcome::Outcome;
use super::tree::Tree;
use super::{git, lint, replace, series, unsaved};
use crate::release::{Release, Versions};
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// How far back from HEAD the release's own header is looked for.
const FAR: &str = "--max-count=100";
/// `format-patch` as patches/ has them: no hash of the commit, no renames, no version of git.
const EXPORT: [&str; 8] = [
    "format-patch",
    "--stdout",
    "-1",
    "--zero-commit",
    "--full-index",
    "-p",
    "--no-renames",
    "--no-signature",
];

/// Makes the commits, on top of HEAD.
pub fn import(
    root: &Path,
    versions: &Versions,
    source: &Path,
    torch: Option<&str>,
) -> Result<String> {
    let tree = Tree::open(source, versions)?;
    let release = release(&tree, versions, torch)?;
    let series = series::read(&root.join("patches").join(&release.series))?;
    let trial = Trial {
        header: &versions.header,
        release,
        series: &series,
    };
    let shown = tree.root.display();
    let outcome = trial.forward(&|path| tree.read(path))?.outcome;
    if outcome != Outcome::Clean {
        let remedy = match outcome {
            Outcome::LineEndings { .. } => outcome.remedy().to_owned(),
            _ => format!("git checkout v{}, in that tree", release.version),
        };
        return Err(refuse(format!("no commits were made in {shown}"))
            .found(outcome.to_string())
            .expected("the files that the release ships")
            .remedy(remedy)
            .into());
    }
    let files = series.iter().flat_map(|patch| patch.files.keys());
    let files: Vec<&str> = files.map(String::as_str).collect();
    unsaved::refuse_changes(&tree.root, &files, "git commit or git stash them")?;
    unsaved::refuse_unfinished(&tree.root)?;
    let patches: Vec<_> = series.iter().map(|patch| patch.path.as_path()).collect();
    am(&tree.root, &patches).with_context(|| format!("nothing was changed in {shown}"))?;
    Ok(format!(
        "made {} commits in {shown}; cargo xtask patch export --source {shown} writes them back\n",
        series.len()
    ))
}

/// Commits the patches on top of HEAD, all of them or none.
pub(crate) fn am(tree: &Path, patches: &[&Path]) -> Result<()> {
    let shell = Shell::new()?;
    let made = git::at(&shell, tree)
        .args(["am", "--quiet", "--keep-cr", "--no-3way"])
        .args(["--no-gpg-sign", "--no-signoff"])
        .args(["--whitespace=nowarn", "--committer-date-is-author-date"])
        .arg("--")
        .args(patches);
    git::output(made).map(drop).inspect_err(|_| {
        let _ = git::output(git::at(&shell, tree).args(["am", "--abort"]));
    })
}

/// Writes the patches of the commits since the release's own header.
pub fn export(
    root: &Path,
    versions: &Versions,
    source: &Path,
    torch: Option<&str>,
) -> Result<String> {
    let tree = Tree::open(source, versions)?;
    let release = release(&tree, versions, torch)?;
    let commits = since_release(&tree, &versions.header, release)?;
    let out = root.join("patches").join(&release.series);
    let (mut before, mut after, mut list) = (Files::new(), Files::new(), String::new());
    // A release's first series makes the folder.
    if out.exists() {
        for name in lint::names(&out)? {
            before.insert(name.clone(), files::read(&out, &name)?);
            after.insert(name, None);
        }
    }
    let aside = Aside::of(&tree.root)?;
    for commit in &commits {
        let patch = short_index(&git::text(aside.git().args(EXPORT).arg(commit))?);
        let subject = lint::subject(&patch).with_context(|| format!("{commit} has no subject"))?;
        let name = lint::file_name(&subject);
        list += &format!("{name}\n");
        after.insert(name, Some(patch.into_bytes()));
    }
    after.insert("series".to_owned(), Some(list.into_bytes()));
    let changed = replace::replace(&out, &before, &after)?;
    let mut said = format!(
        "{} patches for torch {}: {} files changed\n",
        commits.len(),
        release.version,
        changed.len()
    );
    if !changed.is_empty() {
        said += "to do: cargo xtask patch verify, and patched_sha256 in patches/versions.toml\n";
    }
    Ok(said)
}

/// The commits after the one with the release's own header, the oldest first.
fn since_release(tree: &Tree, header: &str, release: &Release) -> Result<Vec<String>> {
    let shell = Shell::new()?;
    let git = |arguments: &[&str]| git::text(git::at(&shell, &tree.root).args(arguments));
    let mut commits = Vec::new();
    let mut found = false;
    for commit in git(&["rev-list", "--first-parent", FAR, "HEAD"])?.lines() {
        let text = git(&["cat-file", "blob", &format!("{commit}:{header}")]);
        found = text.is_ok_and(|it| Digest::of(it.as_bytes()).hex() == release.header_sha256);
        if found {
            break;
        }
        commits.insert(0, commit.to_owned());
    }
    if found && !commits.is_empty() {
        return Ok(commits);
    }
    let shown = tree.root.display();
    let what = refuse(format!("{shown} has no series in its commits"));
    let version = &release.version;
    if !found && git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
        let count = commits.len();
        return Err(what
            .found(format!(
                "a shallow clone with {count} commits, and no such header in them"
            ))
            .expected(format!(
                "the commit with {header} as torch {version} ships it"
            ))
            .remedy(format!(
                "git -C {shown} fetch --deepen=20, then the same command again"
            ))
            .into());
    }
    Err(what
        .found(if found {
            "HEAD, with the header that the release ships"
        } else {
            "no such header"
        })
        .expected(format!(
            "commits after one with {header} as torch {version} ships it"
        ))
        .remedy(format!("cargo xtask patch import --source {shown}"))
        .into())
}

fn release<'a>(tree: &Tree, versions: &'a Versions, torch: Option<&str>) -> Result<&'a Release> {
    match torch {
        Some(version) => versions.find(Some(version)),
        None => tree.release(versions),
    }
}

/// Shortens hashes of files to seven digits. git itself shows more of them in a large repository than in a small one.
fn short_index(patch: &str) -> String {
    let lines = patch.split_inclusive('\n').map(|line| {
        let hashes = line.strip_prefix("index ");
        match hashes.and_then(|it| it.split_once("..")) {
            Some((old, new)) if old.len() == 40 && new.len() > 40 => {
                format!("index {}..{}{}", &old[..7], &new[..7], &new[40..])
            }
            _ => line.to_owned(),
        }
    });
    lines.collect()
}
