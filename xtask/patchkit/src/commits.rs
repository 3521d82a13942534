//! `cargo xtask patch import` and `export`: a series as commits in a PyTorch checkout, to be edited there
//! with git's own means, and the same commits as patches again.
//!
//! Invariant: commits that came from a series export to the same bytes, whatever git is configured to do;
//! so every setting that shows in a patch is given here.

use std::path::Path;

use anyhow::{Context, Result};
use xshell::{Cmd, Shell, cmd};

use super::judge::{self, Files, Trial};
use super::outcome::Outcome;
use super::tree::Tree;
use super::{git, lint, replace, series, unsaved};
use crate::release::{Release, Versions};
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;

/// How far back from HEAD the release's own header is looked for.
const FAR: &str = "--max-count=100";
/// git's settings that would show in a patch, as we have them.
pub const SETTINGS: [&str; 9] = [
    "core.autocrlf=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.suppressBlankEmpty=false",
    "diff.indentHeuristic=true",
    "diff.orderFile=/dev/null",
    "format.noprefix=false",
];
/// Options of `format-patch`, one for each that a configuration can change.
pub const EXPORT: [&str; 28] = [
    "--stdout",
    "-1",
    "--zero-commit",
    "--full-index",
    "-p",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--subject-prefix=PATCH",
    "--no-signature",
    "--no-numbered",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-attach",
    "--no-thread",
    "--no-cover-letter",
    "--no-notes",
    "--no-base",
    "--no-from",
    "--no-signoff",
    "--no-to",
    "--no-cc",
    "--no-add-header",
    "--no-encode-email-headers",
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
pub fn am(tree: &Path, patches: &[&Path]) -> Result<()> {
    let shell = Shell::new()?;
    let made = of(tree, cmd!(shell, "git"))
        .args(["am", "--quiet", "--keep-cr", "--no-3way"])
        .args(["--no-gpg-sign", "--no-signoff", "--whitespace=nowarn"])
        .args(["--committer-date-is-author-date", "--"])
        .args(patches);
    if let Err(error) = text(made) {
        let _ = text(of(tree, cmd!(shell, "git")).args(["am", "--abort"]));
        return Err(error);
    }
    Ok(())
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
    let out = root.join("patches").join(&release.series);
    let shell = Shell::new()?;
    let git = |arguments: &[&str]| text(of(&tree.root, cmd!(shell, "git")).args(arguments));
    let mut commits = Vec::new();
    let mut found = false;
    for commit in git(&["rev-list", "--first-parent", FAR, "HEAD"])?.lines() {
        let header = git(&[
            "show",
            "--no-textconv",
            &format!("{commit}:{}", versions.header),
        ]);
        found = header.is_ok_and(|it| Digest::of(it.as_bytes()).hex() == release.header_sha256);
        if found {
            break;
        }
        commits.push(commit.to_owned());
    }
    if !found || commits.is_empty() {
        let shown = tree.root.display();
        let what = refuse(format!("{shown} has no series in its commits"));
        if !found && git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
            return Err(what
                .found(format!(
                    "a shallow clone with {} commits, and no such header in them",
                    commits.len()
                ))
                .expected(format!(
                    "the commit with {} as torch {} ships it",
                    versions.header, release.version
                ))
                .remedy(format!(
                    "git -C {shown} fetch --deepen=20, then the same command again"
                ))
                .into());
        }
        return Err(what
            .found(if found {
                "HEAD, with the header that the release ships"
            } else {
                "no such header"
            })
            .expected(format!(
                "commits after one with {} as torch {} ships it",
                versions.header, release.version
            ))
            .remedy(format!(
                "cargo xtask patch import --source {}",
                tree.root.display()
            ))
            .into());
    }
    let (mut before, mut after, mut list) = (Files::new(), Files::new(), String::new());
    // A release's first series makes the folder.
    let present = if out.exists() {
        lint::names(&out)?
    } else {
        Vec::new()
    };
    for name in present {
        before.insert(name.clone(), judge::read(&out, &name)?);
        after.insert(name, None);
    }
    for commit in commits.iter().rev() {
        let mut arguments = vec!["format-patch"];
        arguments.extend(EXPORT);
        arguments.push(commit);
        let patch = short_index(&git(&arguments)?);
        let subject = lint::subject(&patch).with_context(|| format!("{commit} has no subject"))?;
        let name = lint::file_name(&subject);
        list += &format!("{name}\n");
        before.entry(name.clone()).or_default();
        after.insert(name, Some(patch.into_bytes()));
    }
    before.entry("series".to_owned()).or_default();
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

fn release<'a>(tree: &Tree, versions: &'a Versions, torch: Option<&str>) -> Result<&'a Release> {
    match torch {
        Some(version) => versions.find(Some(version)),
        None => tree.release(versions),
    }
}

/// How many digits git shows of a hash depends on how much else a repository holds.
fn short_index(patch: &str) -> String {
    let mut text = String::new();
    for line in patch.split_inclusive('\n') {
        let hashes = line
            .strip_prefix("index ")
            .and_then(|it| it.split_once(".."));
        match hashes {
            Some((old, new)) if old.len() == 40 && new.len() > 40 => {
                text += &format!("index {}..{}{}", &old[..7], &new[..7], &new[40..]);
            }
            _ => text += line,
        }
    }
    text
}

/// The command in the tree, as nobody in particular.
pub fn of<'a>(tree: &Path, git: Cmd<'a>) -> Cmd<'a> {
    git::neutral(git)
        .args(SETTINGS.iter().flat_map(|it| ["-c", it]))
        .arg("-C")
        .arg(tree)
        .env("GIT_COMMITTER_NAME", "pinbuddy developers")
        .env("GIT_COMMITTER_EMAIL", "pinbuddy@localhost")
        .quiet()
}

/// What it prints; what it complains of is the error.
pub fn text(command: Cmd<'_>) -> Result<String> {
    let output = command.ignore_status().output().context("running git")?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    anyhow::bail!("git: {}", String::from_utf8_lossy(&output.stderr).trim())
}
