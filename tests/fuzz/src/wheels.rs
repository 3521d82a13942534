//! The readers of wheels: RECORD, the small texts, and the archive.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;

use tempfile::TempDir;
use xtask_support::progress::Step;
use xtask_wheel::metadata::{self, TorchVersion};
use xtask_wheel::name::WheelName;
use xtask_wheel::record::{self, Row};
use xtask_wheel::verify;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// RECORD: what was read is written and read again, the same.
pub fn record(bytes: &[u8]) {
    let Ok(rows) = record::parse(&crate::text(bytes)) else {
        return;
    };
    let listed: Vec<Row> = rows.clone().into_iter().collect();
    let again = record::parse(&record::format(&listed)).unwrap();
    assert_eq!(again, rows);
}

/// METADATA, WHEEL, version.py and the name: what is rewritten says what it was told to, and nothing
/// else of it has changed.
pub fn metadata(bytes: &[u8]) {
    let text = crate::text(bytes);
    let (licences, link) = (["licences/ours".to_owned()], "Project-URL: Source, https://git.example\n");
    if let Ok(rewritten) = metadata::rewrite_metadata(&text, "9.9+ours", &licences, link) {
        assert_eq!(metadata::header(&rewritten, "Version"), Some("9.9+ours"));
        assert!(rewritten.contains(link));
    }
    let tags = ["cp311-cp311-linux_x86_64".to_owned()];
    if let Ok(rewritten) = metadata::rewrite_wheel(&text, &tags) {
        assert_eq!(metadata::tags(&rewritten), tags);
    }
    if let Ok(rewritten) = metadata::rewrite_version_py(&text, "9.9+ours") {
        let version = TorchVersion::parse(&rewritten).map(|it| it.version);
        assert!(version.is_ok_and(|it| it == "9.9+ours"));
    }
    if let Ok(version) = TorchVersion::parse(&text) {
        let _ = metadata::fork_version(&version.version, "ours");
    }
    let first = text.lines().next().unwrap_or_default();
    if let Ok(name) = WheelName::parse(first) {
        assert!(!name.tags().is_empty());
        let again = WheelName::parse(&name.to_string());
        assert!(again.is_ok_and(|it| it == name), "{name}");
    }
}

/// An archive: one that is let through has plain names, each once, and every byte that RECORD
/// promises; nothing unpacks to more than it said.
pub fn zip(bytes: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(crate::folder).path();
        let path = folder.join("torch-1-py3-none-any.whl");
        fs::write(&path, bytes).unwrap();
        let Ok(mut wheel) = verify::open(&path) else {
            return;
        };
        let mut names = HashSet::new();
        for entry in &wheel.archive.entries {
            let plain = entry.name.trim_end_matches('/').split('/');
            assert!(plain.clone().all(|it| !matches!(it, "" | "." | "..")));
            assert!(names.insert(entry.name.clone()), "{:?} twice", entry.name);
        }
        let announced: u64 = wheel.archive.entries.iter().map(|it| it.size).sum();
        // A small file may say that it unpacks to gigabytes; that it does is another test's.
        if announced < 1 << 20 {
            let _ = wheel.verify_all(&Step::silent(), |_| Ok(None));
        }
    });
}
