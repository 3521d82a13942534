//! A checkout of ours and a tree of the release that its series is for, in a temporary folder; and releases in words.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::release::Versions;
use xtask_support::hash::Digest;

pub const HEADER: &str = "aten/src/ATen/core/A.h";
pub const ADDED: &str = "aten/src/ATen/core/B.h";

/// A checkout of ours with a series of two patches, and a tree of the release that they are for.
pub struct Fixture {
    pub folder: TempDir,
    pub versions: Versions,
}

/// The header that the release ships.
pub fn pristine() -> String {
    (1..=30).fold(String::new(), |text, line| text + &format!("line number {line}\n"))
}

pub fn patched() -> String {
    let text = pristine().replace("number 5\n", "number five\n");
    text.replace("number 20\n", "number 20\nline number 20.5\n")
}

fn patch(subject: &str, diff: &str) -> String {
    format!(
        "From {} Mon Sep 17 00:00:00 2001\nFrom: pinbuddy developers <pinbuddy@localhost>\n\
         Date: Sat, 21 Nov 2026 00:00:00 +0000\nSubject: [PATCH] {subject}\n\nWhy.\n\n\
         Reason: a test\nForwarded: no\n\n{diff}",
        "0".repeat(40)
    )
}

/// Releases with official wheels for some Pythons each, and one that has sources only.
pub fn releases() -> Versions {
    let release = |(version, pythons): (&str, &str)| {
        let hash = "a".repeat(64);
        format!(
            "[[release]]\nversion = \"{version}\"\npythons = {pythons}\nheader_sha256 = \"{hash}\"\n\
             patched_sha256 = \"\"\nseries = \"x\"\n"
        )
    };
    let releases = [
        ("2.15.0", "[\"3.12\", \"3.13\", \"3.14\", \"3.14t\"]"),
        ("2.9.0", "[\"3.11\"]"),
        ("2.9.1", "[\"3.10\", \"3.11\"]"),
    ];
    let source = release(("2.6.0", "[]")).replace("release", "source_release");
    let text = releases.map(release).concat() + &source;
    Versions::parse(&format!("header = \"x.h\"\n{text}[cuda]\n")).unwrap()
}

impl Fixture {
    #[allow(clippy::new_without_default, reason = "it makes folders")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let versions = format!(
            "header = \"{HEADER}\"\n[[release]]\nversion = \"2.15.0\"\nheader_sha256 = \"{}\"\n\
             patched_sha256 = \"{}\"\nseries = \"2.15.0\"\n[cuda]\n",
            Digest::of(pristine().as_bytes()).hex(),
            Digest::of(patched().as_bytes()).hex(),
        );
        let fixture = Self { folder, versions: toml::from_str(&versions).unwrap() };
        fixture.write("ours/patches/versions.toml", &versions);
        fixture.write("ours/patches/2.15.0/series", "say_five.patch\nadd_a_half.patch\n");
        let first = format!(
            "diff --git a/{HEADER} b/{HEADER}\n--- a/{HEADER}\n+++ b/{HEADER}\n@@ -4,3 +4,3 @@\n line number 4\n-line number 5\n\
             +line number five\n line number 6\n"
        );
        fixture.write("ours/patches/2.15.0/say_five.patch", &patch("Say five", &first));
        let second = format!(
            "--- a/{HEADER}\n+++ b/{HEADER}\n@@ -19,4 +19,5 @@\n line number 19\n line number 20\n\
             +line number 20.5\n line number 21\n line number 22\n\
             --- /dev/null\n+++ b/{ADDED}\n@@ -0,0 +1 @@\n+new\n"
        );
        fixture.write("ours/patches/2.15.0/add_a_half.patch", &patch("Add a half", &second));
        fixture.write("tree/version.txt", "2.15.0a0\n");
        fixture.write(&format!("tree/{HEADER}"), &pristine());
        fixture
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A series of one patch to one file of the tree.
    pub fn add_series(&self, name: &str, subject: &str, path: &str, hunk: &str) {
        let diff = format!("--- a/{path}\n+++ b/{path}\n{hunk}");
        self.write(&format!("ours/patches/{name}/series"), "one.patch\n");
        self.write(&format!("ours/patches/{name}/one.patch"), &patch(subject, &diff));
    }

    pub fn header(&self, text: &str) {
        self.write(&format!("tree/{HEADER}"), text);
    }

    pub fn ours(&self) -> PathBuf {
        self.folder.path().join("ours")
    }

    pub fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// The text without the names of temporary folders.
    pub fn shown(&self, text: &str) -> String {
        let real = fs::canonicalize(self.folder.path()).unwrap();
        let text = text.replace(&real.display().to_string(), "");
        text.replace(&self.folder.path().display().to_string(), "")
    }

    pub fn read(&self) -> String {
        fs::read_to_string(self.tree().join(HEADER)).unwrap()
    }
}
