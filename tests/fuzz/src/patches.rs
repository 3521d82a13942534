//! The reader of series and of what git says of their patches.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;

use tempfile::TempDir;
use xtask_patchkit::series;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Reads `bytes` as a series of one patch: no path leaves the tree, and nothing is named twice.
pub fn run(bytes: &[u8]) {
    let text = crate::text(bytes);
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(crate::folder).path();
        // What stands before the first empty line is the list, and the rest the patch.
        let (list, patch) = text.split_once("\n\n").unwrap_or(("one.patch", &text));
        fs::write(folder.join("series"), list).unwrap();
        fs::write(folder.join("one.patch"), patch).unwrap();
        let Ok(patches) = series::read(folder) else {
            return;
        };
        let mut names = HashSet::new();
        for patch in patches {
            assert!(names.insert(patch.name.clone()), "{} twice", patch.name);
            assert_eq!(patch.path.parent(), Some(folder), "{:?}", patch.path);
            patch.files.keys().for_each(|path| check_path(path));
        }
    });
}

fn check_path(path: &str) {
    let plain = path.split('/').all(|it| !matches!(it, "" | "." | ".."));
    assert!(plain, "a path that leaves the tree: {path:?}");
}
