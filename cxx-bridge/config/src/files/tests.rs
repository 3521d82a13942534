//! Files that may be used, and files that may not.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A folder of this user's; the user; and a path in it.
fn place() -> (tempfile::TempDir, u32, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let user = fs::metadata(folder.path()).unwrap().uid();
    let path = folder.path().join("site.toml");
    (folder, user, path)
}

fn write(path: &Path, text: &[u8], mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What is set with this value of the variable, and what is said.
fn found(user: u32, library: Option<&Path>, site: &Path) -> (Vec<(Origin, String)>, Vec<String>) {
    let library = library.map(Path::to_owned);
    let surroundings = Surroundings { user, library };
    let lookup = |name: &str| (name == VARIABLE).then(|| site.into());
    let (layers, warnings) = surroundings.layers(lookup);
    let sets = layers.into_iter().flat_map(|layer| {
        let origin = layer.origin;
        layer.sets.into_iter().map(move |set| (origin, set.value))
    });
    (sets.collect(), warnings)
}

#[test]
fn the_sites_file_is_read_before_the_wheels() {
    let (folder, user, path) = place();
    write(&path, b"BUDDY_MAX_MB = 8\n", 0o644);
    let library = folder.path().join("libtorch_pinbuddy.so");
    // What a permissive umask gives a wheel's files is as good as the library.
    write(&folder.path().join(BESIDE_LIBRARY), b"BUDDY_MAX_MB = 9\n", 0o664);
    let (sets, warnings) = found(user, Some(&library), &path);
    assert_eq!(sets, [(Origin::Site, "8".to_owned()), (Origin::Wheel, "9".to_owned())]);
    assert_eq!(warnings, [] as [String; 0]);
    let (sets, warnings) = found(user, Some(&library), Path::new(""));
    assert_eq!(sets, [(Origin::Wheel, "9".to_owned())]);
    assert_eq!(warnings, [] as [String; 0]);
}

#[test]
fn a_file_that_others_may_change_is_refused_in_one_line() {
    let (_folder, user, path) = place();
    for mode in [0o664, 0o646, 0o666] {
        write(&path, b"BUDDY_MAX_MB = 8\n", mode);
        let (sets, warnings) = found(user, None, &path);
        assert_eq!(sets, []);
        assert!(warnings.len() == 1 && warnings[0].contains(&format!("mode {mode:o}")), "{warnings:?}");
    }
    write(&path, b"BUDDY_MAX_MB = 8\n", 0o600);
    assert_eq!(found(user, None, &path).0.len(), 1);
    let owner = File::open(&path).unwrap();
    // Root's is everybody's to use.
    let expected = usize::from(user != 0);
    assert_eq!(usize::from(check(&owner, Some(user + 1)).is_err()), expected);
}

#[test]
fn what_is_no_file_of_text_is_refused_in_one_line() {
    let (folder, user, path) = place();
    let said = |path: &Path| {
        let (sets, warnings) = found(user, None, path);
        assert_eq!((sets.len(), warnings.len()), (0, 1), "{warnings:?}");
        warnings[0].clone()
    };
    assert!(said(&path).contains("PINBUDDY_SITE names it, and there is no such file"));
    assert!(said(folder.path()).contains("no regular file"));
    write(&path, &vec![b'#'; (64 << 10) + 1], 0o600);
    assert!(said(&path).contains("more than 64 KiB"));
    write(&path, b"\xff", 0o600);
    assert!(said(&path).contains("not UTF-8"));
    // Nobody writes into it: a reader would wait.
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(said(&pipe).contains("no regular file"));
}

#[test]
fn a_place_where_nothing_is_says_nothing() {
    let surroundings = Surroundings { user: 0, library: Some("/nowhere/libtorch_pinbuddy.so".into()) };
    // The usual place may have a file on this machine, so the variable is empty.
    let (layers, warnings) = surroundings.layers(|_| Some("".into()));
    assert_eq!((layers, warnings), (vec![], vec![]));
}
