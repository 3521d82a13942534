//! A file in memory, in one pass: the steps of a replay, and a row for each block.
//!
//! Bounded: a file with more events is read up to there, which [`Recording::cut_after`] says.

use std::collections::HashMap;

use anyhow::Result;
use pinbuddy_events::{Item, MICROSECOND, Op};
use pinbuddy_plan::Record;
use pinbuddy_replay::step::Step;
use pinbuddy_replay::streams::Streams;

use super::nodes::Nodes;
use super::waits::Wait;
use crate::flow::{Beside, Lifetimes};

use crate::input::Input;

/// The most events of a report: some 100 bytes each.
pub(super) const MOST_EVENTS: u64 = 10_000_000;

/// A block, from its request on. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The line of its request, or the number of the snapshot's event.
    pub(super) line: u64,
    /// Which of the steps is its request.
    pub(super) step: usize,
    /// Its number in replays.
    pub(super) number: u32,
    pub(super) bytes: u64,
    pub(super) from: u64,
    /// When it was freed; [`u64::MAX`] if it was not.
    pub(super) freed: u64,
    /// When its memory could be used again; [`u64::MAX`] if it could not.
    pub(super) until: u64,
    /// Which step came next when that was; 0 if it was before all of its moment.
    pub(super) next: usize,
    pub(super) thread: u32,
    /// The last stream that used it.
    pub(super) stream: Option<u32>,
    /// A plan leaves it to PyTorch's own lists.
    pub(super) beside: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) steps: Vec<Step>,
    pub(super) rows: Vec<Row>,
    /// What a plan is made from.
    pub(super) record: Record,
    /// The steps that a plan leaves to PyTorch's own lists, and those of no block.
    pub(super) rest: Vec<Step>,
    /// When iterations ended.
    pub(super) iterations: Vec<u64>,
    /// When the cache was emptied.
    pub(super) clears: Vec<u64>,
    /// When the run waited for the driver; none where the file does not say.
    pub(super) waits: Option<Vec<Wait>>,
    /// What served the devices of each NUMA node, as far as the file says.
    pub(super) nodes: Nodes,
    /// Events that the file has lost.
    pub(super) lost: u64,
    /// What the run's own allocator has from the driver, and the most that it had, as far as the file says.
    pub(super) run_has: (u64, u64),
    /// When the first event was, by the file, or when a wait began that was over soon after it.
    pub(super) begin: u64,
    /// The last moment. That of `begin` is 0.
    pub(super) end: u64,
    /// The file has more events than these.
    pub(super) cut_after: Option<u64>,
    /// Events.
    pub(super) events: u64,
}

impl Recording {
    /// The most that the run's own allocator had; none where the file does not say.
    pub(super) fn run_peak(&self) -> Option<u64> {
        (self.run_has.1 > 0).then_some(self.run_has.1)
    }
}

/// Reads a file.
pub(super) fn read(input: &Input) -> Result<Recording> {
    let mut reading = Reading::new(input.planned_from());
    reading.recording.waits = input.about.waits.then(Vec::new);
    let mut more = false;
    input.each(&mut |item| {
        if reading.recording.events == MOST_EVENTS {
            more = true;
        } else {
            reading.see(&item);
        }
        Ok(())
    })?;
    let mut recording = reading.end();
    recording.cut_after = more.then_some(MOST_EVENTS);
    Ok(recording)
}

/// Nothing yet.
pub(super) fn empty() -> Recording {
    Recording {
        steps: Vec::new(),
        rows: Vec::new(),
        record: Record::new(u32::MAX),
        rest: Vec::new(),
        iterations: Vec::new(),
        clears: Vec::new(),
        waits: None,
        nodes: Nodes::default(),
        lost: 0,
        run_has: (0, 0),
        begin: 0,
        end: 0,
        cut_after: None,
        events: 0,
    }
}

/// A block of one thread, for tests.
#[cfg(test)]
pub(super) fn row(bytes: u64, from: u64, freed: u64, until: u64) -> Row {
    Row { line: 1, step: 0, number: 0, bytes, from, freed, until, next: 0, thread: 0, stream: None, beside: false }
}

struct Reading {
    recording: Recording,
    beside: Beside,
    lifetimes: Lifetimes,
    streams: Streams,
    /// By id: the row.
    live: HashMap<u64, usize>,
    /// The first events, until [`AHEAD`] of them are there; none from then on.
    ahead: Option<Vec<Item>>,
}

/// Before time 0 is known so many events are read: the first request may have waited, which is told when that is over.
const AHEAD: usize = 64;

impl Reading {
    fn new(planned_from: u64) -> Self {
        Self {
            recording: empty(),
            beside: Beside::new(planned_from),
            lifetimes: Lifetimes::new(planned_from),
            streams: Streams::default(),
            live: HashMap::new(),
            ahead: Some(Vec::new()),
        }
    }

    fn see(&mut self, item: &Item) {
        match &mut self.ahead {
            None => self.add(item),
            Some(ahead) => {
                ahead.push(*item);
                if ahead.len() == AHEAD {
                    self.add_ahead();
                }
            }
        }
    }

    fn add_ahead(&mut self) {
        let Some(ahead) = self.ahead.take() else {
            return;
        };
        let began = |it: &Item| match it.event.op {
            Op::Wait { took, .. } => it.at().saturating_sub(took / MICROSECOND),
            _ => it.at(),
        };
        self.recording.begin = ahead.iter().map(began).min().unwrap_or(0);
        ahead.iter().for_each(|it| self.add(it));
    }

    fn add(&mut self, item: &Item) {
        let to = &mut self.recording;
        to.events += 1;
        let mut item = *item;
        item.event.at = item.event.at.saturating_sub(to.begin * MICROSECOND);
        let at = item.at();
        to.end = to.end.max(at);
        self.lifetimes.push(&item, &mut |event| {
            to.record.push(event);
        });
        let beside = self.beside.has(&item);
        match item.event.op {
            Op::Request { id, .. } => self.begin(&item, id, beside),
            Op::Use { id, stream } => self.use_on(&item, id, stream),
            Op::Free { id, pending, .. } => self.free(&item, id, pending),
            Op::Safe { id } => {
                if let Some(row) = self.live.remove(&id) {
                    to.rows[row].until = at;
                    to.rows[row].next = to.steps.len();
                }
            }
            Op::Wait { id, took, thread } => {
                let took = took / MICROSECOND;
                to.waits.get_or_insert_default().push(Wait {
                    from: at.saturating_sub(took),
                    took,
                    thread,
                    row: id.and_then(|it| self.live.get(&it).copied()),
                });
            }
            Op::Clear => to.clears.push(at),
            Op::Iteration => to.iterations.push(at),
            Op::Node { node, pinned, used } => to.nodes.push(node, pinned, used),
            Op::Lost { events } => to.lost = to.lost.saturating_add(events),
            Op::SegmentAlloc { bytes } => to.run_has.0 = to.run_has.0.saturating_add(bytes),
            Op::SegmentFree { bytes } => to.run_has.0 = to.run_has.0.saturating_sub(bytes),
        }
        let to = &mut self.recording;
        to.run_has.1 = to.run_has.1.max(to.run_has.0);
        let step = Step::of(&item);
        to.steps.extend(step);
        let is_left = beside || item.event.op.id().is_none();
        to.rest.extend(step.filter(|_| is_left));
    }

    /// A row for the block of a request.
    fn begin(&mut self, item: &Item, id: u64, beside: bool) {
        let (Some(number), Op::Request { bytes, thread, .. }) = (item.block, item.event.op) else {
            return;
        };
        let to = &mut self.recording;
        self.live.insert(id, to.rows.len());
        to.rows.push(Row {
            line: item.line,
            step: to.steps.len(),
            number,
            bytes,
            from: item.at(),
            freed: u64::MAX,
            until: u64::MAX,
            next: 0,
            thread,
            stream: None,
            beside,
        });
    }

    fn use_on(&mut self, item: &Item, id: u64, stream: u32) {
        if let Some(row) = self.live.get(&id) {
            self.recording.rows[*row].stream = Some(stream);
        }
        if let Some(block) = item.block {
            self.streams.copy(item.at(), block, item.bytes, stream);
        }
    }

    fn free(&mut self, item: &Item, id: u64, pending: bool) {
        let of_streams = item.block.map(|it| self.streams.free(it));
        let done = of_streams.and_then(|it| it.iter().map(|it| it.1).max());
        let Some(row) = self.live.get(&id).copied() else {
            return;
        };
        let (to, at) = (&mut self.recording, item.at());
        to.rows[row].freed = at;
        if !pending {
            to.rows[row].until = done.map_or(at, |it| it.max(at));
            if to.rows[row].until == at {
                to.rows[row].next = to.steps.len();
            }
            self.live.remove(&id);
        }
    }

    fn end(mut self) -> Recording {
        self.add_ahead();
        let record = &mut self.recording.record;
        self.lifetimes.end(&mut |event| {
            record.push(event);
        });
        self.recording
    }
}
