//! Archives that no wheel builder writes: sizes that lie, bombs, entries that share bytes, what pip cannot unpack.
//!
//! They are written by hand, header by header, since the zip crate writes only what is sound.

use std::io::Write as _;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::record::{self, Row, row};
use crate::verify;
use xtask_support::progress::Step;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// An entry, as its headers describe it.
#[derive(Clone)]
struct Entry {
    name: String,
    flags: u16,
    method: u16,
    crc: u32,
    /// The size that it says it unpacks to.
    size: u64,
    /// Its bytes in the archive.
    packed: Vec<u8>,
    /// The offset of its local header, if it has none of its own.
    inside: Option<usize>,
}

impl Entry {
    fn stored(name: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            flags: 0,
            method: STORED,
            crc: crc(bytes),
            size: bytes.len() as u64,
            packed: bytes.to_vec(),
            inside: None,
        }
    }

    fn deflated(name: &str, bytes: &[u8]) -> Self {
        Self { method: DEFLATED, packed: deflate(bytes), ..Self::stored(name, bytes) }
    }

    /// What both headers have in common, from the flags to the length of the extra field.
    fn common(&self) -> Vec<u8> {
        let size = u32::try_from(self.size).unwrap_or(u32::MAX);
        let numbers = [self.crc, self.packed.len() as u32, size];
        let lengths = [self.name.len() as u16, self.extra().len() as u16];
        [
            &self.flags.to_le_bytes()[..],
            &self.method.to_le_bytes(),
            &[0, 0, 0x21, 0x58],
            &numbers.map(u32::to_le_bytes).concat(),
            &lengths.map(u16::to_le_bytes).concat(),
        ]
        .concat()
    }

    /// A size that 32 bits cannot hold, with the packed one where the local header asks for both.
    fn extra(&self) -> Vec<u8> {
        if u32::try_from(self.size).is_ok() {
            return Vec::new();
        }
        let sizes = [self.size, self.packed.len() as u64].map(u64::to_le_bytes);
        [&[1, 0, 16, 0][..], &sizes.concat()].concat()
    }

    fn local(&self) -> Vec<u8> {
        let name = self.name.as_bytes();
        [b"PK\x03\x04\x2d\0", &*self.common(), name, &self.extra(), &self.packed].concat()
    }

    fn central(&self, at: usize) -> Vec<u8> {
        let at = (at as u32).to_le_bytes();
        let name = self.name.as_bytes();
        [b"PK\x01\x02\x2d\0\x2d\0", &*self.common(), &[0; 10], &at, name, &self.extra()].concat()
    }
}

/// The archive of these entries.
fn archive(entries: &[Entry]) -> Vec<u8> {
    let (mut bytes, mut list) = (Vec::new(), Vec::new());
    for entry in entries {
        let at = entry.inside.unwrap_or(bytes.len());
        if entry.inside.is_none() {
            bytes.extend(entry.local());
        }
        list.extend(entry.central(at));
    }
    let count = (entries.len() as u16).to_le_bytes();
    let end = [
        &b"PK\x05\x06\0\0\0\0"[..],
        &count,
        &count,
        &(list.len() as u32).to_le_bytes(),
        &(bytes.len() as u32).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    [bytes, list, end].concat()
}

/// CRC-32 and deflate, as the zip crate computes them.
fn by_the_crate(bytes: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("x", SimpleFileOptions::default()).unwrap();
    zip.write_all(bytes).unwrap();
    zip.finish().unwrap().into_inner()
}

fn crc(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(by_the_crate(bytes)[14..18].try_into().unwrap())
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let zip = by_the_crate(bytes);
    let packed = u32::from_le_bytes(zip[18..22].try_into().unwrap()) as usize;
    zip[31..31 + packed].to_vec()
}

/// RECORD for these files.
fn listed(rows: &[Row]) -> Entry {
    let path = "torch-1.dist-info/RECORD";
    let rows = [rows, &[(path.to_owned(), None)]].concat();
    Entry::stored(path, record::format(&rows).as_bytes())
}

/// Opens a wheel of these bytes.
fn open(bytes: &[u8]) -> anyhow::Result<verify::Checked> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("torch-1-py3-none-any.whl");
    std::fs::write(&file, bytes).unwrap();
    verify::open(&file)
}

/// Verifies every byte of it.
fn verify(bytes: &[u8]) -> Result<(), String> {
    let verified = open(bytes).and_then(|mut it| it.verify_all(&Step::silent(), |_| Ok(None)));
    verified.map_err(|why| format!("{why:#}"))
}

/// Asserts that the refusal says all of this.
fn assert_refused(entries: &[Entry], said: &[&str]) {
    let refusal = verify(&archive(entries)).unwrap_err();
    for words in said {
        assert!(refusal.contains(words), "{words:?} in {refusal}");
    }
}

#[test]
fn what_is_written_by_hand_is_sound_before_it_is_not() {
    let files = [Entry::stored("torch/a.py", b"a = 1\n"), Entry::deflated("torch/b.py", &[b'b'; 5000])];
    let rows = [row("torch/a.py", b"a = 1\n"), row("torch/b.py", &[b'b'; 5000])];
    let [a, b] = files;
    assert_eq!(verify(&archive(&[a, b, listed(&rows)])), Ok(()));
}

#[test]
fn sizes_beyond_the_limits_are_refused_before_anything_is_unpacked() {
    let bomb = |name: &str, size| Entry { size, ..Entry::deflated(name, b"small") };
    let gib = 1 << 30;
    let largest = 8 * gib;
    assert_refused(&[bomb("torch/a", largest + 1)], &["\"torch/a\" unpacks to 8589934593 bytes"]);
    // No single one is too large, and the fifth is one byte too many.
    let mut five: Vec<Entry> = (0..4).map(|n| bomb(&format!("torch/{n}"), largest)).collect();
    let allowed = verify(&archive(&five)).unwrap_err();
    assert!(!allowed.contains("unpacks to"), "{allowed}");
    five.push(bomb("torch/last", 1));
    assert_refused(&five, &["\"torch/last\" unpacks to 1 bytes"]);
}

#[test]
fn what_unpacks_to_more_or_less_than_it_says_is_refused() {
    let whole = vec![0; 1 << 20];
    let lying = |size: usize| Entry { size: size as u64, ..Entry::deflated("torch/a", &whole) };
    // RECORD bears out the truth, the size that is announced, or what is read to see through it.
    for (size, rows, said) in [
        (10, [whole.len(), 10, 11], "larger than its declared"),
        (whole.len() + 1, [whole.len(), whole.len() + 1, 11], "unpacks to less than the 1048577 bytes"),
    ] {
        for length in rows {
            let rows = listed(&[row("torch/a", &vec![0; length])]);
            assert_refused(&[lying(size), rows], &["torch/a", said]);
        }
    }
}

#[test]
fn a_bomb_is_unpacked_no_further_than_to_see_that_it_is_one() {
    let whole = vec![0; 16 << 20];
    let bomb = Entry { size: 10, ..Entry::deflated("torch/a", &whole) };
    let entries = [bomb, listed(&[row("torch/a", &whole)])];
    let mut wheel = open(&archive(&entries)).unwrap();
    let mut unpacked = Vec::new();
    assert!(wheel.archive.stream(0, &mut unpacked).is_err());
    assert!(unpacked.len() <= 11, "{}", unpacked.len());
}

#[test]
fn entries_that_share_bytes_or_a_name_are_encrypted_or_packed_as_wheels_are_not_are_refused() {
    let within = Entry::stored("torch/b", b"b");
    let around = Entry::stored("torch/a", &[b"before", &*within.local(), b"after"].concat());
    let at = around.local().len() - b"after".len() - within.local().len();
    assert_refused(&[around, Entry { inside: Some(at), ..within }], &["overlapping entries"]);
    let [one, other] = [b"1", b"2"].map(|text| Entry::stored("torch/a", text));
    // Wherever RECORD agrees with one of them.
    for text in [b"1", b"2"] {
        let rows = listed(&[row("torch/a", text)]);
        assert_refused(&[one.clone(), other.clone(), rows], &["one name"]);
    }
    assert_refused(&[Entry { flags: 1, ..one.clone() }], &["an encrypted entry: \"torch/a\""]);
    // Shrunk, Deflate64, bzip2, LZMA, Zstandard, and one that nobody has.
    for method in [1, 9, 12, 14, 93, 4711] {
        assert_refused(&[Entry { method, ..one.clone() }], &["torch/a"]);
    }
}

#[test]
fn headers_that_disagree_are_refused() {
    let entry = Entry::stored("torch/a", b"text");
    let good = archive(&[entry, listed(&[row("torch/a", b"text")])]);
    assert_eq!(verify(&good), Ok(()));
    // Of the first local header: the method, the size, a letter of the name.
    for (at, byte) in [(8, 8), (22, 5), (36, b'b')] {
        let mut bytes = good.clone();
        assert_ne!(bytes[at], byte);
        bytes[at] = byte;
        assert!(verify(&bytes).is_err(), "byte {at}");
    }
}
