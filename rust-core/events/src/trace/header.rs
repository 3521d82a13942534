//! The first line of a trace: the file's format and version, and what the run was.
//!
//! A file without a header is of version 1. A header may have other fields, as notes of the program that
//! wrote it; only the version and the unit decide how events are read, so a note that makes no sense is left
//! out, and no error. Knows no event.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{Excerpt, What};
use super::line;

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 6;

/// What the header calls the format.
pub(super) const FORMAT: &str = "pinbuddy-trace";

/// What `t` counts in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Microseconds.
    #[default]
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
}

impl Unit {
    /// How many nanoseconds it has.
    pub const fn nanoseconds(self) -> u64 {
        match self {
            Self::Microseconds => crate::MICROSECOND,
            Self::Nanoseconds => 1,
        }
    }
}

/// Which memory a file may be about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Pinned memory.
    #[default]
    Pinned,
    /// Device memory.
    Device,
    /// Both.
    Both,
}

/// What a trace says of itself and of the run that it was recorded in.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Header {
    /// What `t` counts in the file.
    #[serde(skip_serializing_if = "is_usual")]
    pub unit: Unit,
    /// Which memory it is about.
    #[serde(skip_serializing_if = "is_usual")]
    pub memory: Memory,
    /// The version of PyTorch.
    #[serde(skip_serializing_if = "is_usual")]
    pub torch: Option<String>,
    /// The process's rank.
    #[serde(skip_serializing_if = "is_usual")]
    pub rank: Option<u64>,
    /// The number of ranks.
    #[serde(skip_serializing_if = "is_usual")]
    pub world_size: Option<u64>,
    /// The most memory that the process's control groups allowed, in bytes.
    #[serde(skip_serializing_if = "is_usual")]
    pub group_limit: Option<u64>,
    /// The settings, by the names of their variables.
    #[serde(skip_serializing_if = "is_usual")]
    pub settings: Map<String, Value>,
}

fn is_usual<T: Default + PartialEq>(it: &T) -> bool {
    *it == T::default()
}

#[derive(Deserialize)]
struct Fields {
    format: Option<Value>,
    version: Option<Value>,
    unit: Option<Value>,
    memory: Option<Value>,
    torch: Option<Value>,
    rank: Option<Value>,
    world_size: Option<Value>,
    group_limit: Option<Value>,
    settings: Option<Value>,
}

#[derive(Serialize)]
struct Line<'a> {
    format: &'a str,
    version: u64,
    #[serde(flatten)]
    header: &'a Header,
}

/// `None` for a line that is no header; else its version and how the events after it are read, if they can be.
pub(super) fn parse(text: &str) -> Option<Result<(u64, Header), What>> {
    // An array would do as well for serde: the fields in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    let fields: Fields = serde_json::from_str(text).ok()?;
    let format = fields.format.as_ref()?;
    if format != FORMAT {
        return Some(Err(What::Other(format!(
            "expected a trace of the format \"{FORMAT}\", found {}",
            Excerpt::of(&format.to_string())
        ))));
    }
    Some(read(fields))
}

fn read(fields: Fields) -> Result<(u64, Header), What> {
    let version = fields.version.unwrap_or_default();
    let number = match version.as_u64() {
        Some(number @ 1..=VERSION) => number,
        Some(found) if found > VERSION => {
            return Err(What::Other(format!(
                "expected a trace of version {VERSION} at most, found version {found}: \
                 read it with the release of pinbuddy that wrote it, or a later one"
            )));
        }
        _ => {
            return Err(line::out_of_bounds("version", 1, VERSION, &version.to_string()));
        }
    };
    let unit = match fields.unit {
        Some(unit) if number > 1 => Unit::deserialize(&unit).map_err(|_| {
            What::Other(format!(
                "expected the unit of time to be \"us\" or \"ns\", found {}",
                Excerpt::of(&unit.to_string())
            ))
        })?,
        // In version 1 a note.
        _ => Unit::Microseconds,
    };
    let text = |value: Option<Value>| Some(value?.as_str()?.to_owned());
    let count = |value: Option<Value>| value?.as_u64();
    let header = Header {
        unit,
        memory: fields.memory.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default(),
        torch: text(fields.torch),
        rank: count(fields.rank),
        world_size: count(fields.world_size),
        group_limit: count(fields.group_limit),
        settings: match fields.settings {
            Some(Value::Object(settings)) => settings,
            _ => Map::new(),
        },
    };
    Ok((number, header))
}

pub(super) fn write(header: &Header, to: &mut impl Write) -> io::Result<()> {
    let line = Line { format: FORMAT, version: VERSION, header };
    serde_json::to_writer(&mut *to, &line)?;
    to.write_all(b"\n")
}
