//! What a patch and a series have to look like, in `cargo xtask patch verify` and in a test of the checked-in ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use diffy::{Hunk, Line};

use super::release::Versions;
use super::series::{self, Diff};
use xtask_wheel::header::in_wheel;

/// How many lines of upstream's files a series may change: the size of the seam.
const MOST: usize = 60;
/// How many lines around a change a hunk may have.
const CONTEXT: usize = 3;
/// The first lines of every patch, as exports write them.
const OPENING: [&str; 4] = [
    "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001",
    "From: pinbuddy developers <pinbuddy@localhost>",
    "Date: ",
    "Subject: [PATCH] ",
];
/// Lines at the end of every message.
const TRAILERS: [&str; 2] = ["Reason: ", "Forwarded: "];

/// All that is wrong in `patches`, a checkout's folder.
pub fn check(patches: &Path, versions: &Versions) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let headers: BTreeSet<_> = versions.with_sources().map(|it| &it.series).collect();
    let sources = versions.with_sources().flat_map(|it| &it.source_series);
    let sources: BTreeSet<_> = sources.chain(&versions.pull_request).collect();
    for name in headers.union(&sources) {
        let mut changed = 0;
        let listed = series::read(&patches.join(name))?;
        for file in fs::read_dir(patches.join(name))? {
            let file = file?.file_name().to_string_lossy().into_owned();
            if file.ends_with(".patch") && !listed.iter().any(|it| it.name == file) {
                wrong.push(format!("patches/{name}/{file}: series does not name it"));
            }
        }
        for patch in listed {
            let text = series::text(&patch.path)?;
            let diffs = series::diffs(&text)?;
            let mut found = check_message(&patch.name, &text);
            found.extend(
                diffs
                    .iter()
                    .flat_map(|it| check_diff(it, headers.contains(name))),
            );
            wrong.extend(
                found
                    .iter()
                    .map(|it| format!("patches/{name}/{}: {it}", patch.name)),
            );
            changed += diffs.iter().map(count).sum::<usize>();
        }
        if changed > MOST {
            wrong.push(format!(
                "patches/{name}: changes {changed} lines of upstream's files, and {MOST} are the most; put more of it into files of ours"
            ));
        }
    }
    Ok(wrong)
}

fn check_message(name: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (expected, line) in OPENING.iter().zip(text.lines().chain([""; 4])) {
        if !line.starts_with(expected) {
            wrong.push(format!("expected {expected:?}, found {line:?}"));
        }
    }
    let wanted = file_name(&subject(text));
    if name != wanted {
        wrong.push(format!("its subject would name it {wanted}"));
    }
    if body(text).is_empty() {
        wrong.push("its message does not say why".to_owned());
    }
    for trailer in TRAILERS {
        if !message(text).any(|it| it.starts_with(trailer) && it.len() > trailer.len()) {
            wrong.push(format!("expected \"{trailer}…\" in its message"));
        }
    }
    wrong
}

/// A patch's subject. It may continue in lines that begin with a blank.
pub fn subject(text: &str) -> String {
    let headers = text.lines().take_while(|line| !line.is_empty());
    let lines = headers.skip_while(|it| !it.starts_with("Subject: "));
    let subject = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    subject.trim_start_matches("Subject: [PATCH] ").to_owned()
}

/// A patch's message below the subject, without trailers of ours.
pub fn body(text: &str) -> String {
    let ours = |line: &&str| TRAILERS.iter().any(|it| line.starts_with(it));
    let kept: Vec<&str> = message(text).filter(|line| !ours(line)).collect();
    kept.join("\n").trim().to_owned()
}

fn message(text: &str) -> impl Iterator<Item = &str> {
    let below = text.lines().skip_while(|line| !line.is_empty());
    below.take_while(|line| !line.starts_with("diff --git ") && !line.starts_with("---"))
}

/// `open_the_seam.patch` of `Open the seam`.
pub fn file_name(subject: &str) -> String {
    let words = subject.split(|it: char| !it.is_ascii_alphanumeric());
    let words: Vec<_> = words
        .filter(|it| !it.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("_") + ".patch"
}

fn check_diff(diff: &Diff<'_>, of_headers: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if of_headers && in_wheel(&diff.path).is_none() {
        wrong.push(format!("{} is no header that a wheel has", diff.path));
    }
    let is_context = |line: &&Line<'_, str>| matches!(line, Line::Context(_));
    for (hunk, number) in diff.patch.hunks().iter().zip(1..) {
        let above = hunk.lines().iter().take_while(is_context).count();
        let below = hunk.lines().iter().rev().take_while(is_context).count();
        if above.max(below) > CONTEXT {
            wrong.push(format!(
                "hunk {number} of {} has more than {CONTEXT} lines around its change",
                diff.path
            ));
        }
    }
    wrong
}

/// How many lines a patch changes in a file of upstream's; a line that replaces another counts once. Files that the
/// patch adds are ours.
fn count(diff: &Diff<'_>) -> usize {
    let of_hunk = |hunk: &Hunk<'_, str>| {
        let lines = || hunk.lines().iter();
        let removed = lines().filter(|it| matches!(it, Line::Delete(_))).count();
        removed.max(lines().filter(|it| matches!(it, Line::Insert(_))).count())
    };
    if diff.added {
        0
    } else {
        diff.patch.hunks().iter().map(of_hunk).sum()
    }
}
