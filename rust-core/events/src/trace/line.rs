//! Parses one line into one event, and trusts nothing. Knows no other line.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{Excerpt, What};
use crate::{Event, LATEST, MOST_BYTES, Op, Whose};

/// Nodes that Linux knows at most, from 0.
const LAST_NODE: u64 = 1023;
/// A node has no more memory: a bound for sums.
const MOST_OF_A_NODE: u64 = 1 << 56;

/// A line's object before its fields are checked: each may be absent, or be anything.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with t and op")]
struct Fields<'a> {
    #[serde(borrow)]
    t: Field<'a>,
    #[serde(borrow)]
    op: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    bytes: Field<'a>,
    #[serde(borrow)]
    stream: Field<'a>,
    #[serde(borrow)]
    thread: Field<'a>,
    #[serde(borrow)]
    events: Field<'a>,
    #[serde(borrow)]
    private: Field<'a>,
    #[serde(borrow)]
    device: Field<'a>,
    #[serde(borrow)]
    took: Field<'a>,
    #[serde(borrow)]
    node: Field<'a>,
    #[serde(borrow)]
    pinned: Field<'a>,
    #[serde(borrow)]
    used: Field<'a>,
}

/// A field as it was written.
type Field<'a> = Option<&'a RawValue>;

/// The ops, each with the fields that it may have.
const OPS: [(&str, &[&str]); 11] = [
    ("alloc", &["id", "bytes", "thread", "private", "device", "stream"]),
    ("free", &["id", "thread"]),
    ("event", &["id", "stream"]),
    ("safe", &["id"]),
    ("wait", &["id", "took", "thread"]),
    ("clear", &[]),
    ("iter", &[]),
    ("lost", &["events"]),
    ("segment_alloc", &["device", "bytes"]),
    ("segment_free", &["device", "bytes"]),
    ("node", &["node", "pinned", "used"]),
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
        return Err(What::NotAnEvent { why: String::new(), found: Excerpt::of(text) });
    }
    let fields = serde_json::from_str(text).map_err(|why| not_an_event(text, &why))?;
    let line = Line::of(fields)?;
    let at = line.number(line.fields.t, "t", 0, LATEST / unit)? * unit;
    let op = line.what(at, unit)?;
    let whose = match line.op {
        "alloc" | "segment_alloc" | "segment_free" => line.whose()?,
        _ => Whose::Host,
    };
    Ok(Event { at, whose, op })
}

impl<'a> Line<'a> {
    fn of(fields: Fields<'a>) -> Result<Self, What> {
        let Some(written) = fields.op.map(RawValue::get) else {
            return Err(missing("an event", "op"));
        };
        let is_written = |op: &str| match written.contains('\\') {
            true => serde_json::from_str::<String>(written).is_ok_and(|it| it == op),
            false => written.trim_matches('"') == op,
        };
        let Some((op, has)) = OPS.iter().find(|(op, _)| is_written(op)) else {
            return Err(What::Other(format!(
                "expected op to be alloc, free, event, safe, wait, clear, iter or lost, found {}",
                Excerpt::of(written)
            )));
        };
        let of_pinned = *op == "alloc" && fields.device.is_none();
        for (field, value) in [
            ("id", fields.id),
            ("bytes", fields.bytes),
            ("stream", fields.stream),
            ("thread", fields.thread),
            ("events", fields.events),
            ("private", fields.private),
            ("device", fields.device),
            ("took", fields.took),
            ("node", fields.node),
            ("pinned", fields.pinned),
            ("used", fields.used),
        ] {
            let may_have = has.contains(&field) && !(of_pinned && field == "stream");
            if value.is_some() && !may_have {
                let said = format!("expected {op} to have no {field}, found one");
                return Err(What::Other(said));
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
                private: self.or_0(fields.private, "private", 1)? == 1,
                stream: match fields.device {
                    None => 0,
                    Some(_) => self.index(fields.stream, "stream")?,
                },
            },
            "free" => Op::Free { id: self.id()?, thread: self.thread()?, pending: false },
            "event" => Op::Use { id: self.id()?, stream: self.index(fields.stream, "stream")? },
            "safe" => Op::Safe { id: self.id()? },
            "wait" => Op::Wait {
                id: fields.id.is_some().then(|| self.id()).transpose()?,
                // It is over at `at`.
                took: self.number(fields.took, "took", 0, at / unit)? * unit,
                thread: self.thread()?,
            },
            "lost" => Op::Lost { events: self.number(fields.events, "events", 1, u64::MAX)? },
            "segment_alloc" => Op::SegmentAlloc { bytes: self.bytes()? },
            "segment_free" => Op::SegmentFree { bytes: self.bytes()? },
            "node" => self.of_node()?,
            "clear" => Op::Clear,
            _ => Op::Iteration,
        })
    }

    fn of_node(&self) -> Result<Op, What> {
        let pinned = self.number(self.fields.pinned, "pinned", 0, MOST_OF_A_NODE)?;
        Ok(Op::Node {
            node: self.number(self.fields.node, "node", 0, LAST_NODE)? as u32,
            pinned,
            used: self.number(self.fields.used, "used", 0, pinned)?,
        })
    }

    fn whose(&self) -> Result<Whose, What> {
        if self.op == "alloc" && self.fields.device.is_none() {
            return Ok(Whose::Host);
        }
        self.index(self.fields.device, "device").map(Whose::Device)
    }

    fn id(&self) -> Result<u64, What> {
        self.number(self.fields.id, "id", 0, u64::MAX)
    }

    fn bytes(&self) -> Result<u64, What> {
        self.number(self.fields.bytes, "bytes", 1, MOST_BYTES)
    }

    fn thread(&self) -> Result<u32, What> {
        let thread = self.or_0(self.fields.thread, "thread", u32::MAX.into());
        thread.map(|number| number as u32) // in bounds, so nothing is lost
    }

    fn index(&self, value: Field<'_>, field: &'static str) -> Result<u32, What> {
        let number = self.number(value, field, 0, u32::MAX.into());
        number.map(|number| number as u32) // in bounds, so nothing is lost
    }

    fn or_0(&self, value: Field<'_>, field: &'static str, most: u64) -> Result<u64, What> {
        match value {
            None => Ok(0),
            some => self.number(some, field, 0, most),
        }
    }

    fn number(&self, value: Field<'_>, field: &'static str, least: u64, most: u64) -> Result<u64, What> {
        let Some(value) = value.map(RawValue::get) else {
            return Err(missing(self.op, field));
        };
        let number = value.parse().ok();
        let number = number.filter(|it| (least..=most).contains(it));
        number.ok_or_else(|| out_of_bounds(field, least, most, value))
    }
}

#[cold]
fn missing(op: &str, field: &str) -> What {
    What::Other(format!("expected {op} to have {field}, found none"))
}

/// The value that was written is not a number from `least` to `most`.
#[cold]
pub(super) fn out_of_bounds(field: &str, least: u64, most: u64, written: &str) -> What {
    let found = Excerpt::of(written);
    What::Other(format!("expected {field} to be a whole number from {least} to {most}, found {found}"))
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
    What::NotAnEvent { why: format!(" ({said}, column {})", why.column()), found: Excerpt::of(found) }
}
