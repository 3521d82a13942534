//! What processes with pinbuddy say that they hold: the lengths of ranges that they lock, in the kernel's list of locks.
//!
//! Anybody may lock such ranges: numbers are not trusted, and the caller must bound them.

use std::collections::BTreeMap;

/// Start of the range whose length is the MiB pinned. It spells a name.
pub const HELD: i64 = i64::from_be_bytes(*b"pinbuddy");
/// Start of the range whose length is a time, in seconds since 1970.
pub const TIME: i64 = HELD + (1 << 48);
/// The longest range.
pub const LONGEST: i64 = 1 << 40;
/// At most so many processes are counted.
pub const MOST_CLAIMS: usize = 4096;

const MIB: u64 = 1 << 20;

/// What a process says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Its id.
    pub process: u32,
    /// What it has pinned.
    pub bytes: u64,
    /// When it last pinned more, in seconds since 1970; 0 if unknown.
    pub grew: u64,
}

/// The claims in a list of locks, without those on the file that is listed as `mine`.
#[must_use]
pub fn claims(locks: &str, mine: Option<&str>) -> Vec<Claim> {
    let mut claims: BTreeMap<&str, Claim> = BTreeMap::new();
    for line in locks.lines() {
        // 1: POSIX  ADVISORY  READ 27696 00:01:1024 8100127873469539449 8100127873469539525
        let mut words = line.split_whitespace().skip(1);
        if [words.next(), words.next(), words.next()] != [Some("POSIX"), Some("ADVISORY"), Some("READ")] {
            continue;
        }
        let (Some(process), Some(file)) = (words.next(), words.next()) else {
            continue;
        };
        let mut number = || words.next()?.parse::<i64>().ok();
        let (Some(first), Some(last), Ok(process)) = (number(), number(), process.parse()) else {
            continue;
        };
        // The range includes `last`.
        let length = last.checked_sub(first).and_then(|it| it.checked_add(1));
        let length = length.unwrap_or(0);
        let is_known = claims.len() < MOST_CLAIMS || claims.contains_key(file);
        if !(1..LONGEST).contains(&length) || Some(file) == mine || !is_known {
            continue;
        }
        match first {
            HELD => claims.entry(file).or_default().bytes = length.unsigned_abs() * MIB,
            TIME => claims.entry(file).or_default().grew = length.unsigned_abs(),
            _ => continue,
        }
        claims.entry(file).or_default().process = process;
    }
    claims.into_values().filter(|it| it.bytes > 0).collect()
}
