//! Outputs: whole files, links, rights, and inputs that are refused.

use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;

/// The names in a folder, but for this one.
fn others(folder: &Path, but: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    entries.filter(|it| !it.ends_with(but)).collect()
}

fn output(path: &Path) -> Output {
    Output::new(path, &[]).unwrap()
}

#[test]
fn a_file_is_whole_or_as_it_was_and_nothing_is_left_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan");
    let parts = RefCell::new(Vec::new());
    for (text, succeeds) in [("first", true), ("other", false), ("last", true)] {
        let written = output(&path).write(|to| {
            parts.borrow_mut().extend(others(folder.path(), "plan"));
            to.write_all(text.as_bytes())?;
            let failed = io::ErrorKind::Other.into();
            if succeeds { Ok(()) } else { Err(failed) }
        });
        assert_eq!(written.is_ok(), succeeds);
        assert_eq!(others(folder.path(), "plan"), [""; 0].map(PathBuf::from));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "last");
    // Each time another name.
    let mut parts = parts.into_inner();
    parts.sort();
    parts.dedup();
    assert_eq!(parts.len(), 3);
}

#[test]
fn rights_are_the_user_s_or_private_while_it_is_written_too() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (shared, private) = (folder.path().join("shared"), folder.path().join("private"));
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    output(&shared).write(|to| to.write_all(b"text")).unwrap();
    assert_eq!(mode(&shared), mode(&plain));
    let written = output(&private).private().write(|_| {
        let part = others(folder.path(), "plain");
        let part = part.iter().find(|it| it.extension().is_some());
        assert_eq!(mode(part.unwrap()), 0o600);
        Ok(())
    });
    written.unwrap();
    assert_eq!(mode(&private), 0o600);
}

#[test]
fn a_link_stays_and_its_target_is_replaced_or_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("store")).unwrap();
    fs::write(at("store/old"), "text").unwrap();
    let handle = File::open(at("store/old")).unwrap();
    symlink("store/old", at("there")).unwrap();
    symlink("store/new", at("not-yet")).unwrap();
    symlink("there", at("twice")).unwrap();
    for (link, target) in [("there", "store/old"), ("not-yet", "store/new"), ("twice", "store/old")] {
        let written = output(&at(link)).write(|to| to.write_all(link.as_bytes()));
        written.unwrap();
        assert!(at(link).is_symlink(), "{link}");
        assert!(!at(target).is_symlink(), "{target}");
        assert_eq!(fs::read_to_string(at(target)).unwrap(), link);
    }
    // Replaced, not overwritten: who had it open reads on.
    assert_eq!(io::read_to_string(handle).unwrap(), "text");
    assert_eq!(others(&at("store"), "old"), [at("store/new")]);
}

#[test]
fn links_that_lead_to_themselves_and_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("ring");
    symlink("ring", &ring).unwrap();
    for path in [&ring, folder.path(), &folder.path().join("none/plan")] {
        let said = Output::new(path, &[]).unwrap_err().to_string();
        let start = format!("{} cannot be written: ", path.display());
        assert!(said.starts_with(&start), "{said}");
    }
    // A device may be read and written.
    Output::new(Path::new("/dev/null"), &[Path::new("/dev/null")]).unwrap();
}
