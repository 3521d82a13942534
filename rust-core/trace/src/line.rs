//! Parses one line into one event, and trusts nothing. Knows no other line.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::error::{Excerpt, What};
use super::{Event, LATEST, MOST_BYTES, Op};

/// A line's object before its fields are checked: each may be absent, or a scalar of another kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with t and op")]
struct Fields<'a> {
    #[serde(borrow)]
    t: Option<Scalar<'a>>,
    #[serde(borrow)]
    op: Option<Scalar<'a>>,
    #[serde(borrow)]
    id: Option<Scalar<'a>>,
    #[serde(borrow)]
    bytes: Option<Scalar<'a>>,
    #[serde(borrow)]
    stream: Option<Scalar<'a>>,
    #[serde(borrow)]
    thread: Option<Scalar<'a>>,
    #[serde(borrow)]
    events: Option<Scalar<'a>>,
    #[serde(borrow)]
    private: Option<Scalar<'a>>,
    #[serde(borrow)]
    device: Option<Scalar<'a>>,
    #[serde(borrow)]
    took: Option<Scalar<'a>>,
}

/// A number, or anything else that was found instead.
enum Scalar<'a> {
    Number(u64),
    Text(Cow<'a, str>),
    Other(String),
}

impl Scalar<'_> {
    /// As it was written.
    fn found(&self) -> Excerpt {
        match self {
            Self::Number(number) => Excerpt::of(&number.to_string()),
            Self::Text(text) => Excerpt::of(&format!("\"{text}\"")),
            Self::Other(text) => Excerpt::of(text),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Scalar::Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Scalar::Other(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Scalar::Other(number.to_string()))
            }

            fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
                Ok(Scalar::Other(value.to_string()))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Scalar::Other("null".to_owned()))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Scalar::Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The event of a line, which has no end of line. `unit` is what its time counts, in nanoseconds.
pub(super) fn parse(text: &str, unit: u64) -> Result<Event, What> {
    // An array would do as well for serde: the fields in their order.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(What::NotAnEvent {
            expected: "a JSON object of an event".to_owned(),
            found: Excerpt::of(text),
        });
    }
    let fields: Fields<'_> = serde_json::from_str(text).map_err(|why| not_an_event(text, &why))?;
    let name = match fields.op.as_ref() {
        Some(Scalar::Text(name)) => name.as_ref(),
        Some(other) => {
            return Err(What::UnknownOp {
                found: other.found(),
            });
        }
        None => {
            return Err(What::Missing {
                op: "an event",
                field: "op",
            });
        }
    };
    let (op, needs): (&'static str, &[&'static str]) = match name {
        "alloc" if fields.device.is_some() => (
            "alloc",
            &["id", "bytes", "thread", "private", "device", "stream"],
        ),
        "alloc" => ("alloc", &["id", "bytes", "thread", "private"]),
        "segment_alloc" => ("segment_alloc", &["device", "bytes"]),
        "segment_free" => ("segment_free", &["device", "bytes"]),
        "free" => ("free", &["id", "thread"]),
        "event" => ("event", &["id", "stream"]),
        "safe" => ("safe", &["id"]),
        "wait" => ("wait", &["id", "took", "thread"]),
        "lost" => ("lost", &["events"]),
        "clear" => ("clear", &[]),
        "iter" => ("iter", &[]),
        other => {
            let found = Excerpt::of(&format!("\"{other}\""));
            return Err(What::UnknownOp { found });
        }
    };
    for (field, present) in [
        ("id", fields.id.is_some()),
        ("bytes", fields.bytes.is_some()),
        ("stream", fields.stream.is_some()),
        ("thread", fields.thread.is_some()),
        ("events", fields.events.is_some()),
        ("private", fields.private.is_some()),
        ("device", fields.device.is_some()),
        ("took", fields.took.is_some()),
    ] {
        if present && !needs.contains(&field) {
            return Err(What::Superfluous { op, field });
        }
    }
    let need = |value: &Option<Scalar<'_>>, field, least, most| match value {
        Some(Scalar::Number(number)) if (least..=most).contains(number) => Ok(*number),
        Some(other) => Err(What::OutOfBounds {
            field,
            least,
            most,
            found: other.found(),
        }),
        None => Err(What::Missing { op, field }),
    };
    let index = |value: &Option<Scalar<'_>>, field| {
        // In bounds, so nothing is lost.
        need(value, field, 0, u64::from(u32::MAX)).map(|number| number as u32)
    };
    let id = || need(&fields.id, "id", 0, u64::MAX);
    let thread = || match &fields.thread {
        None => Ok(0),
        some => index(some, "thread"),
    };
    let bytes = || need(&fields.bytes, "bytes", 1, MOST_BYTES);
    let private = || match &fields.private {
        None => Ok(false),
        some => need(some, "private", 0, 1).map(|it| it == 1),
    };
    let device = || index(&fields.device, "device");
    let t = need(&fields.t, "t", 0, LATEST / unit)? * unit;
    let op = match op {
        "alloc" if fields.device.is_some() => Op::DeviceAlloc {
            id: id()?,
            bytes: bytes()?,
            thread: thread()?,
            private: private()?,
            device: device()?,
            stream: index(&fields.stream, "stream")?,
        },
        "alloc" => Op::Alloc {
            id: id()?,
            bytes: bytes()?,
            thread: thread()?,
            private: private()?,
        },
        "segment_alloc" => Op::SegmentAlloc {
            device: device()?,
            bytes: bytes()?,
        },
        "segment_free" => Op::SegmentFree {
            device: device()?,
            bytes: bytes()?,
        },
        "free" => Op::Free {
            id: id()?,
            thread: thread()?,
        },
        "event" => Op::Event {
            id: id()?,
            stream: index(&fields.stream, "stream")?,
        },
        "safe" => Op::Safe { id: id()? },
        "wait" => Op::Wait {
            id: fields.id.is_some().then(id).transpose()?,
            // It is over at `t`.
            took: need(&fields.took, "took", 0, t / unit)? * unit,
            thread: thread()?,
        },
        "lost" => Op::Lost {
            events: need(&fields.events, "events", 1, u64::MAX)?,
        },
        "clear" => Op::Clear,
        _ => Op::Iter,
    };
    Ok(Event { t, op })
}

/// The JSON parser's message about a line that it refuses.
#[cold]
fn not_an_event(text: &str, why: &serde_json::Error) -> What {
    // Its own line number is always 1; the reader knows better.
    let said = why.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    // It may have a name of the file's in it, as the file would have it shown by a terminal.
    let escaped = |it: char| match it.is_control() {
        true => it.escape_default().to_string(),
        false => it.to_string(),
    };
    let said: String = said.chars().map(escaped).collect();
    let from = why.column().saturating_sub(1);
    let rest = text.get(from..).unwrap_or_default();
    let found = if rest.is_empty() { text } else { rest };
    What::NotAnEvent {
        expected: format!(
            "a JSON object of an event ({said}, column {})",
            why.column()
        ),
        found: Excerpt::of(found),
    }
}
