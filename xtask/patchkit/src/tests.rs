//! Series on trees in temporary folders, with the git that is installed.

use std::fs;

use crate::apply;
use crate::fixture::{ADDED, Fixture, HEADER, patched, pristine};
use crate::release::Release;
use crate::series::{self, Patch};
use crate::tree::Tree;

impl Fixture {
    fn series(&self) -> Vec<Patch> {
        series::read(&self.ours().join("patches/2.15.0")).unwrap()
    }

    fn release(&self) -> &Release {
        &self.versions.releases[0]
    }

    /// What `patch apply` says.
    fn apply(&self) -> String {
        let said = Tree::open(&self.tree(), &self.versions).and_then(|tree| {
            let release = tree.release(&self.versions)?;
            apply::to_tree(&tree, HEADER, release, &self.series())
        });
        self.shown(&said.unwrap_or_else(|error| format!("error: {error:#}\n")))
    }
}

#[test]
fn a_tree_gets_the_series_once() {
    let fixture = Fixture::new();
    let said = fixture.apply() + &fixture.apply();
    assert_eq!(fixture.read(), patched());
    assert_eq!(fs::read(fixture.tree().join(ADDED)).unwrap(), b"new\n");
    insta::assert_snapshot!("applied", said);
}

/// As a build has them.
#[test]
fn a_wheels_headers_are_patched_exactly_and_give_what_is_pinned() {
    let mut fixture = Fixture::new();
    let inside = "torch/include/ATen/core/A.h";
    let headers = |fixture: &Fixture, text: &str| {
        fixture.write(&format!("wheel/{inside}"), text);
        let wheel = fixture.folder.path().join("wheel");
        let release = fixture.release();
        apply::to_headers(&fixture.series(), &wheel, inside, release).map_err(|it| it.to_string())
    };
    let after = headers(&fixture, &pristine()).unwrap();
    assert_eq!(after[inside], patched().into_bytes());
    assert_eq!(after["torch/include/ATen/core/B.h"], b"new\n");
    let other = pristine().replace("number 6\n", "number six\n");
    let said = headers(&fixture, &other).unwrap_err();
    assert!(said.contains("in line 4 of"), "no fuzz: {said}");
    let said = headers(&fixture, &patched()).unwrap_err();
    assert!(said.contains("say_five.patch does not apply"), "{said}");
    fixture.versions.releases[0].patched_sha256 = "a".repeat(64);
    let said = headers(&fixture, &pristine()).unwrap_err();
    assert!(said.contains("is not what patches/versions.toml pins"), "{said}");
}

#[test]
fn what_does_not_fit_exactly_changes_nothing() {
    let mut said = String::new();
    for text in [
        pristine().replace("number 20\n", "number twenty\n"),
        // The changed line is as it was; one line around it is not.
        pristine().replace("number 6\n", "number six\n"),
        pristine().replace('\n', "\r\n"),
        format!("{}more\n", pristine()),
    ] {
        let fixture = Fixture::new();
        fixture.header(&text);
        said += &fixture.apply();
        assert_eq!(fixture.read(), text);
        assert!(!fixture.tree().join(ADDED).exists());
    }
    let fixture = Fixture::new();
    fs::remove_file(fixture.tree().join(HEADER)).unwrap();
    said += &fixture.apply();
    fixture.header(&pristine());
    fixture.write(&format!("tree/{ADDED}"), "theirs\n");
    said += &fixture.apply();
    let mut fixture = Fixture::new();
    fixture.versions.releases[0].patched_sha256 = String::new();
    said += &fixture.apply();
    assert_eq!(fixture.read(), pristine());
    insta::assert_snapshot!("refused", said);
}

#[test]
fn trees_that_are_no_release() {
    let fixture = Fixture::new();
    fixture.write("tree/version.txt", "2.16.0a0+git1234\n");
    let tree = Tree::open(&fixture.tree(), &fixture.versions).unwrap();
    let release = tree.release(&fixture.versions).unwrap();
    assert_eq!(release.version, "2.15.0");
    fixture.header("something else\n");
    let mut said = fixture.apply();
    fs::remove_dir_all(fixture.tree()).unwrap();
    said += &fixture.apply();
    insta::assert_snapshot!("no_release", said);
}
