//! Clones that lack commits, or files.

use super::{args, fixture, git, propose};
use xtask_patchkit::fixture::{HEADER, patched};

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
fn a_shallow_clone_with_the_base() {
    let fixture = fixture();
    fixture.write("tree/new.txt", "new\n");
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "--quiet", "-m", "y"]);
    let shallow = fixture.folder.path().join("shallow");
    let from = format!("file://{}", fixture.tree().display());
    let to = shallow.to_str().unwrap();
    fixture.git(&["clone", "--quiet", "--depth=1", &from, to]);
    for (name, value) in [("user.name", "Some One"), ("user.email", "some@one")] {
        git(&shallow, &["config", name, value]);
    }
    let mut args = args(&fixture);
    args.source.clone_from(&shallow);
    let said = propose(&fixture, &args);
    assert!(said.contains("3 commits"), "{said}");
    let log = ["log", "--format=%s", "host-allocator-subclass"];
    assert_eq!(git(&shallow, &log).lines().count(), 4);
}

/// A clone that has commits and folders, and fetches a file when git reads it.
#[test]
fn a_partial_clone_that_lacks_the_base_s_files() {
    let fixture = fixture();
    fixture.git(&["config", "uploadpack.allowFilter", "true"]);
    fixture.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = fixture.folder.path().join("clone");
    let from = format!("file://{}", fixture.tree().display());
    let to = clone.to_str().unwrap();
    fixture.git(&[
        "clone",
        "--quiet",
        "--no-checkout",
        "--filter=blob:none",
        &from,
        to,
    ]);
    for (name, value) in [("user.name", "Some One"), ("user.email", "some@one")] {
        git(&clone, &["config", name, value]);
    }
    let mut args = args(&fixture);
    args.source.clone_from(&clone);
    let said = propose(&fixture, &args);
    assert!(said.contains("3 commits"), "{said}");
    let header = format!("host-allocator-subclass:{HEADER}");
    assert_eq!(git(&clone, &["show", &header]), patched());
}
