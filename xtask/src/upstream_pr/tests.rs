//! Proposals for a small checkout, with the git that is installed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::upstream_pr::{Kind, UpstreamPr};
use crate::support::hash::Digest;
use xtask_patchkit::fixture::{ADDED, Fixture, HEADER, git, patched, pristine};

const NOTE: &str = "docs/note.md";

/// A fixture whose tree is a checkout on the branch `main`, and that has a series for pull requests.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.versions.pull_request = Some("upstream".to_owned());
    add_series(&fixture, "upstream", "Note it", "of two lines");
    fixture.write(&format!("tree/{NOTE}"), "a note\n");
    let bench = r#"{"hit_pair_ratio": {"8MiB": 0.25}, "context": {"date": "2026-11-22", "processor": "P",
        "cores": 2, "memory_mib": 4, "cuda": "simulated", "fork": "2.15.0+f",
        "spread": {"hit_pair_ratio": {"8MiB": [0.2, 0.3]}}}}"#;
    fixture.write("bench.json", bench);
    fixture.commit();
    identify(&fixture.tree());
    fixture
}

/// A series that adds a line to the note.
fn add_series(fixture: &Fixture, name: &str, subject: &str, line: &str) {
    let hunk = format!("@@ -1,1 +1,2 @@\n a note\n+{line}\n");
    fixture.add_series(name, subject, NOTE, &hunk);
}

fn identify(checkout: &Path) {
    for (name, value) in [("user.name", "Some One"), ("user.email", "some@one")] {
        git(checkout, &["config", name, value]);
    }
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
    let said = super::make(&fixture.ours(), &fixture.versions, args);
    let said = fixture.shown(&said.unwrap_or_else(|error| format!("error: {error:#}\n")));
    // A commit's name has the time in it.
    let Some((before, (_, after))) = said
        .split_once("HEAD (")
        .map(|(it, rest)| (it, rest.split_at(12)))
    else {
        return said;
    };
    format!("{before}HEAD (HASH{after}")
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

/// Of those, what a proposal leaves as it is.
fn kept(tree: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = files(tree);
    all.retain(|path, _| {
        let text = path.strip_prefix(tree).unwrap().to_str().unwrap();
        !text.starts_with(".git/objects/") && !text.ends_with("refs/heads/host-allocator-subclass")
    });
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
    let before = kept(&tree);
    let said = propose(&fixture, &args(&fixture));
    assert_eq!(before, kept(&tree), "{said}");
    insta::assert_snapshot!("seam", said);

    let messages = [
        "log",
        "--reverse",
        "--format=%an <%ae> %cn%n%B",
        "main..host-allocator-subclass",
    ];
    let said = "Some One <some@one> Some One\nSUBJECT\n\nWhy.\n\n";
    let each = ["Say five", "Add a half", "Note it"].map(|it| said.replace("SUBJECT", it));
    assert_eq!(git(&tree, &messages), each.concat());
    let branch = |path: &str| git(&tree, &["show", &format!("host-allocator-subclass:{path}")]);
    assert_eq!(branch(HEADER), patched());
    assert_eq!(branch(ADDED), "new\n");
    assert_eq!(branch(NOTE), "a note\nof two lines\n");

    let out = fixture.folder.path().join("out");
    let names = [
        "0001-Say-five.patch",
        "0002-Add-a-half.patch",
        "0003-Note-it.patch",
        "PR_BODY.md",
    ];
    let paths = names.map(|it| out.join(it));
    assert_eq!(files(&out).into_keys().collect::<Vec<_>>(), paths);
    let mut am = vec!["-c", "user.name=Some One", "-c", "user.email=some@one"];
    am.extend(["am", "--quiet", "--committer-date-is-author-date"]);
    am.extend(paths[..3].iter().map(|it| it.to_str().unwrap()));
    git(&clone, &am);
    assert_eq!(
        git(&clone, &["rev-parse", "HEAD"]),
        git(&tree, &["rev-parse", "host-allocator-subclass"]),
        "the patches make the same commits"
    );
    let body = fs::read_to_string(&paths[3]).unwrap();
    for part in [
        "Related to #181094.\n",
        "## What\n\n**Say five**\n\nWhy.\n\n**Add a half**\n\nWhy.\n\n**Note it**\n\nWhy.\n\n## What stays as it is\n",
        "```\n\nNot run on these patches yet: `cargo xtask test --only seam`.\n\n## Benchmark\n",
        "beside the built-in allocator. Measured on 2026-11-22: P, 2 cores, 4 MiB, CUDA simulated, torch 2.15.0+f;",
        "| allocate + free, 8 MiB, time, over stock's | 0.25 (0.20 to 0.30) |\n\ncc\n",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[test]
fn a_dry_run_changes_no_file_at_all() {
    let fixture = fixture();
    let before = files(fixture.folder.path());
    let args = UpstreamPr {
        dry_run: true,
        ..args(&fixture)
    };
    let said = propose(&fixture, &args);
    assert_eq!(files(fixture.folder.path()), before);
    assert!(
        said.ends_with("nothing was changed (--dry-run)\n") && said.contains("3 commits"),
        "{said}"
    );
}

#[test]
fn another_base_branch_and_form() {
    let fixture = fixture();
    fixture.git(&["checkout", "--quiet", "-b", "other"]);
    let form = "Fixes #ISSUE\n\n[ ] I have read it.\n";
    fixture.write("tree/.github/PULL_REQUEST_TEMPLATE.md", form);
    // A header that no release ships, with the series' lines as they were.
    fixture.header(&format!("{}more\n", pristine()));
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "y"]);
    fixture.git(&["checkout", "--quiet", "main"]);
    let args = UpstreamPr {
        base: "other".into(),
        branch: Some("mine".into()),
        ..args(&fixture)
    };
    let said = propose(&fixture, &args);
    assert!(
        said.contains("a header that is another than that release's"),
        "{said}"
    );
    assert_eq!(fixture.read(), pristine(), "main is still checked out");
    let header = git(&fixture.tree(), &["show", &format!("mine:{HEADER}")]);
    assert_eq!(header, patched() + "more\n");
    let body = fs::read_to_string(args.out.join("PR_BODY.md")).unwrap();
    assert!(
        body.ends_with("\n[ ] I have read it.\n") && !body.contains("Fixes #ISSUE"),
        "{body}"
    );
}

/// One that has the last commit only, and one that has no file until git reads it.
#[test]
fn shallow_and_partial_clones() {
    let fixture = fixture();
    fixture.git(&["commit", "--quiet", "--allow-empty", "-m", "y"]);
    for name in ["allowFilter", "allowAnySHA1InWant"] {
        fixture.git(&["config", &format!("uploadpack.{name}"), "true"]);
    }
    for option in ["--depth=1", "--filter=blob:none"] {
        let clone = fixture.folder.path().join(option);
        let from = format!("file://{}", fixture.tree().display());
        fixture.git(&[
            "clone",
            "--quiet",
            "--no-checkout",
            option,
            &from,
            clone.to_str().unwrap(),
        ]);
        identify(&clone);
        let args = UpstreamPr {
            source: clone.clone(),
            out: fixture.folder.path().join(format!("out{option}")),
            ..args(&fixture)
        };
        let said = propose(&fixture, &args);
        assert!(said.contains("3 commits"), "{said}");
        let header = format!("host-allocator-subclass:{HEADER}");
        assert_eq!(git(&clone, &["show", &header]), patched());
        let said = propose(
            &fixture,
            &UpstreamPr {
                base: "v2.15.0".into(),
                ..args
            },
        );
        let found = if option == "--depth=1" {
            "a shallow clone, without it"
        } else {
            "no branch, tag"
        };
        assert!(said.contains(found), "{said}");
    }
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
    for text in [
        pristine().replace("number 20\n", "number twenty\n"),
        patched(),
    ] {
        fixture.header(&text);
        fixture.git(&["commit", "--quiet", "-a", "-m", "y"]);
        said += &propose(&fixture, &args(&fixture));
    }
    fixture.header(&pristine());
    fixture.write(&format!("tree/{NOTE}"), "no note\n");
    fixture.git(&["commit", "--quiet", "-a", "-m", "z"]);
    said += &propose(&fixture, &args(&fixture));
    assert!(!fixture.folder.path().join("out").exists());
    insta::assert_snapshot!("refused", said);
}

/// `--kind full`: the series for source builds, and our own files.
#[test]
fn the_whole_fork_with_our_files() {
    let mut fixture = fixture();
    fixture.versions.releases[0].source_series = vec!["source".to_owned()];
    add_series(&fixture, "source", "Build it", "on building");
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
    for arguments in [["init", "--quiet"], ["add", "."]] {
        git(&fixture.ours(), &arguments);
    }
    fixture.write("ours/cxx-bridge/left.txt", "what a tool has left\n");
    let args = UpstreamPr {
        kind: Kind::Full,
        ..args(&fixture)
    };
    let said = propose(&fixture, &args);
    assert!(said.contains("pinbuddy, 4 commits"), "{said}");
    let tree = fixture.tree();
    insta::assert_snapshot!(git(&tree, &["ls-tree", "-r", "--name-only", "pinbuddy", "third_party"]), @r"
    third_party/pinbuddy/Cargo.lock
    third_party/pinbuddy/Cargo.toml
    third_party/pinbuddy/LICENSE
    third_party/pinbuddy/NOTICE
    third_party/pinbuddy/cxx-bridge/Cargo.toml
    third_party/pinbuddy/cxx-bridge/src/lib.rs
    third_party/pinbuddy/rust-core/engine/Cargo.toml
    third_party/pinbuddy/rust-core/engine/src/lib.rs
    ");
    let note = git(&tree, &["show", "pinbuddy:docs/note.md"]);
    assert_eq!(
        note, "a note\non building\n",
        "what source builds apply, and not what is for upstream"
    );
    let body = fs::read_to_string(args.out.join("PR_BODY.md")).unwrap();
    assert!(
        body.contains("third_party/pinbuddy") && !body.contains("pytorchbot"),
        "{body}"
    );
}
