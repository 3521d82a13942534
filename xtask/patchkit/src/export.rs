//! `cargo xtask patch export`: the commits in a PyTorch checkout as a series. `git am` is the way back.
//!
//! Invariant: commits that came from a series export to the same bytes, whatever git is configured to do.

use std::fs;
use std::path::Path;

use anyhow::Result;
use xshell::Shell;

use super::git;
use super::release::Release;
use super::tree::Tree;
use xtask_support::hash::Digest;
use xtask_support::refusal::refuse;
use xtask_support::scratch::Scratch;

/// Options of `format-patch` for what `patches/` has, which ci/upstream_pr.py reads too: no hash of the commit, no renames, no
/// version of git.
const FORMAT_PATCH: &str = include_str!("format-patch.txt");
/// How far back from HEAD the release's own header is looked for.
const FAR: &str = "--max-count=100";

/// Writes the patches of the commits since the release's own header to `patches`, in the folder of its series.
pub fn export(patches: &Path, header: &str, tree: &Tree, release: &Release) -> Result<String> {
    let shell = Shell::new()?;
    let git = |arguments: &[&str]| git::text(git::at(&shell, &tree.root).args(arguments));
    let commits = since_release(&git, header, tree, release)?;
    let out = patches.join(&release.series);
    let scratch = Scratch::folder(&out)?;
    let mut list = String::new();
    for commit in &commits {
        let one = ["--no-numbered", "--stdout", "-1", "--zero-commit", commit];
        let options = FORMAT_PATCH.split_ascii_whitespace().chain(one);
        let command = ["format-patch"].into_iter().chain(options);
        let patch = short_index(&git(&command.collect::<Vec<_>>())?);
        // `Open-_the-seam_` of `Open _the seam_`.
        let subject = git(&["log", "-1", "--format=%f", commit])?;
        let words = subject.split(|it: char| !it.is_ascii_alphanumeric());
        let words: Vec<_> = words.filter(|it| !it.is_empty()).collect();
        let name = words.join("_").to_ascii_lowercase() + ".patch";
        list += &format!("{name}\n");
        fs::write(scratch.path().join(name), patch)?;
    }
    fs::write(scratch.path().join("series"), list)?;
    scratch.publish(&out)?;
    Ok(format!(
        "{} patches for torch {}, in {}\nto do: git diff -- patches; cargo xtask patch verify --torch {1}; \
         patched_sha256 in patches/versions.toml, if they have changed\n",
        commits.len(),
        release.version,
        out.display()
    ))
}

/// The commits after the one with the release's own header, the oldest first.
fn since_release(
    git: &dyn Fn(&[&str]) -> Result<String>,
    header: &str,
    tree: &Tree,
    release: &Release,
) -> Result<Vec<String>> {
    let mut commits = Vec::new();
    for commit in git(&["rev-list", "--first-parent", FAR, "HEAD"])?.lines() {
        let text = git(&["cat-file", "blob", &format!("{commit}:{header}")]);
        if text.is_ok_and(|it| Digest::of(it.as_bytes()).hex() == release.header_sha256) {
            anyhow::ensure!(
                !commits.is_empty(),
                none(tree, release, "HEAD has the header that the release ships")
            );
            return Ok(commits);
        }
        commits.insert(0, commit.to_owned());
    }
    let found = match git(&["rev-parse", "--is-shallow-repository"])?.trim() {
        "true" => format!(
            "a shallow clone of {} commits, and no such header in them: git fetch --deepen=20 has more",
            commits.len()
        ),
        _ => format!("no such header in the last {} commits", commits.len()),
    };
    Err(none(tree, release, &found))
}

fn none(tree: &Tree, release: &Release, found: &str) -> anyhow::Error {
    let root = tree.root.display();
    refuse(format!("{root} has no series in its commits"))
        .found(found)
        .expected(format!(
            "commits after one with the header of torch {}, SHA-256 {}",
            release.version, release.header_sha256
        ))
        .remedy(format!(
            "git -C {root} am $(sed \"s|^|$PWD/patches/{0}/|\" patches/{0}/series)  # makes them",
            release.series
        ))
        .into()
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
