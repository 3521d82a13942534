//! Parses one line into one event, and trusts nothing. Knows no other line.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::error::{Excerpt, What};
use crate::{Event, LATEST, MOST_BYTES, Op, Whose};

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

/// The ops, each with the fields that it may have.
const OPS: [(&str, &[&str]); 10] = [
    (
        "alloc",
        &["id", "bytes", "thread", "private", "device", "stream"],
    ),
    ("free", &["id", "thread"]),
    ("event", &["id", "stream"]),
    ("safe", &["id"]),
    ("wait", &["id", "took", "thread"]),
    ("clear", &[]),
    ("iter", &[]),
    ("lost", &["events"]),
    ("segment_alloc", &["device", "bytes"]),
    ("segment_free", &["device", "bytes"]),
];

/// The fields of a line whose op is known, and which has no others than that may have.
struct Line<'a> {
    op: &'static str,
    fields: Fields<'a>,
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
    let fields = serde_json::from_str(text).map_err(|why| not_an_event(text, &why))?;
    let line = Line::of(fields)?;
    let at = line.number(&line.fields.t, "t", 0, LATEST / unit)? * unit;
    let op = line.what(at, unit)?;
    let whose = match line.op {
        "alloc" | "segment_alloc" | "segment_free" => line.whose()?,
        _ => Whose::Host,
    };
    Ok(Event { at, whose, op })
}

impl<'a> Line<'a> {
    fn of(fields: Fields<'a>) -> Result<Self, What> {
        let unknown = |found| Err(What::UnknownOp { found });
        let name = match fields.op.as_ref() {
            Some(Scalar::Text(name)) => name.as_ref(),
            Some(other) => return unknown(other.found()),
            None => {
                let (op, field) = ("an event", "op");
                return Err(What::Missing { op, field });
            }
        };
        let Some((op, has)) = OPS.iter().find(|(op, _)| *op == name) else {
            return unknown(Excerpt::of(&format!("\"{name}\"")));
        };
        let of_pinned = *op == "alloc" && fields.device.is_none();
        for (field, value) in [
            ("id", &fields.id),
            ("bytes", &fields.bytes),
            ("stream", &fields.stream),
            ("thread", &fields.thread),
            ("events", &fields.events),
            ("private", &fields.private),
            ("device", &fields.device),
            ("took", &fields.took),
        ] {
            let may_have = has.contains(&field) && !(of_pinned && field == "stream");
            if value.is_some() && !may_have {
                return Err(What::Superfluous { op, field });
            }
        }
        Ok(Self { op, fields })
    }

    /// What happened at this time, which is in nanoseconds.
    fn what(&self, at: u64, unit: u64) -> Result<Op, What> {
        let fields = &self.fields;
        Ok(match self.op {
            "alloc" => Op::Request {
                id: self.id()?,
                bytes: self.bytes()?,
                thread: self.thread()?,
                private: self.or_0(&fields.private, "private", 1)? == 1,
                stream: match fields.device {
                    None => 0,
                    Some(_) => self.index(&fields.stream, "stream")?,
                },
            },
            "free" => Op::Free {
                id: self.id()?,
                thread: self.thread()?,
                pending: false,
            },
            "event" => Op::Use {
                id: self.id()?,
                stream: self.index(&fields.stream, "stream")?,
            },
            "safe" => Op::Safe { id: self.id()? },
            "wait" => Op::Wait {
                id: fields.id.is_some().then(|| self.id()).transpose()?,
                // It is over at `at`.
                took: self.number(&fields.took, "took", 0, at / unit)? * unit,
                thread: self.thread()?,
            },
            "lost" => Op::Lost {
                events: self.number(&fields.events, "events", 1, u64::MAX)?,
            },
            "segment_alloc" => Op::SegmentAlloc {
                bytes: self.bytes()?,
            },
            "segment_free" => Op::SegmentFree {
                bytes: self.bytes()?,
            },
            "clear" => Op::Clear,
            _ => Op::Iteration,
        })
    }

    fn whose(&self) -> Result<Whose, What> {
        if self.op == "alloc" && self.fields.device.is_none() {
            return Ok(Whose::Host);
        }
        self.index(&self.fields.device, "device").map(Whose::Device)
    }

    fn id(&self) -> Result<u64, What> {
        self.number(&self.fields.id, "id", 0, u64::MAX)
    }

    fn bytes(&self) -> Result<u64, What> {
        self.number(&self.fields.bytes, "bytes", 1, MOST_BYTES)
    }

    fn thread(&self) -> Result<u32, What> {
        let thread = self.or_0(&self.fields.thread, "thread", u32::MAX.into());
        thread.map(|number| number as u32) // in bounds, so nothing is lost
    }

    fn index(&self, value: &Option<Scalar<'_>>, field: &'static str) -> Result<u32, What> {
        let number = self.number(value, field, 0, u32::MAX.into());
        number.map(|number| number as u32) // in bounds, so nothing is lost
    }

    fn or_0(
        &self,
        value: &Option<Scalar<'_>>,
        field: &'static str,
        most: u64,
    ) -> Result<u64, What> {
        match value {
            None => Ok(0),
            some => self.number(some, field, 0, most),
        }
    }

    fn number(
        &self,
        value: &Option<Scalar<'_>>,
        field: &'static str,
        least: u64,
        most: u64,
    ) -> Result<u64, What> {
        match value {
            Some(Scalar::Number(number)) if (least..=most).contains(number) => Ok(*number),
            Some(other) => Err(What::OutOfBounds {
                field,
                least,
                most,
                found: other.found(),
            }),
            None => {
                let op = self.op;
                Err(What::Missing { op, field })
            }
        }
    }
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
