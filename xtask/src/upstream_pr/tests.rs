//! Pull requests on checkouts in temporary folders, with the git that is installed.

mod clones;
mod full;
mod refusals;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::upstream_pr::{Kind, UpstreamPr};
use crate::support::hash::Digest;
use xtask_patchkit::fixture::{ADDED, Fixture, HEADER, patch, patched, pristine};

const NOTE: &str = "docs/note.md";

/// A fixture whose tree is a checkout on the branch `main`, and that has a series for pull requests.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.versions.pull_request = Some("upstream".to_owned());
    let diff = format!("--- a/{NOTE}\n+++ b/{NOTE}\n@@ -1,1 +1,2 @@\n a note\n+of two lines\n");
    fixture.write("ours/patches/upstream/series", "note_it.patch\n");
    fixture.write(
        "ours/patches/upstream/note_it.patch",
        &patch("Note it", &diff),
    );
    fixture.write(&format!("tree/{NOTE}"), "a note\n");
    let bench = r#"{"hit_pair_ratio": {"8MiB": 0.25}, "context": {"date": "2026-11-22", "processor": "P",
        "cores": 2, "memory_mib": 4, "cuda": "simulated", "fork": "2.15.0+f",
        "spread": {"hit_pair_ratio": {"8MiB": [0.2, 0.3]}}}}"#;
    fixture.write("bench.json", bench);
    fixture.git(&["init", "--quiet", "--initial-branch=main"]);
    for (name, value) in [("user.name", "Some One"), ("user.email", "some@one")] {
        fixture.git(&["config", name, value]);
    }
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "x"]);
    fixture
}

fn args(fixture: &Fixture) -> UpstreamPr {
    UpstreamPr {
        source: fixture.tree(),
        kind: Kind::Seam,
        base: "HEAD".into(),
        branch: None,
        out: fixture.folder.path().join("out"),
        bench: Some(fixture.folder.path().join("bench.json")),
        dry_run: false,
    }
}

fn propose(fixture: &Fixture, args: &UpstreamPr) -> String {
    let python = Path::new("python3");
    match super::make(&fixture.ours(), &fixture.versions, args, python) {
        Ok(said) => without_hashes(&fixture.shown(&said)),
        Err(error) => fixture.shown(&format!("error: {error:#}\n")),
    }
}

/// A commit's name has the time in it.
fn without_hashes(text: &str) -> String {
    let words = text.split_inclusive(['(', ')']);
    let each = words.map(|word| {
        let name = word.trim_end_matches(')');
        let is_hash = name.len() == 12 && name.chars().all(|it| it.is_ascii_hexdigit());
        if is_hash {
            "HASH)".to_owned()
        } else {
            word.to_owned()
        }
    });
    each.collect()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every file below a folder, by its hash.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), Digest::of_file(&path).unwrap().hex());
        }
    }
    all
}

#[test]
fn a_branch_and_patches_and_nothing_else_changes() {
    let fixture = fixture();
    let tree = fixture.tree();
    // What somebody is working on: staged, changed and new.
    fixture.write("tree/staged.txt", "staged\n");
    fixture.git(&["add", "staged.txt"]);
    fixture.write(&format!("tree/{NOTE}"), "another note\n");
    fixture.write("tree/new.txt", "new\n");
    let clone = fixture.folder.path().join("clone");
    git(&tree, &["clone", "--quiet", ".", clone.to_str().unwrap()]);
    fixture.configure_git_oddly();
    let kept = |files: BTreeMap<PathBuf, String>| -> BTreeMap<PathBuf, String> {
        let added = |path: &Path| {
            let text = path.strip_prefix(&tree).unwrap().to_str().unwrap();
            text.starts_with(".git/objects/")
                || text.ends_with("refs/heads/host-allocator-subclass")
        };
        files.into_iter().filter(|(path, _)| !added(path)).collect()
    };
    let before = kept(files(&tree));
    let said = propose(&fixture, &args(&fixture));
    let after = kept(files(&tree));
    assert_eq!(before, after, "{said}");
    insta::assert_snapshot!("seam", said);

    let messages = [
        "log",
        "--reverse",
        "--format=%an <%ae> %cn%n%B",
        "main..host-allocator-subclass",
    ];
    insta::assert_snapshot!("messages", git(&tree, &messages));
    let branch = |path: &str| git(&tree, &["show", &format!("host-allocator-subclass:{path}")]);
    assert_eq!(branch(HEADER), patched());
    assert_eq!(branch(ADDED), "new\n");
    assert_eq!(branch(NOTE), "a note\nof two lines\n");

    let out = fixture.folder.path().join("out");
    let names: Vec<_> = files(&out).into_keys().collect();
    let names: Vec<_> = names
        .iter()
        .map(|it| it.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "0001-Say-five.patch",
            "0002-Add-a-half.patch",
            "0003-Note-it.patch",
            "PR_BODY.md"
        ]
    );
    let mut am = vec![
        "-c",
        "user.name=Some One",
        "-c",
        "user.email=some@one",
        "am",
        "--quiet",
    ];
    am.push("--committer-date-is-author-date");
    let patches: Vec<_> = names[..3].iter().map(|it| out.join(it)).collect();
    am.extend(patches.iter().map(|it| it.to_str().unwrap()));
    git(&clone, &am);
    assert_eq!(
        git(&clone, &["rev-parse", "HEAD"]),
        git(&tree, &["rev-parse", "host-allocator-subclass"]),
        "the patches make the same commits"
    );
    let body = fs::read_to_string(out.join("PR_BODY.md")).unwrap();
    insta::assert_snapshot!("body", body);
}

#[test]
fn a_dry_run_changes_no_file_at_all() {
    let fixture = fixture();
    let before = files(fixture.folder.path());
    let mut args = args(&fixture);
    args.dry_run = true;
    let said = propose(&fixture, &args);
    assert_eq!(files(fixture.folder.path()), before);
    insta::assert_snapshot!("dry_run", said);
}

#[test]
fn another_base_branch_and_form() {
    let fixture = fixture();
    fixture.git(&["checkout", "--quiet", "-b", "other"]);
    fixture.write(
        "tree/.github/PULL_REQUEST_TEMPLATE.md",
        "Fixes #ISSUE\n\n[ ] I have read it.\n",
    );
    // A header that no release ships, with the series' lines as they were.
    fixture.header(&format!("{}more\n", pristine()));
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "y"]);
    fixture.git(&["checkout", "--quiet", "main"]);
    let mut args = args(&fixture);
    args.base = "other".into();
    args.branch = Some("mine".into());
    insta::assert_snapshot!("other_base", propose(&fixture, &args));
    assert_eq!(fixture.read(), pristine(), "main is still checked out");
    let header = git(&fixture.tree(), &["show", &format!("mine:{HEADER}")]);
    assert_eq!(header, patched() + "more\n");
    let body = fs::read_to_string(args.out.join("PR_BODY.md")).unwrap();
    assert!(body.ends_with("\n[ ] I have read it.\n") && !body.contains("Fixes #ISSUE"));
}

/// clang-format itself is not asked: it would have to be downloaded.
#[test]
fn a_clang_format_that_cannot_be_had_is_said() {
    let fixture = fixture();
    fixture.write("tree/.clang-format", "BasedOnStyle: LLVM\n");
    let binaries =
        r#"{"clang-format": {"Linux": {"download_url": "https://x/99.99.99/clang-format"}}}"#;
    fixture.write("tree/tools/linter/adapters/s3_init_config.json", binaries);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "layout"]);
    let args = args(&fixture);
    let python = Path::new("/nowhere/python");
    let said = super::make(&fixture.ours(), &fixture.versions, &args, python).unwrap();
    assert!(
        said.contains("- not run: clang-format==99.99.99: "),
        "{said}"
    );
    let body = fs::read_to_string(args.out.join("PR_BODY.md")).unwrap();
    assert!(
        body.contains("- not run: clang-format==99.99.99: "),
        "{body}"
    );
}
