//! The first line of a trace: the file's format and version.
//!
//! A file without a header is of version 1. A header may have other fields, as notes of the program that
//! wrote it; only the version decides how events are read. Knows no event.

use std::io::{self, Write};

use serde::Deserialize;
use serde_json::Value;

use super::error::{Excerpt, What};

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 1;

/// What the header calls the format.
pub(super) const FORMAT: &str = "pinbuddy-trace";

#[derive(Deserialize)]
struct Fields {
    format: Option<Value>,
    version: Option<Value>,
}

/// `None` for a line that is no header; else whether the events after it can be read.
pub(super) fn parse(text: &str) -> Option<Result<(), What>> {
    // An array would do as well for serde: the fields in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    let fields: Fields = serde_json::from_str(text).ok()?;
    let format = fields.format?;
    if format != FORMAT {
        let found = Excerpt::of(&format.to_string());
        return Some(Err(What::OtherFormat { found }));
    }
    let version = fields.version.unwrap_or_default();
    Some(match version.as_u64() {
        Some(1..=VERSION) => Ok(()),
        Some(found) if found > VERSION => Err(What::Newer { found }),
        _ => Err(What::OutOfBounds {
            field: "version",
            least: 1,
            most: VERSION,
            found: Excerpt::of(&version.to_string()),
        }),
    })
}

pub(super) fn write(to: &mut impl Write) -> io::Result<()> {
    writeln!(to, r#"{{"format":"{FORMAT}","version":{VERSION}}}"#)
}
