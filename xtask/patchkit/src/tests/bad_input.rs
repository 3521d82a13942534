//! Trees that a series cannot be applied to: the messages, and that no tree is changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::commits;
use crate::fixture::{ADDED, Fixture, HEADER, patched, pristine};
use crate::git::Direction::{Forward, Reverse};
use xtask_support::hash::Digest;

/// Hash and mode, so that a difference can be read.
type Files = BTreeMap<PathBuf, (String, u32)>;

/// All files below a folder, git's own included. Without the index, which git refreshes whenever it looks.
fn files(folder: &Path) -> Files {
    let mut all = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if !path.ends_with(".git/index") {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            all.insert(path.clone(), (Digest::of_file(&path).unwrap().hex(), mode));
        }
    }
    all
}

impl Fixture {
    fn commits(&self, act: crate::Told) -> String {
        let said = act(&self.ours(), &self.versions, &self.tree(), None);
        self.shown(&said.unwrap_or_else(|error| format!("error: {error:#}\n")))
    }

    fn commit(&self) {
        self.git(&["init", "--quiet"]);
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "-m", "x"]);
    }

    /// The messages of all commands; none of the commands may change the tree.
    fn all_commands(&self) -> String {
        let before = files(&self.tree());
        let mut said = format!("verify: {}", self.verify());
        said += &format!("apply: {}", self.change(Forward, false));
        said += &format!("unapply: {}", self.change(Reverse, false));
        if self.tree().join(".git").exists() {
            said += &format!("import: {}", self.commits(commits::import));
            said += &format!("export: {}", self.commits(commits::export));
        }
        assert_eq!(files(&self.tree()), before, "{said}");
        said
    }
}

#[test]
fn an_unknown_version() {
    let fixture = Fixture::new();
    fixture.write("tree/version.txt", "1.13.1\n");
    fixture.header("something else\n");
    fixture.commit();
    insta::assert_snapshot!("bad_unknown_version", fixture.all_commands());
}

#[test]
fn local_changes() {
    let fixture = Fixture::new();
    fixture.header(&(pristine() + "an edit\n"));
    fixture.commit();
    fixture.header(&pristine());
    insta::assert_snapshot!("bad_local_changes", fixture.all_commands());
}

#[test]
fn line_endings() {
    let fixture = Fixture::new();
    fixture.header(&pristine().replace('\n', "\r\n"));
    fixture.commit();
    insta::assert_snapshot!("bad_line_endings", fixture.all_commands());
}

#[test]
fn a_tree_that_may_not_be_written() {
    let fixture = Fixture::new();
    let folder = fixture.tree().join(HEADER);
    let folder = folder.parent().unwrap();
    let mode = |mode| fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let said = fixture.all_commands();
    mode(0o755);
    insta::assert_snapshot!("bad_read_only", said);
}

#[test]
fn a_series_that_names_a_missing_patch() {
    let fixture = Fixture::new();
    fixture.commit();
    fixture.remove("ours/patches/2.15.0/add_a_half.patch");
    insta::assert_snapshot!("bad_missing_patch", fixture.all_commands());
}

/// The clone lacks the commit below the series.
#[test]
fn a_shallow_clone_without_the_base() {
    let fixture = Fixture::new();
    fixture.commit();
    fixture.commits(commits::import);
    let url = format!("file://{}", fixture.tree().display());
    let shallow = fixture.folder.path().join("shallow");
    let clone = ["clone", "--quiet", "--depth=2", &url];
    fixture.git(&[&clone[..], &[shallow.to_str().unwrap()]].concat());
    fs::remove_dir_all(fixture.tree()).unwrap();
    fs::rename(shallow, fixture.tree()).unwrap();
    let series = files(&fixture.ours());
    let before = files(&fixture.tree());
    let said = fixture.commits(commits::export);
    assert_eq!(files(&fixture.tree()), before);
    assert_eq!(files(&fixture.ours()), series);
    insta::assert_snapshot!("bad_shallow", said);
}

/// `git am` would commit staged changes, and `git am --abort` would throw both away.
#[test]
fn what_is_staged_and_what_is_under_way_is_not_lost() {
    let fixture = Fixture::new();
    fixture.commit();
    fixture.write("tree/version.txt", "2.15.0a0 changed\n");
    fixture.git(&["add", "version.txt"]);
    let before = files(&fixture.tree());
    let mut said = fixture.commits(commits::import);
    assert_eq!(files(&fixture.tree()), before);
    fixture.git(&["diff", "--cached", "--exit-code", "--", HEADER]);
    fixture.git(&["commit", "--quiet", "-m", "y"]);
    fs::create_dir(fixture.tree().join(".git/rebase-apply")).unwrap();
    said += &fixture.commits(commits::import);
    assert!(fixture.tree().join(".git/rebase-apply").exists());
    insta::assert_snapshot!("bad_unfinished", said);
}

#[test]
fn what_a_killed_apply_has_added_is_no_conflict() {
    let fixture = Fixture::new();
    fixture.write(&format!("tree/{ADDED}"), "new\n");
    assert!(fixture.verify().contains("clean"));
    assert!(fixture.change(Forward, false).starts_with("applied"));
    assert_eq!(fixture.read(), patched());
    assert!(fixture.change(Reverse, false).starts_with("took"));
    assert!(!fixture.tree().join(ADDED).exists());
}

const TREE: &str = "PINBUDDY_TEST_TREE";

/// Applies and unapplies until it is killed. Does nothing unless the test below starts it.
#[test]
fn apply_without_end() {
    let Some(folder) = std::env::var_os(TREE) else {
        return;
    };
    let fixture = Fixture::at(Path::new(&folder));
    loop {
        fixture.change(Forward, false);
        fixture.change(Reverse, false);
    }
}

#[test]
fn killed_at_any_moment() {
    let fixture = Fixture::new();
    fixture.commit();
    let mut states = Vec::new();
    for round in 0..24 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::bad_input::apply_without_end"])
            .env(TREE, fixture.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + 7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let (header, added) = (fixture.read(), fixture.tree().join(ADDED).exists());
        assert!(header == pristine() || header == patched(), "{header}");
        assert!(
            added || header == pristine(),
            "it needs the file that it adds"
        );
        states.push(header == patched());
        // The next apply works, whatever was left.
        fixture.change(Forward, false);
        assert_eq!(fixture.read(), patched());
        if round % 2 == 0 {
            fixture.change(Reverse, false);
            assert!(!fixture.tree().join(ADDED).exists());
        }
    }
    fixture.change(Reverse, false);
    fixture.git(&["diff", "--exit-code"]);
    let names = files(&fixture.tree());
    let left = names
        .keys()
        .filter(|it| it.display().to_string().contains(".pinbuddy"));
    assert_eq!(left.count(), 0);
    assert!(
        states.contains(&true) && states.contains(&false),
        "{states:?}"
    );
}
