//! Small synthetic wheels: a valid one, and each kind of invalid one.

mod hostile;

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::name::WheelName;
use super::record::{self, Row};
use super::verify::{self, Expected};
use super::writer::{self, Contents, NewFile};
use xtask_support::hash::Digest;
use xtask_support::progress::Step;

const NAME: &str = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";
const HEADER: &str = "torch/include/ATen/core/CachingHostAllocator.h";
const INFO: &str = "torch-2.15.0.dist-info";

/// The files of a synthetic wheel, without RECORD.
struct Made {
    files: Vec<(String, Vec<u8>)>,
    /// Replaces the correct RECORD.
    record: Option<String>,
    folder: TempDir,
}

impl Made {
    fn good() -> Self {
        let version = "__version__ = '2.15.0+cu132'\ncuda: Optional[str] = '13.2'\nhip: Optional[str] = None\n";
        let files = [
            ("torch/version.py", version),
            ("torch/a,b.py", "untouched = 1\n"),
            ("torch/lib/libc10.so", "not really a library"),
            (HEADER, "upstream's header\n"),
            (&format!("{INFO}/METADATA"), "Metadata-Version: 2.4\nName: torch\nVersion: 2.15.0\n\n"),
            (&format!("{INFO}/WHEEL"), "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_28_x86_64\n"),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.into())).into();
        Self { files, record: None, folder: tempfile::tempdir().unwrap() }
    }

    fn set(mut self, name: &str, text: &str) -> Self {
        self.files.retain(|(present, _)| present != name);
        self.files.insert(0, (name.to_owned(), text.into()));
        self
    }

    fn true_record(&self) -> String {
        let mut rows: Vec<Row> = self.files.iter().map(|(name, bytes)| record::row(name, bytes)).collect();
        rows.push((format!("{INFO}/RECORD"), None));
        record::format(&rows)
    }

    fn record(mut self, change: impl FnOnce(String) -> String) -> Self {
        self.record = Some(change(self.true_record()));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let record = self.record.clone().unwrap_or_else(|| self.true_record());
        let record = (format!("{INFO}/RECORD"), record.into_bytes());
        for (name, bytes) in self.files.iter().chain([&record]) {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// Writes `bytes` as a wheel and verifies it; removes this machine's paths from the message.
    fn verify_bytes(&self, bytes: &[u8]) -> Result<verify::Facts, String> {
        fs::write(self.path(), bytes).unwrap();
        let name = WheelName::parse(NAME).unwrap();
        let cache = self.folder.path();
        let expected = Expected {
            name: &name,
            release: "2.15.0",
            header: HEADER,
            header_sha256: &Digest::of(b"upstream's header\n").hex(),
            cache,
        };
        let tree = cache.join("tree");
        fs::create_dir_all(&tree).unwrap();
        verify::verify(&self.path(), &expected, &tree, &Step::silent())
            .map_err(|error| format!("{error:#}").replace(&cache.display().to_string(), "CACHE"))
    }

    fn refusal(&self) -> String {
        self.verify_bytes(&self.bytes()).unwrap_err()
    }
}

#[test]
fn a_good_wheel_is_verified_and_extracted() {
    let made = Made::good();
    let facts = made.verify_bytes(&made.bytes()).unwrap();
    assert_eq!((facts.torch_version.as_str(), facts.cuda.as_str()), ("2.15.0+cu132", "13.2"));
    let tree = made.folder.path().join("tree");
    assert!(tree.join(HEADER).exists() && tree.join("torch/lib/libc10.so").exists());
    assert!(!tree.join("torch/version.py").exists(), "not needed to compile");
}

#[test]
fn what_record_does_not_bear_out() {
    let without = |text: String| {
        let kept = text.lines().filter(|line| !line.contains("a,b"));
        kept.map(|line| format!("{line}\n")).collect()
    };
    let swapped = |text: String| text.replace("sha256=", "sha256=x");
    let more = |text: String| format!("torch/gone.py,sha256=x,1\n{text}");
    let unhashed = |text: String| {
        let row = text.lines().find(|it| it.contains("a,b")).unwrap();
        text.replace(row, "\"torch/a,b.py\",,")
    };
    let changes: [(&str, &dyn Fn(String) -> String); 4] =
        [("no_hash", &unhashed), ("wrong_hash", &swapped), ("unlisted", &without), ("missing", &more)];
    for (name, change) in changes {
        insta::assert_snapshot!(name, Made::good().record(change).refusal());
    }
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("torch/version.py", SimpleFileOptions::default()).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    insta::assert_snapshot!("no_record", Made::good().verify_bytes(&bytes).unwrap_err());
}

#[test]
fn truncated_or_changed_bytes() {
    let made = Made::good();
    let bytes = made.bytes();
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        let error = made.verify_bytes(&bytes[..length]).unwrap_err();
        assert!(error.contains("is corrupt, truncated or tampered with"), "{length}: {error}");
    }
}

/// Each byte of a wheel in turn: what is taken all the same is unpacked as it was, all of it.
#[test]
fn each_changed_byte_is_refused_or_changes_nothing() {
    let made = Made::good();
    let bytes = made.bytes();
    let path = made.path();
    fs::write(&path, &bytes).unwrap();
    let good = unpacked(&path).unwrap();
    assert_eq!(good.len(), made.files.len() + 1);
    let mut taken = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        if let Ok(found) = unpacked(&path) {
            assert_eq!(found, good, "byte {at}");
            taken += 1;
        }
    }
    // Dates, rights and versions in the headers, of which a file has nothing.
    assert!(taken < bytes.len() / 4, "{taken} of {}", bytes.len());
}

/// Every file of a wheel that is verified.
fn unpacked(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut wheel = verify::open(path)?;
    wheel.verify_all(&Step::silent(), |_| Ok(None))?;
    let names: Vec<String> = wheel.archive.files().map(|it| it.name.clone()).collect();
    let read = |name: String| Ok((name.clone(), wheel.bytes(&name)?));
    names.into_iter().map(read).collect()
}

#[test]
fn names_that_leave_the_folder() {
    for name in ["../evil.py", "/etc/evil", "torch/../../evil", "torch\\evil.py", "C:evil", "torch//x.py", "./x"] {
        let made = Made::good().set(name, "x");
        let error = made.refusal();
        assert!(error.contains("a path that leaves the wheel's folder"), "{name}: {error}");
        assert!(!made.folder.path().join("evil.py").exists());
    }
    let error = Made::good().set("torch/version.py/x", "x").refusal();
    assert!(error.contains("both a file and a folder"), "{error}");
}

#[test]
fn more_than_four_gigabytes_and_a_symbolic_link() {
    let made = Made::good();
    fs::write(made.path(), made.bytes()).unwrap();
    // A hole in the file, not 5 GiB of disk.
    let file = fs::OpenOptions::new().write(true).open(made.path()).unwrap();
    file.set_len(5 << 30).unwrap();
    insta::assert_snapshot!("too_large", verify::open(&made.path()).err().unwrap());
    let mut zip = ZipWriter::new_append(Cursor::new(made.bytes())).unwrap();
    zip.add_symlink("torch/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let bytes = zip.finish().unwrap().into_inner();
    insta::assert_snapshot!("symlink", made.verify_bytes(&bytes).unwrap_err());
}

#[test]
fn another_build_or_release_or_a_header_that_drifted() {
    let torch = |version: &str, cuda: &str, hip: &str| {
        format!("__version__ = '{version}'\ncuda: Optional[str] = {cuda}\nhip: Optional[str] = {hip}\n")
    };
    let (version, none) = ("torch/version.py", "None");
    let [tags, metadata] = ["WHEEL", "METADATA"].map(|it| format!("{INFO}/{it}"));
    let other_tags = "Wheel-Version: 1.0\nTag: cp312-cp312-manylinux_2_28_x86_64\n";
    let other_version = "Metadata-Version: 2.4\nName: torch\nVersion: 2.14.1\n\n";
    for (name, file, text) in [
        ("cpu", version, torch("2.15.0+cpu", none, none)),
        ("rocm", version, torch("2.15.0+rocm7", none, "'7.1'")),
        ("release", version, torch("2.14.1+cu132", "'13.2'", none)),
        ("renamed", &tags, other_tags.to_owned()),
        ("renamed_version", &metadata, other_version.to_owned()),
        ("drifted", HEADER, "upstream's newer header\n".to_owned()),
    ] {
        insta::assert_snapshot!(name, Made::good().set(file, &text).refusal());
    }
    let fork = torch("2.15.0+cu132.pinbuddy.0.1.0", "'13.2'", none);
    let said = Made::good().set(version, &fork).refusal();
    assert!(said.contains("is not the official torch"), "{said}");
    assert!(said.contains("it is a fork already"), "{said}");
}

#[test]
fn the_fork_is_complete_in_order_and_the_same_every_time() {
    let made = Made::good();
    fs::write(made.path(), made.bytes()).unwrap();
    let stem = "torch-2.15.0+cu132.pinbuddy.0.1.0";
    let mut contents = Contents { stem: stem.into(), ..Contents::default() };
    for (name, text) in [
        ("torch/version.py", "new"),
        ("torch/include/pinbuddy/x.h", "ours"),
        (&format!("{stem}.dist-info/pinbuddy.json"), "{}"),
    ] {
        contents.files.insert(name.into(), NewFile::text(text));
    }
    let write = |name: &str| -> PathBuf {
        let out = made.folder.path().join(name);
        let mut base = verify::open(&made.path()).unwrap();
        writer::write(Some(&mut base), &contents, &out, &Step::silent()).unwrap();
        out
    };
    let (first, second) = (write("first.whl"), write("second.whl"));
    assert_eq!(fs::read(&first).unwrap(), fs::read(second).unwrap());
    let mut fork = verify::open(&first).unwrap();
    fork.verify_all(&Step::silent(), |_| Ok(None)).unwrap();
    let entries = fork.archive.entries.iter();
    let names: Vec<_> = entries.map(|entry| entry.name.as_str()).collect();
    insta::assert_snapshot!("order", names.join("\n"));
    let record = fork.archive.text(&format!("{stem}.dist-info/RECORD"));
    insta::assert_snapshot!("fork_record", record.unwrap().unwrap());
}
