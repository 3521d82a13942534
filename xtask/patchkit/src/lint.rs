//! `cargo xtask patch lint`: names, messages and size of the patches.
//!
//! Reads the checked-in files only: no wheel, no tree. Invariant: reports all that is wrong, not only the first.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use diffy::{Hunk, Line};

use super::series::{self, Diff};
use crate::release::Versions;
use xtask_wheel::header::in_wheel;

/// How many lines of upstream's files a series may change.
const MOST: usize = 60;
/// The first lines of every patch. Exports always write the same lines, so that they are the same bytes.
const OPENING: [&str; 3] = [
    "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
    "From: pinbuddy developers <pinbuddy@localhost>",
    "Date: ",
];
/// The last lines of every message.
pub const TRAILERS: [&str; 2] = ["Reason: ", "Forwarded: "];

/// All that is wrong in the checkout at `root`.
pub fn check(root: &Path, versions: &Versions) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let patches = root.join("patches");
    let headers: BTreeSet<_> = versions.with_sources().map(|it| &it.series).collect();
    let sources = versions.with_sources().flat_map(|it| &it.source_series);
    let sources: BTreeSet<_> = sources.chain(&versions.pull_request).collect();
    for (folders, of) in [(&headers, Of::Headers), (&sources, Of::Sources)] {
        for name in folders {
            let shown = format!("patches/{name}");
            wrong.extend(check_series(&patches.join(name), &shown, of)?);
        }
    }
    for name in names(&patches)? {
        if name != "versions.toml" && !headers.contains(&name) && !sources.contains(&name) {
            wrong.push(format!(
                "patches/{name}: no release in versions.toml names it"
            ));
        }
    }
    Ok(wrong)
}

/// What a series may change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Headers of a wheel.
    Headers,
    /// Anything in a source tree.
    Sources,
}

fn check_series(folder: &Path, shown: &str, of: Of) -> Result<Vec<String>> {
    let listed = series::listed(folder)?;
    let mut wrong = Vec::new();
    let present = names(folder)?;
    for name in present.iter().filter(|name| *name != "series") {
        if !listed.contains(name) {
            wrong.push(format!("{shown}/{name}: not in series"));
        }
    }
    let mut changed = 0;
    for (number, name) in listed.iter().enumerate() {
        if listed[..number].contains(name) {
            wrong.push(format!("{shown}/series: names {name} twice"));
        } else if !present.contains(name) {
            wrong.push(format!(
                "{shown}/series: names {name:?}, which is not there"
            ));
        } else {
            let path = folder.join(name);
            let text = series::text(&path)?;
            let mut found = check_message(name, &text);
            match series::diffs(&text) {
                Err(error) => found.push(error.to_string()),
                Ok(diffs) => {
                    found.extend(check_diffs(&diffs, of));
                    changed += count(&diffs);
                }
            }
            wrong.extend(found.iter().map(|it| format!("{shown}/{name}: {it}")));
        }
    }
    if changed > MOST {
        wrong.push(format!(
            "{shown}: changes {changed} lines of upstream's files, and {MOST} are the most; put more of it into files of ours"
        ));
    }
    Ok(wrong)
}

fn check_message(name: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut lines = text.lines();
    for expected in OPENING {
        let line = lines.next().unwrap_or_default();
        if !line.starts_with(expected) {
            wrong.push(format!("expected {expected:?}, found {line:?}"));
        }
    }
    match subject(text) {
        None => wrong.push("expected \"Subject: [PATCH] …\" below them".to_owned()),
        Some(subject) => {
            let wanted = file_name(&subject);
            if name != wanted {
                wrong.push(format!("its subject would name it {wanted}"));
            }
        }
    }
    let message: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.is_empty())
        .take_while(|line| !line.starts_with("diff --git ") && !line.starts_with("---"))
        .filter(|line| !line.is_empty())
        .collect();
    let end = message.len().saturating_sub(TRAILERS.len());
    let (body, trailers) = message.split_at(end);
    if body.is_empty() {
        wrong.push("its message does not say why".to_owned());
    }
    for (number, expected) in TRAILERS.iter().enumerate() {
        let line = trailers.get(number).copied().unwrap_or_default();
        if !line.starts_with(expected) || line.len() == expected.len() {
            wrong.push(format!(
                "expected \"{expected}…\" at the end of its message, found {line:?}"
            ));
        }
    }
    wrong
}

/// A patch's subject. It may continue in lines that begin with a blank.
pub fn subject(text: &str) -> Option<String> {
    let headers = text.lines().take_while(|line| !line.is_empty());
    let lines = headers.skip(OPENING.len()).map(str::trim);
    let subject = lines.collect::<Vec<_>>().join(" ");
    subject.strip_prefix("Subject: [PATCH] ").map(str::to_owned)
}

/// `open_the_seam.patch` of `Open the seam`.
pub fn file_name(subject: &str) -> String {
    let words = subject
        .split(|it: char| !it.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(str::to_ascii_lowercase).collect();
    words.join("_") + ".patch"
}

fn check_diffs(diffs: &[Diff<'_>], of: Of) -> Vec<String> {
    let mut wrong = Vec::new();
    for diff in diffs {
        if of == Of::Headers && in_wheel(&diff.path).is_none() {
            wrong.push(format!("{} is no header that a wheel has", diff.path));
        }
        for line in diff
            .patch
            .hunks()
            .iter()
            .flat_map(|hunk| reformatted(hunk.lines()))
        {
            wrong.push(format!("only reformats upstream's {:?}", line.trim()));
        }
    }
    wrong
}

/// Removed lines that are added again with other white space only.
fn reformatted<'a>(lines: &[Line<'a, str>]) -> Vec<&'a str> {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let added = lines.iter().filter_map(|line| match line {
        Line::Insert(text) => Some(bare(text)),
        _ => None,
    });
    let mut added: Vec<String> = added.filter(|text| !text.is_empty()).collect();
    let mut found = Vec::new();
    for line in lines {
        let Line::Delete(text) = line else { continue };
        if let Some(place) = added.iter().position(|it| *it == bare(text)) {
            added.swap_remove(place);
            found.push(*text);
        }
    }
    found
}

/// How many lines the patch changes in upstream's files; a line that replaces another counts once. Files that the
/// patch adds are ours.
fn count(diffs: &[Diff<'_>]) -> usize {
    let upstream = diffs.iter().filter(|diff| !diff.added);
    let of_hunk = |hunk: &Hunk<'_, str>| {
        let lines = hunk.lines().iter();
        let removed = lines.clone().filter(|it| matches!(it, Line::Delete(_)));
        let added = lines.filter(|it| matches!(it, Line::Insert(_)));
        removed.count().max(added.count())
    };
    upstream
        .flat_map(|diff| diff.patch.hunks())
        .map(of_hunk)
        .sum()
}

/// The names in a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
