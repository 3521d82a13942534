//! A series carried to other files: by git alone, with a conflict, and where all of it is there already.

use std::fs;
use std::path::PathBuf;

use crate::files::Files;
use crate::fixture::{ADDED, Fixture, HEADER, patched, pristine};
use crate::rebase::{Earlier, Goal, Job, carry, files};
use crate::repository::Repository;
use crate::tree::Tree;
use crate::{commits, series};

/// The fixture's series, carried to a header.
struct Carried {
    fixture: Fixture,
    to: String,
}

impl Carried {
    fn to(header: &str) -> Self {
        Self {
            fixture: Fixture::new(),
            to: header.to_owned(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.fixture.folder.path().join("rebase")
    }

    fn run(&self, earlier: Earlier) -> String {
        let folder = self.fixture.ours().join("patches/2.15.0");
        let series = series::read(&folder).unwrap();
        let job = Job {
            series: &series,
            from: "torch 2.15.0".into(),
            to: "torch 2.14.1".into(),
            command: "cargo xtask patch rebase --from 2.15.0 --to 2.14.1".into(),
            folder: self.folder(),
            next: "export it".into(),
        };
        let files = |text: &str| {
            let header = (HEADER.to_owned(), Some(text.as_bytes().to_vec()));
            let added = (text == patched()).then(|| b"new\n".to_vec());
            Files::from([header, (ADDED.to_owned(), added)])
        };
        let said = carry(&job, earlier, || Ok((files(&pristine()), files(&self.to))));
        let said = said.unwrap_or_else(|error| format!("error: {error}\n"));
        self.fixture.shown(&said)
    }

    fn header(&self) -> String {
        fs::read_to_string(self.folder().join(HEADER)).unwrap()
    }
}

#[test]
fn what_moved_is_carried_by_git_alone_and_again_the_same() {
    let moved = format!("one more\n{}", pristine());
    let carried = Carried::to(&moved);
    let said = carried.run(Earlier::Remade);
    assert_eq!(carried.header(), format!("one more\n{}", patched()));
    assert!(carried.folder().join(ADDED).exists());
    assert_eq!(carried.run(Earlier::Remade), said);
    insta::assert_snapshot!("rebase_clean", said);
}

#[test]
fn a_conflict_is_gone_on_with_and_never_lost() {
    let other = pristine().replace("number 20\n", "number twenty\n");
    let carried = Carried::to(&other);
    let mut said = carried.run(Earlier::Continued);
    said += &carried.run(Earlier::Remade);
    let conflict = carried.header();
    assert!(
        conflict.contains("<<<<<<<") && conflict.contains("|||||||"),
        "{conflict}"
    );
    // Neither the same command nor a --continue that comes too early changes anything.
    said += &carried.run(Earlier::Remade);
    said += &carried.run(Earlier::Continued);
    assert_eq!(carried.header(), conflict);
    let solved = other.replace("number 5\n", "number five\n");
    let solved = solved.replace("number twenty\n", "number twenty\nline number 20.5\n");
    fs::write(carried.folder().join(HEADER), &solved).unwrap();
    said += &carried.run(Earlier::Continued);
    assert_eq!(carried.header(), solved);
    // Now the folder has somebody's edits.
    said += &carried.run(Earlier::Remade);
    assert_eq!(carried.header(), solved);
    let again = carried.run(Earlier::Discarded);
    assert_eq!(carried.header(), conflict);
    assert!(said.contains(&again));
    insta::assert_snapshot!("rebase_conflict", said);
}

#[test]
fn git_itself_may_finish_it() {
    let carried = Carried::to(&pristine().replace("number 20\n", "number twenty\n"));
    carried.run(Earlier::Remade);
    let repository = Repository::at(&carried.folder()).unwrap();
    repository.git(&["rebase", "--skip"]).unwrap();
    let said = carried.run(Earlier::Continued);
    assert!(
        said.contains("1 as they were, 0 changed, 1 gone, 0 new"),
        "{said}"
    );
}

#[test]
fn what_is_there_already_is_dropped() {
    let first = pristine().replace("number 5\n", "number five\n");
    let said = Carried::to(&first).run(Earlier::Remade);
    assert!(
        said.contains("1 as they were, 0 changed, 1 gone, 0 new"),
        "{said}"
    );
    insta::assert_snapshot!(
        "rebase_nothing_left",
        Carried::to(&patched()).run(Earlier::Remade)
    );
}

#[test]
fn line_endings_are_not_ours_to_change() {
    let carried = Carried::to(&pristine().replace('\n', "\r\n"));
    insta::assert_snapshot!("rebase_line_endings", carried.run(Earlier::Remade));
    assert!(!carried.folder().exists());
}

/// Only the printed command changes the checkout.
#[test]
fn a_source_tree_is_only_read() {
    let fixture = Fixture::new();
    fixture.header(&format!("one more\n{}", pristine()));
    fixture.git(&["init", "--quiet"]);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "x"]);
    let tree = Tree::open(&fixture.tree(), &fixture.versions).unwrap();
    let series = series::read(&fixture.ours().join("patches/2.15.0")).unwrap();
    let folder = fixture.folder.path().join("rebase");
    let new = files(&tree, &series).unwrap();
    let job = Goal::Tree(tree).job("2.15.0", &series, &folder);
    let old = Files::from([(HEADER.to_owned(), Some(pristine().into_bytes()))]);
    carry(&job, Earlier::Remade, || Ok((old, new))).unwrap();
    fixture.git(&["diff", "--exit-code", "HEAD"]);
    let taken = std::process::Command::new("sh")
        .args(["-c", &job.next])
        .env("GIT_COMMITTER_NAME", "x")
        .env("GIT_COMMITTER_EMAIL", "x")
        .output()
        .unwrap();
    assert!(taken.status.success(), "{taken:?}");
    assert_eq!(fixture.read(), format!("one more\n{}", patched()));
    fixture.header("an edit\n");
    let tree = Tree::open(&fixture.tree(), &fixture.versions).unwrap();
    let said = files(&tree, &series).unwrap_err().to_string();
    insta::assert_snapshot!("rebase_local_changes", fixture.shown(&said));
}

/// The way back into `patches/`, for a release that had no series before.
#[test]
fn what_was_carried_can_be_exported() {
    let carried = Carried::to(&format!("one more\n{}", pristine()));
    carried.run(Earlier::Remade);
    let mut versions = carried.fixture.versions;
    let release = &mut versions.releases[0];
    release.version = "2.14.1".into();
    release.series = "2.14.1".into();
    release.header_sha256 = xtask_support::hash::Digest::of(carried.to.as_bytes()).hex();
    let source = carried.fixture.folder.path().join("rebase");
    let ours = carried.fixture.folder.path().join("ours");
    let said = commits::export(&ours, &versions, &source, Some("2.14.1")).unwrap();
    assert!(
        said.starts_with("2 patches for torch 2.14.1: 3 files changed"),
        "{said}"
    );
    let patch = fs::read_to_string(ours.join("patches/2.14.1/say_five.patch")).unwrap();
    assert!(patch.contains("@@ -3,7 +3,7 @@"), "{patch}");
}
