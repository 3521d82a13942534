//! Series on trees in temporary folders, with the git that is installed.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::git::Direction::{self, Forward, Reverse};
use super::{change, verify};
use crate::cli::patch::Change;
use crate::release::Versions;
use crate::support::hash::Digest;

pub const HEADER: &str = "aten/src/ATen/core/A.h";
const ADDED: &str = "aten/src/ATen/core/B.h";

/// A checkout of ours with a series of two patches, and a tree of the release that they are for.
pub struct Bench {
    pub folder: TempDir,
    pub versions: Versions,
}

/// The header that the release ships.
pub fn pristine() -> String {
    (1..=30).fold(String::new(), |text, line| {
        text + &format!("line number {line}\n")
    })
}

fn patched() -> String {
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

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let versions = format!(
            "header = \"{HEADER}\"\n[[release]]\nversion = \"2.15.0\"\nheader_sha256 = \"{}\"\n\
             patched_sha256 = \"{}\"\nseries = \"2.15.0\"\n[cuda]\n",
            Digest::of(pristine().as_bytes()).hex(),
            Digest::of(patched().as_bytes()).hex(),
        );
        let bench = Self {
            folder,
            versions: toml::from_str(&versions).unwrap(),
        };
        bench.write("ours/patches/versions.toml", &versions);
        bench.write(
            "ours/patches/2.15.0/series",
            "say_five.patch\nadd_a_half.patch\n",
        );
        let first = format!(
            "--- a/{HEADER}\n+++ b/{HEADER}\n@@ -4,3 +4,3 @@\n line number 4\n-line number 5\n\
             +line number five\n line number 6\n"
        );
        bench.write(
            "ours/patches/2.15.0/say_five.patch",
            &patch("Say five", &first),
        );
        let second = format!(
            "--- a/{HEADER}\n+++ b/{HEADER}\n@@ -19,4 +19,5 @@\n line number 19\n line number 20\n\
             +line number 20.5\n line number 21\n line number 22\n\
             --- /dev/null\n+++ b/{ADDED}\n@@ -0,0 +1 @@\n+new\n"
        );
        bench.write(
            "ours/patches/2.15.0/add_a_half.patch",
            &patch("Add a half", &second),
        );
        bench.write("tree/version.txt", "2.15.0a0\n");
        bench.write(&format!("tree/{HEADER}"), &pristine());
        bench
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
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

    /// With names of temporary folders taken out.
    pub fn shown(&self, text: &str) -> String {
        let real = fs::canonicalize(self.folder.path()).unwrap();
        let text = text.replace(&real.display().to_string(), "");
        text.replace(&self.folder.path().display().to_string(), "")
    }

    fn verify(&self) -> String {
        match verify::on_tree(&self.ours(), &self.versions, &self.tree()) {
            Ok(verified) => self.shown(&verify::describe(&[verified])),
            Err(error) => self.shown(&format!("error: {error}\n")),
        }
    }

    fn change(&self, direction: Direction, force: bool) -> String {
        let args = Change {
            source: self.tree(),
            torch: None,
            force,
        };
        match change::change(&self.ours(), &self.versions, &args, direction) {
            Ok(said) => self.shown(&said),
            Err(error) => self.shown(&format!("error: {error:#}\n")),
        }
    }

    fn read(&self) -> String {
        fs::read_to_string(self.tree().join(HEADER)).unwrap()
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = std::process::Command::new("git");
        let configured = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x",
            "-c",
            "init.defaultBranch=x",
        ];
        git.args(configured)
            .arg("-C")
            .arg(self.tree())
            .args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn json(&self) -> String {
        let verified = verify::on_tree(&self.ours(), &self.versions, &self.tree()).unwrap();
        self.shown(&serde_json::to_string_pretty(&verified).unwrap())
    }

    fn remove(&self, path: &str) {
        let path: &Path = path.as_ref();
        fs::remove_file(self.folder.path().join(path)).unwrap();
    }
}

#[test]
fn every_outcome_has_its_name() {
    let bench = Bench::new();
    let mut said = bench.verify();
    bench.header(&patched());
    said += &bench.verify();
    bench.header(&format!("{}more\n", pristine()));
    said += &bench.verify();
    bench.header(&pristine().replace('\n', "\r\n"));
    said += &bench.verify();
    bench.remove(&format!("tree/{HEADER}"));
    said += &bench.verify();
    let unpinned = bench.versions.releases[0].patched_sha256.clone();
    let mut other = Bench::new();
    other.versions.releases[0].patched_sha256 = String::new();
    said += &other.verify();
    assert!(
        said.contains(&unpinned),
        "what was found is what would be pinned"
    );
    insta::assert_snapshot!("outcomes", said);
}

#[test]
fn a_conflict_names_file_hunk_and_nearest_match() {
    let bench = Bench::new();
    bench.header(&format!(
        "a\nb\n{}",
        pristine().replace("number 20\n", "number twenty\n")
    ));
    insta::assert_snapshot!("conflict", bench.verify());
    insta::assert_snapshot!("conflict_json", bench.json());
}

#[test]
fn fuzz_is_a_conflict() {
    // The line that the hunk changes is as it was; one line of its context is not.
    let bench = Bench::new();
    bench.header(&pristine().replace("number 6\n", "number six\n"));
    assert!(bench.verify().contains("conflict"));
}

#[test]
fn an_added_file_that_is_there_already() {
    let bench = Bench::new();
    bench.write(&format!("tree/{ADDED}"), "theirs\n");
    insta::assert_snapshot!("exists", bench.verify());
}

#[test]
fn trees_that_are_no_release() {
    let bench = Bench::new();
    bench.write("tree/version.txt", "2.16.0a0+git1234\n");
    let mut said = bench.verify();
    assert!(said.contains("clean"), "the header's hash decides");
    bench.header("something else\n");
    said = bench.verify();
    bench.remove("tree/version.txt");
    bench.remove(&format!("tree/{HEADER}"));
    said += &bench.verify();
    fs::remove_dir_all(bench.tree()).unwrap();
    said += &bench.verify();
    insta::assert_snapshot!("no_release", said);
}

#[test]
fn there_and_back_and_nothing_twice() {
    let bench = Bench::new();
    let mut said = bench.change(Reverse, false);
    said += &bench.change(Forward, false);
    assert_eq!(bench.read(), patched());
    assert!(bench.tree().join(ADDED).exists());
    said += &bench.change(Forward, false);
    said += &bench.change(Reverse, false);
    assert_eq!(bench.read(), pristine());
    assert!(!bench.tree().join(ADDED).exists());
    insta::assert_snapshot!("there_and_back", said);
}

#[test]
fn a_dirty_tree_is_left_unless_forced() {
    let bench = Bench::new();
    let edited = pristine() + "an edit\n";
    bench.header(&edited);
    bench.git(&["init", "--quiet"]);
    bench.git(&["add", "."]);
    bench.git(&["commit", "--quiet", "-m", "x"]);
    bench.header(&pristine());
    let mut said = bench.change(Forward, false);
    assert_eq!(bench.read(), pristine());
    // Committed, but not what the release ships.
    bench.header(&edited);
    said += &bench.change(Forward, false);
    assert_eq!(bench.read(), edited);
    said += &bench.change(Forward, true);
    assert_eq!(bench.read(), patched() + "an edit\n");
    said += &bench.change(Reverse, false);
    said += &bench.change(Reverse, true);
    assert_eq!(bench.read(), edited);
    insta::assert_snapshot!("dirty", said);
}

#[test]
fn what_does_not_apply_changes_nothing_even_if_forced() {
    let bench = Bench::new();
    let conflicting = pristine().replace("number 20\n", "number twenty\n");
    let returns = pristine().replace('\n', "\r\n");
    let mut said = String::new();
    for text in [conflicting, returns] {
        bench.header(&text);
        said += &bench.change(Forward, true);
        assert_eq!(bench.read(), text);
    }
    bench.header(&pristine());
    bench.remove("ours/patches/2.15.0/add_a_half.patch");
    said += &bench.change(Forward, true);
    assert_eq!(bench.read(), pristine());
    bench.write("tree/version.txt", "1.13.1\n");
    bench.header("another\n");
    said += &bench.change(Forward, true);
    insta::assert_snapshot!("refused", said);
}

#[test]
fn the_series_that_are_checked_in_read_as_diffs() {
    let root = crate::support::paths::root();
    for release in &Versions::read(root).unwrap().releases {
        let series = super::series::read(&root.join("patches").join(&release.series)).unwrap();
        let diffs = super::judge::diffs(&series.iter().collect::<Vec<_>>()).unwrap();
        assert!(
            diffs.iter().all(|(_, files)| !files.is_empty()),
            "{}",
            release.version
        );
    }
}
