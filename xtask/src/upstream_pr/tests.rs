//! Pull requests on checkouts in temporary folders, with the git that is installed.

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

#[test]
fn what_is_refused_changes_nothing() {
    let fixture = fixture();
    let before = files(fixture.folder.path());
    let mut said = String::new();
    let mut refused = |change: &dyn Fn(&mut UpstreamPr)| {
        let mut args = args(&fixture);
        change(&mut args);
        said += &propose(&fixture, &args);
    };
    refused(&|args| args.source = args.source.join("nowhere"));
    refused(&|args| args.source = args.source.join("docs"));
    refused(&|args| args.base = "v9.9".into());
    refused(&|args| args.branch = Some("main".into()));
    refused(&|args| args.branch = Some("a b".into()));
    refused(&|args| args.out = args.source.clone());
    refused(&|args| args.bench = Some(args.source.join("version.txt")));
    assert_eq!(files(fixture.folder.path()), before);
    insta::assert_snapshot!("refused", said);
}

#[test]
fn a_series_that_does_not_fit() {
    let mut said = String::new();
    for text in [
        pristine().replace("number 20\n", "number twenty\n"),
        patched(),
        pristine().replace('\n', "\r\n"),
    ] {
        let fixture = fixture();
        fixture.header(&text);
        fixture.git(&[
            "-c",
            "core.autocrlf=false",
            "commit",
            "--quiet",
            "-a",
            "-m",
            "y",
        ]);
        said += &propose(&fixture, &args(&fixture));
    }
    let fixture = fixture();
    fixture.write(&format!("tree/{NOTE}"), "no note\n");
    fixture.git(&["commit", "--quiet", "-a", "-m", "y"]);
    said += &propose(&fixture, &args(&fixture));
    assert!(!fixture.folder.path().join("out").exists());
    insta::assert_snapshot!("no_fit", said);
}

#[test]
fn a_shallow_clone_without_the_base() {
    let fixture = fixture();
    let shallow = fixture.folder.path().join("shallow");
    let from = format!("file://{}", fixture.tree().display());
    fixture.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        &from,
        shallow.to_str().unwrap(),
    ]);
    let mut args = args(&fixture);
    args.source = shallow;
    args.base = "v2.15.0".into();
    let said = propose(&fixture, &args);
    assert!(said.contains("a shallow clone, without it"), "{said}");
}

#[test]
fn the_whole_fork_with_our_files() {
    let mut fixture = fixture();
    fixture.versions.releases[0].source_series = vec!["source".to_owned()];
    let diff = format!("--- a/{NOTE}\n+++ b/{NOTE}\n@@ -1,1 +1,2 @@\n a note\n+on building\n");
    fixture.write("ours/patches/source/series", "build_it.patch\n");
    fixture.write(
        "ours/patches/source/build_it.patch",
        &patch("Build it", &diff),
    );
    let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"rust-core/engine\", \"cxx-bridge\", \"xtask\"]\n";
    fixture.write("ours/Cargo.toml", manifest);
    let bridge =
        "[features]\ntorch = []\n[dependencies]\npinbuddy-core.path = \"../rust-core/engine\"\n";
    let mut lock = "version = 4\n".to_owned();
    for (folder, name, more, needs) in [
        (
            "cxx-bridge",
            "pinbuddy-bridge",
            bridge,
            "dependencies = [\"pinbuddy-core\"]\n",
        ),
        ("rust-core/engine", "pinbuddy-core", "", ""),
        ("xtask", "xtask", "", ""),
    ] {
        let package = format!("name = \"{name}\"\nversion = \"0.1.0\"\n");
        lock += &format!("\n[[package]]\n{package}{needs}");
        let manifest = format!("[package]\n{package}edition = \"2024\"\n{more}");
        fixture.write(&format!("ours/{folder}/Cargo.toml"), &manifest);
        fixture.write(&format!("ours/{folder}/src/lib.rs"), "");
    }
    for name in ["LICENSE", "NOTICE"] {
        fixture.write(&format!("ours/{name}"), "text\n");
    }
    fixture.write("ours/Cargo.lock", &lock);
    let mut args = args(&fixture);
    args.kind = Kind::Full;
    insta::assert_snapshot!("full", propose(&fixture, &args));
    let tree = fixture.tree();
    let listed = git(
        &tree,
        &["ls-tree", "-r", "--name-only", "pinbuddy", "third_party"],
    );
    insta::assert_snapshot!("vendored", listed);
    assert_eq!(
        git(&tree, &["show", "pinbuddy:docs/note.md"]),
        "a note\non building\n",
        "what source builds apply, and not what is for upstream"
    );
    let body = fs::read_to_string(args.out.join("PR_BODY.md")).unwrap();
    assert!(!body.contains("pytorchbot"));
}

/// An adapter as lintrunner's: it says a line of JSON for each line with a word in it.
const ADAPTER: &str = r#"
import json, sys
word, paths = sys.argv[1], open(sys.argv[2][1:]).read().split()
for path in paths:
    for number, line in enumerate(open(path), 1):
        if word in line:
            print(json.dumps({"path": path, "line": number, "char": None, "code": "X", "severity": "error",
                "name": word, "original": None, "replacement": None, "description": "no " + word}))
"#;

fn with_linters(fixture: &Fixture, word: &str) {
    fixture.write("tree/tools/linter/adapters/words.py", ADAPTER);
    let linter = |code: &str, pattern: &str, command: &str, init: &str| {
        format!(
            "[[linter]]\ncode = '{code}'\ninclude_patterns = ['{pattern}']\n\
             command = ['python3', 'tools/linter/adapters/words.py', '{command}', '@{{{{PATHSFILE}}}}']\n{init}\n"
        )
    };
    let tidy =
        "init_command = ['python3', 'tools/linter/adapters/s3_init.py', '--linter=clang-tidy']";
    let config = linter("WORDS", "**", word, "")
        + &linter("CLEAN", "**/*.h", "nothing like it", "")
        + &linter("ELSEWHERE", "aten/*.h", "line", "")
        + &linter("TIDY", "aten/**/*.h", "line", tidy);
    fixture.write("tree/.lintrunner.toml", &config);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "linters"]);
}

#[test]
fn linters_say_what_is_new_only() {
    let fixture = fixture();
    // In the header before and after.
    with_linters(&fixture, "number 7");
    let said = propose(&fixture, &args(&fixture));
    let (_, said) = said.split_once("linters of the tree:\n").unwrap();
    insta::assert_snapshot!("linters", said);

    let fixture = self::fixture();
    // Added by the first patch.
    with_linters(&fixture, "number five");
    let before = files(&fixture.tree().join(".git/refs"));
    insta::assert_snapshot!("lint_refused", propose(&fixture, &args(&fixture)));
    assert_eq!(files(&fixture.tree().join(".git/refs")), before);
    assert!(!fixture.folder.path().join("out").exists());
}
