//! `--kind full`: the series for source builds, and our own files.

use std::fs;

use super::{NOTE, args, fixture, git, propose};
use crate::cli::upstream_pr::Kind;
use xtask_patchkit::fixture::patch;

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
