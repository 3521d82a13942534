//! Which folder it is, what is listed in it, and what goes.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::key::tests::key;
use crate::mark::mark;

fn folder() -> (tempfile::TempDir, Folder) {
    let above = tempfile::tempdir().unwrap();
    let folder = Folder(above.path().join("pinbuddy/plans"));
    folder.make().unwrap();
    (above, folder)
}

/// A plan of so many bytes that was last used so many hours ago.
fn put(folder: &Folder, program: &str, bytes: usize, hours: u64) -> PathBuf {
    let key = key(program, &[]);
    let path = folder.file(&key);
    let head = key.head();
    fs::write(&path, format!("{head}{}", "x".repeat(bytes - head.len()))).unwrap();
    age(&path, hours);
    path
}

fn age(path: &Path, hours: u64) {
    let then = SystemTime::now() - Duration::from_secs(3600 * hours);
    File::open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn the_folder_is_the_one_that_is_set_or_the_users_cache() {
    let of = |set: Option<&str>, cache: &str, home: &str| {
        let lookup = |name: &str| {
            let value = if name == "HOME" { home } else { cache };
            Some(value.to_owned())
        };
        Folder::of(set, lookup).map(|it| it.path().display().to_string())
    };
    assert_eq!(of(Some("/set"), "/c", "/h").as_deref(), Some("/set"));
    for relative in ["here", "~/plans", ""] {
        let found = of(Some(relative), "/c", "/h");
        assert_eq!(found.as_deref(), Some("/c/pinbuddy/plans"));
    }
    assert_eq!(of(None, "/c", "/h").as_deref(), Some("/c/pinbuddy/plans"));
    for none in ["", "relative"] {
        let found = of(None, none, "/h");
        assert_eq!(found.as_deref(), Some("/h/.cache/pinbuddy/plans"));
    }
    assert_eq!(of(None, "", ""), None);
}

#[test]
fn it_is_made_for_this_user_alone() {
    let (_above, folder) = folder();
    let mode = folder.path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    folder.make().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(Folder(folder.path().join("file/plans")).make().is_err());
}

#[test]
fn plans_are_listed_by_last_use_and_other_files_are_not() {
    let (_above, folder) = folder();
    let old = put(&folder, "old.py", 1000, 5);
    let new = put(&folder, "new.py", 1000, 1);
    for other in ["notes.txt", "a-pinned-0123456789abcdef.plan", "x.plan"] {
        fs::write(folder.path().join(other), "kept").unwrap();
    }
    let listed = || -> Vec<PathBuf> { folder.list().unwrap().into_iter().map(|it| it.path).collect() };
    assert_eq!(listed(), [new.clone(), old.clone()]);
    Folder::touch(&old);
    assert_eq!(listed(), [old, new]);
    assert_eq!(Folder(folder.path().join("none")).list().unwrap().len(), 0);
}

#[test]
fn a_damaged_file_is_found_by_its_name_and_no_other_file_is() {
    let (above, folder) = folder();
    let name = "a-pinned-0123456789abcdef";
    for file in [name, "x"] {
        fs::write(folder.path().join(format!("{file}.plan")), [0xff]).unwrap();
    }
    let outside = format!("{name}.plan");
    fs::write(above.path().join("pinbuddy").join(&outside), "").unwrap();
    assert_eq!(folder.named(name), Some(folder.path().join(outside)));
    for other in ["x", "b-pinned-0123456789abcdef", &format!("../{name}")] {
        assert_eq!(folder.named(other), None, "{other}");
    }
}

#[test]
fn the_least_recently_used_go_and_nothing_that_is_not_ours_or_cannot_be_removed() {
    let (_above, folder) = folder();
    let other = ["notes.txt", "a-pinned-0123456789abcdef.plan", "a-pinned-0123456789abcdef.plan.0.tmp"];
    for name in other {
        fs::write(folder.path().join(name), "kept").unwrap();
        age(&folder.path().join(name), 100);
    }
    let plans: Vec<PathBuf> = (0..7).map(|at| put(&folder, &format!("p{at}.py"), 1000, 10 - at)).collect();
    let there = || plans.iter().map(|it| usize::from(it.exists())).collect::<Vec<_>>();
    folder.trim(&plans[6]);
    assert_eq!(there(), [1; 7], "these are few");
    // A foreign file of our form of name counts, and stays.
    folder.trim_to(&plans[0], (6, u64::MAX), |it| fs::remove_file(it));
    assert_eq!(there(), [1, 0, 0, 1, 1, 1, 1]);
    // One that cannot be removed stays counted, and another goes.
    folder.trim_to(&plans[6], (5, u64::MAX), |path| match path == plans[0].as_path() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => fs::remove_file(path),
    });
    assert_eq!(there(), [1, 0, 0, 0, 1, 1, 1]);
    folder.trim_to(&plans[6], (usize::MAX, 2500), |it| fs::remove_file(it));
    assert_eq!(there(), [0, 0, 0, 0, 0, 1, 1]);
    for name in other {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn what_a_killed_write_left_goes_after_an_hour() {
    let (_above, folder) = folder();
    let plan = put(&folder, "a.py", 1000, 0);
    let name = plan.file_name().unwrap().to_str().unwrap();
    let at = |random| folder.path().join(format!("{name}.{random}.tmp"));
    let (old, new) = (at("0123456789abcdef"), at("0123456789abcdee"));
    for it in [&old, &new] {
        fs::write(it, "half").unwrap();
    }
    age(&old, 2);
    folder.trim(&plan);
    assert_eq!([old.exists(), new.exists(), plan.exists()], [false, true, true]);
}

#[test]
fn a_long_key_is_read_and_an_endless_line_is_not() {
    let (_above, folder) = folder();
    let long = "a".repeat(100_000);
    let key = key("a.py", &[&long]);
    fs::write(folder.file(&key), format!("{}plan", key.head())).unwrap();
    assert_eq!(head(&folder.file(&key)), Some(key.clone()));
    fs::write(folder.file(&key), "x".repeat(MOST_HEAD + 10)).unwrap();
    assert_eq!(head(&folder.file(&key)), None);
}

#[test]
fn a_mark_is_on_the_file_alone_and_goes_with_it() {
    let (_above, folder) = folder();
    let plan = put(&folder, "a.py", 1000, 1);
    let rights = || plan.metadata().unwrap().permissions().mode();
    let (before, listed) = (rights(), || folder.list().unwrap()[0].is_marked);
    for marked in [false, true, true, false, true] {
        mark(&File::open(&plan).unwrap(), marked).unwrap();
        assert_eq!([listed(), Folder::touch(&plan)], [marked; 2]);
    }
    assert_eq!(rights() & !0o100, before, "no other right is touched");
    fs::rename(put(&folder, "b.py", 1000, 1), &plan).unwrap();
    assert!(!listed());
}
