//! A copy of some bytes, changed here and there: what random bytes alone never come to look like.

use pinbuddy_model::choices::Choices;

/// Words that mean something to one reader or another.
const WORDS: [&[u8]; 22] = [
    b"18446744073709551615",
    b"9223372036854775807",
    b"-1",
    b"0",
    b"0-4294967295",
    b"1e999",
    b"../",
    b"/",
    b"\\",
    b"\n",
    b"\0",
    b"\"",
    b",",
    b" kB",
    b"max",
    b"unlimited",
    b"@@ -0,0 +0,0 @@\n",
    b"--- /dev/null\n+++ b/",
    b"sha256=",
    b"PK\x03\x04",
    b"{\"t\":",
    b"\xff\xfe",
];

/// A changed copy of one of `seeds`, as `choices` say.
pub fn mutated(seeds: &[Vec<u8>], choices: &mut Choices<'_>) -> Vec<u8> {
    let Some(seed) = (!seeds.is_empty()).then(|| choices.pick().get(seeds)) else {
        return Vec::new();
    };
    let mut bytes = seed.clone();
    for _ in 0..=choices.below(6) {
        change(&mut bytes, seeds, choices);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], choices: &mut Choices<'_>) {
    let at = choices.below(bytes.len() + 1);
    let end = at + choices.below(bytes.len() - at + 1).min(choices.below(64) + 1);
    let end = end.min(bytes.len());
    match choices.below(6) {
        0 => drop(bytes.drain(at..end)),
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << choices.below(8);
            }
        }
        2 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 => drop(bytes.splice(at..end, choices.pick().get(&WORDS).iter().copied())),
        4 => bytes.truncate(at),
        _ => {
            let other = choices.pick().get(seeds);
            let from = choices.below(other.len() + 1);
            let part = &other[from..other.len().min(from + 64)];
            bytes.splice(at..at, part.iter().copied());
        }
    }
}
