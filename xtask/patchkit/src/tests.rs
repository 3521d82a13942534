//! Series on trees in temporary folders, with the git that is installed.

mod bad_input;
mod rebase;

use std::fs;

use super::git::Direction::{Forward, Reverse};
use super::{commits, drift, files, lint, series};
use crate::fixture::{ADDED, Fixture, HEADER, patch, patched, pristine};
use crate::release::Versions;

#[test]
fn every_outcome_has_its_name() {
    let fixture = Fixture::new();
    let mut said = fixture.verify();
    fixture.header(&patched());
    said += &fixture.verify();
    fixture.header(&format!("{}more\n", pristine()));
    said += &fixture.verify();
    fixture.header(&pristine().replace('\n', "\r\n"));
    said += &fixture.verify();
    fixture.remove(&format!("tree/{HEADER}"));
    said += &fixture.verify();
    let unpinned = fixture.versions.releases[0].patched_sha256.clone();
    let mut other = Fixture::new();
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
    let fixture = Fixture::new();
    fixture.header(&format!(
        "a\nb\n{}",
        pristine().replace("number 20\n", "number twenty\n")
    ));
    insta::assert_snapshot!("conflict", fixture.verify());
    insta::assert_snapshot!("conflict_json", fixture.json());
}

#[test]
fn fuzz_is_a_conflict() {
    // The line that the hunk changes is as it was; one line of its context is not.
    let fixture = Fixture::new();
    fixture.header(&pristine().replace("number 6\n", "number six\n"));
    assert!(fixture.verify().contains("conflict"));
}

#[test]
fn an_added_file_that_is_there_already() {
    let fixture = Fixture::new();
    fixture.write(&format!("tree/{ADDED}"), "theirs\n");
    insta::assert_snapshot!("exists", fixture.verify());
}

#[test]
fn trees_that_are_no_release() {
    let fixture = Fixture::new();
    fixture.write("tree/version.txt", "2.16.0a0+git1234\n");
    let mut said = fixture.verify();
    assert!(said.contains("clean"), "the header's hash decides");
    fixture.header("something else\n");
    said = fixture.verify();
    fixture.remove("tree/version.txt");
    fixture.remove(&format!("tree/{HEADER}"));
    said += &fixture.verify();
    fs::remove_dir_all(fixture.tree()).unwrap();
    said += &fixture.verify();
    insta::assert_snapshot!("no_release", said);
}

#[test]
fn there_and_back_and_nothing_twice() {
    let fixture = Fixture::new();
    let mut said = fixture.change(Reverse, false);
    said += &fixture.change(Forward, false);
    assert_eq!(fixture.read(), patched());
    assert!(fixture.tree().join(ADDED).exists());
    said += &fixture.change(Forward, false);
    said += &fixture.change(Reverse, false);
    assert_eq!(fixture.read(), pristine());
    assert!(!fixture.tree().join(ADDED).exists());
    insta::assert_snapshot!("there_and_back", said);
}

#[test]
fn a_dirty_tree_is_left_unless_forced() {
    let fixture = Fixture::new();
    let edited = pristine() + "an edit\n";
    fixture.header(&edited);
    fixture.git(&["init", "--quiet"]);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "x"]);
    fixture.header(&pristine());
    let mut said = fixture.change(Forward, false);
    assert_eq!(fixture.read(), pristine());
    // Committed, but not what the release ships.
    fixture.header(&edited);
    said += &fixture.change(Forward, false);
    assert_eq!(fixture.read(), edited);
    said += &fixture.change(Forward, true);
    assert_eq!(fixture.read(), patched() + "an edit\n");
    said += &fixture.change(Reverse, false);
    said += &fixture.change(Reverse, true);
    assert_eq!(fixture.read(), edited);
    insta::assert_snapshot!("dirty", said);
}

#[test]
fn what_does_not_apply_changes_nothing_even_if_forced() {
    let fixture = Fixture::new();
    let conflicting = pristine().replace("number 20\n", "number twenty\n");
    let returns = pristine().replace('\n', "\r\n");
    let mut said = String::new();
    for text in [conflicting, returns] {
        fixture.header(&text);
        said += &fixture.change(Forward, true);
        assert_eq!(fixture.read(), text);
    }
    fixture.header(&pristine());
    fixture.remove("ours/patches/2.15.0/add_a_half.patch");
    said += &fixture.change(Forward, true);
    assert_eq!(fixture.read(), pristine());
    fixture.write("tree/version.txt", "1.13.1\n");
    fixture.header("another\n");
    said += &fixture.change(Forward, true);
    insta::assert_snapshot!("refused", said);
}

#[test]
fn drift_says_where_each_hunk_is() {
    let fixture = Fixture::new();
    let look = || {
        let drift = drift::look(&fixture.ours(), &fixture.versions, &fixture.tree(), None).unwrap();
        fixture.shown(&drift::describe(&drift))
    };
    let mut said = look();
    fixture.write("tree/version.txt", "2.17.0a0\n");
    let newer = pristine().replace("number 20\n", "number twenty\n");
    fixture.header(&format!("one more\n{newer}"));
    said += &look();
    fixture.remove(&format!("tree/{HEADER}"));
    said += &look();
    insta::assert_snapshot!("drift", said);
}

#[test]
fn the_patches_that_are_checked_in_are_as_they_should_be() {
    let root = xtask_support::paths::root();
    let wrong = lint::check(root, &Versions::read(root).unwrap()).unwrap();
    assert_eq!(wrong, [""; 0]);
    let fixture = Fixture::new();
    assert_eq!(
        lint::check(&fixture.ours(), &fixture.versions).unwrap(),
        [""; 0]
    );
}

#[test]
fn lint_names_everything_that_is_wrong() {
    let fixture = Fixture::new();
    let folder = "ours/patches/2.15.0";
    fixture.write(&format!("{folder}/0001-open.patch"), "");
    fixture.write("ours/patches/2.9.0/series", "");
    fixture.write(
        &format!("{folder}/series"),
        "say_five.patch\nsay_five.patch\ngone.patch\nadd_a_half.patch\nreformat.patch\n",
    );
    let added = "+x\n".repeat(61);
    let diff = format!(
        "--- a/{HEADER}\n+++ b/{HEADER}\n@@ -1,2 +1,63 @@\n-int a;\n+  int  a;\n{added} b\n\
         --- a/setup.py\n+++ b/setup.py\n@@ -1 +1 @@\n-a\n+b\n"
    );
    let patch = patch("Reformat: all of it", &diff)
        .replace("Why.\n", "")
        .replace("Forwarded: no", "Forwarded: ")
        .replace("From: pinbuddy developers", "From: somebody");
    fixture.write(&format!("{folder}/reformat.patch"), &patch);
    let wrong = lint::check(&fixture.ours(), &fixture.versions).unwrap();
    insta::assert_snapshot!("lint", wrong.join("\n"));
}

#[test]
fn commits_export_to_the_same_bytes_however_git_is_configured() {
    let fixture = Fixture::new();
    fixture.git(&["init", "--quiet"]);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "x"]);
    let tree = fixture.tree();
    let (ours, versions) = (fixture.ours(), &fixture.versions);
    let series = || {
        let folder = ours.join("patches/2.15.0");
        let names = lint::names(&folder).unwrap();
        let read = |name: &String| (name.clone(), files::read(&folder, name).unwrap());
        names.iter().map(read).collect::<files::Files>()
    };
    assert!(
        commits::export(&ours, versions, &tree, None).is_err(),
        "no commits yet"
    );
    commits::import(&ours, versions, &tree, None).unwrap();
    assert_eq!(fixture.read(), patched());
    assert!(
        commits::import(&ours, versions, &tree, None).is_err(),
        "twice"
    );
    commits::export(&ours, versions, &tree, None).unwrap();
    let first = series();
    let texts = first
        .values()
        .flatten()
        .map(|it| String::from_utf8_lossy(it));
    assert!(!texts.into_iter().any(|it| it.contains("1 file changed")));
    assert_eq!(lint::check(&ours, versions).unwrap(), [""; 0]);
    fixture.configure_git_oddly();
    fixture.git(&[
        "-c",
        "core.autocrlf=false",
        "reset",
        "--quiet",
        "--hard",
        "HEAD~2",
    ]);
    commits::import(&ours, versions, &tree, None).unwrap();
    let said = commits::export(&ours, versions, &tree, None).unwrap();
    assert_eq!(said, "2 patches for torch 2.15.0: 0 files changed\n");
    assert_eq!(series(), first);
}

/// `verify` would say so, but needs what a wheel ships.
#[test]
fn the_series_that_are_checked_in_can_be_read() {
    let root = xtask_support::paths::root();
    for release in &Versions::read(root).unwrap().releases {
        let series = series::read(&root.join("patches").join(&release.series)).unwrap();
        assert!(!series.is_empty(), "{}", release.version);
    }
}
