//! Where a wheel differs from another that is known to be good: in which entry, and at which byte.
//!
//! Contents are compared where RECORD promises both wheels the same; so a fork is compared with the official wheel it was made
//! of as well. Everything else, headers and lists, is compared with the same wheel alone.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::reader::Archive;
use crate::verify::{self, Checked};

/// The first difference, in words; nothing where all that can be compared is equal.
pub fn first(file: &Path, good: &Path) -> Result<Option<String>> {
    let mut reference = verify::open(good)?;
    // Headers may be what is wrong.
    if let Ok(mut wheel) = verify::open(file) {
        if let Some(place) = in_contents(&mut wheel, &mut reference)? {
            return Ok(Some(place));
        }
        if wheel.stem != reference.stem {
            return Ok(None);
        }
    }
    let Some(at) = first_byte(file, good)? else {
        return Ok(None);
    };
    let around = place(&mut reference.archive, at)?;
    Ok(Some(format!("byte {at} of the file, {around}")))
}

fn in_contents(wheel: &mut Checked, good: &mut Checked) -> Result<Option<String>> {
    for index in 0..wheel.archive.entries.len() {
        let name = wheel.archive.entries[index].name.clone();
        let promised = wheel.rows.get(&name);
        if promised.is_none_or(|it| it.is_none() || good.rows.get(&name) != Some(it)) {
            continue;
        }
        let is_good = wheel.archive.stream(index, &mut std::io::sink());
        if is_good.is_ok_and(|(digest, size)| wheel.promises(&name, digest, size)) {
            continue;
        }
        // As far as it unpacks.
        let mut found = Vec::new();
        let _ = wheel.archive.stream(index, &mut found);
        let expected = good.bytes(&name)?;
        let at = found.iter().zip(&expected).position(|(a, b)| a != b);
        let at = at.unwrap_or(found.len().min(expected.len()));
        return Ok(Some(format!(
            "byte {at} of the {} of {name}: {}, expected {}",
            expected.len(),
            byte(found.get(at)),
            byte(expected.get(at)),
        )));
    }
    Ok(None)
}

fn byte(it: Option<&u8>) -> String {
    it.map_or_else(|| "no more".to_owned(), |it| format!("{it:#04x}"))
}

/// The first byte of the files that differs.
fn first_byte(file: &Path, good: &Path) -> Result<Option<u64>> {
    let open =
        |path: &Path| File::open(path).with_context(|| format!("opening {}", path.display()));
    let (mut file, mut good, mut at) = (open(file)?, open(good)?, 0);
    loop {
        let [one, other] = [&mut file, &mut good].map(|it| {
            let mut part = Vec::new();
            it.take(1 << 20).read_to_end(&mut part).map(|_| part)
        });
        let (one, other) = (one?, other?);
        if one != other {
            let within = one.iter().zip(&other).position(|(a, b)| a != b);
            let within = within.unwrap_or(one.len().min(other.len()));
            return Ok(Some(at + within as u64));
        }
        if one.is_empty() {
            return Ok(None);
        }
        at += one.len() as u64;
    }
}

/// What there is at this byte of a wheel.
fn place(archive: &mut Archive, at: u64) -> Result<String> {
    for index in 0..archive.zip.len() {
        let entry = archive.zip.by_index_raw(index)?;
        let data = entry.data_start().unwrap_or(u64::MAX);
        let name = entry.name()?;
        if (entry.header_start()..data).contains(&at) {
            return Ok(format!("in the header of {name}"));
        }
        if (data..data.saturating_add(entry.compressed_size())).contains(&at) {
            return Ok(format!("in {name} as it is packed"));
        }
    }
    Ok("in the list of entries at its end".to_owned())
}
