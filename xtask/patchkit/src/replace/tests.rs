//! Files in a temporary folder, and what is left of them when something fails.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn files(list: &[(&str, Option<&str>)]) -> Files {
    let one = |(path, text): &(&str, Option<&str>)| {
        ((*path).to_owned(), text.map(|it| it.as_bytes().to_vec()))
    };
    list.iter().map(one).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|it| it.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn changed_added_and_removed() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let before = files(&[("a", Some("1")), ("b", Some("1")), ("e", Some("1"))]);
    let after = files(&[
        ("a", Some("2")),
        ("b", None),
        ("c/d", Some("2")),
        ("e", Some("1")),
    ]);
    for name in ["a", "b", "e"] {
        fs::write(root.join(name), "1").unwrap();
    }
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o751)).unwrap();
    assert_eq!(replace(root, &before, &after).unwrap(), ["a", "b", "c/d"]);
    assert_eq!(names(root), ["a", "c", "e"]);
    assert_eq!(fs::read_to_string(root.join("c/d")).unwrap(), "2");
    let mode = fs::metadata(root.join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
}

#[test]
fn a_failure_half_way_leaves_all_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    // The last cannot be removed, since it is not there, whatever `before` says.
    let before = files(&[("a", Some("1")), ("b/c", None), ("z", Some("1"))]);
    let after = files(&[("a", Some("2")), ("b/c", Some("2")), ("z", None)]);
    fs::write(root.join("a"), "1").unwrap();
    replace(root, &before, &after).unwrap_err();
    assert_eq!(names(root), ["a"]);
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "1");
}

#[test]
fn what_nobody_may_write_is_left() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let (before, after) = (files(&[("a", Some("1"))]), files(&[("a", Some("2"))]));
    fs::write(root.join("a"), "1").unwrap();
    fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o444)).unwrap();
    let said = replace(root, &before, &after).unwrap_err().to_string();
    insta::assert_snapshot!(said.replace(&root.display().to_string(), "/tree"));
    fs::remove_file(root.join("a")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", root.join("a")).unwrap();
    assert!(
        replace(root, &before, &after)
            .unwrap_err()
            .to_string()
            .contains("plain file")
    );
    // A read-only file system shows only when it is written to.
    let error = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
    let said = not_written(
        Path::new("/tree"),
        anyhow::Error::new(error).context("writing /tree/a"),
    );
    assert!(
        said.to_string().starts_with("/tree cannot be written to"),
        "{said}"
    );
}
