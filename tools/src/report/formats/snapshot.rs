//! A snapshot as torch.cuda.memory._dump_snapshot writes it, which PyTorch's memory_viz opens: pinned memory as if it
//! were that of device 0, in the segments and at the places where stock would have had it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pinbuddy_replay::policy::pinbuddy::Settings;
use pinbuddy_replay::policy::{Change, Kind, Place, Policy};
use pinbuddy_replay::replay::{self, Run};

use super::Callers;
use super::pickle::Pickle;
use crate::report::recording::{Recording, Row};

/// How many events a piece of their list has, as with Python's pickler.
const PIECE: usize = 1000;

/// Writes it.
pub(super) fn write(to: &mut dyn Write, recording: &Recording, callers: &Callers<'_>) -> io::Result<()> {
    let mut run = replay::on(Kind::Stock, Settings::default());
    run.policy().watch();
    let mut pinned = BTreeMap::new();
    let mut pickle = Pickle::new(to)?;
    pickle.dict(|it| {
        it.text("device_traces")?;
        it.list(|it| it.list(|it| events(it, recording, callers, run.as_mut(), &mut pinned)))?;
        it.text("segments")?;
        it.list(|it| segments(it, recording, callers, run.policy(), &pinned))?;
        it.text("allocator_settings")?;
        it.dict(|_| Ok(()))?;
        it.text("external_annotations")?;
        it.list(|_| Ok(()))
    })?;
    pickle.end()
}

/// Something that happened to a place.
struct Moment {
    action: &'static str,
    place: Place,
    at: u64,
    stream: u64,
    /// Whose request it was.
    row: Option<usize>,
}

/// The calls of a row's request, as memory_viz reads them.
fn frames(to: &mut Pickle<'_>, callers: &Callers<'_>, row: Option<usize>) -> io::Result<()> {
    to.text("frames")?;
    to.list(|to| {
        for call in row.into_iter().flat_map(|it| callers.of(it)) {
            let texts = [["name", call.function], ["filename", call.file]];
            to.dict(|to| to.entries(&texts, &[("line", call.line)]))?;
        }
        Ok(())
    })
}

fn write_moment(to: &mut Pickle<'_>, callers: &Callers<'_>, it: &Moment) -> io::Result<()> {
    to.dict(|to| {
        let numbers = [("addr", it.place.address), ("size", it.place.bytes), ("stream", it.stream), ("time_us", it.at)];
        to.entries(&[["action", it.action]], &numbers)?;
        frames(to, callers, it.row)
    })
}

/// All events in their order; `run` is at the end of them afterwards, and `pinned` says what is pinned.
fn events(
    to: &mut Pickle<'_>,
    recording: &Recording,
    callers: &Callers<'_>,
    run: &mut dyn Run,
    pinned: &mut BTreeMap<u64, u64>,
) -> io::Result<()> {
    let mut rows = recording.rows.iter().enumerate().peekable();
    // What is freed later, by when: once for the free, once for what comes after it.
    let mut later: BTreeMap<(u64, usize), Moment> = BTreeMap::new();
    let mut count = 0;
    for (number, step) in recording.steps.iter().enumerate() {
        // A step has few events.
        if number % PIECE == PIECE - 1 {
            to.next_piece()?;
        }
        while let Some(next) = later.first_entry().filter(|it| it.key().0 <= step.at) {
            write_moment(to, callers, &next.remove())?;
        }
        run.step(*step);
        for change in run.policy().changes() {
            write_moment(to, callers, &of_segment(change, step.at, pinned))?;
        }
        let Some((index, row)) = rows.next_if(|it| it.1.step == number) else {
            continue;
        };
        let Some(place) = run.policy().place(row.number) else {
            continue;
        };
        let place = Place { address: place.address, bytes: row.bytes };
        let moment = |action, at| Moment {
            action,
            place,
            at,
            stream: row.stream.map_or(0, u64::from),
            row: (action == "alloc").then_some(index),
        };
        write_moment(to, callers, &moment("alloc", row.from))?;
        for (action, at) in [("free_requested", row.freed), ("free_completed", row.until)] {
            if at <= recording.end {
                later.insert((at, count), moment(action, at));
                count += 1;
            }
        }
    }
    for (number, moment) in later.values().enumerate() {
        if number % PIECE == 0 {
            to.next_piece()?;
        }
        write_moment(to, callers, moment)?;
    }
    Ok(())
}

/// A segment that is pinned or unpinned, of which `pinned` is told.
fn of_segment(change: Change, at: u64, pinned: &mut BTreeMap<u64, u64>) -> Moment {
    let Change { place, pinned: is } = change;
    if is {
        pinned.insert(place.address, place.bytes);
    } else {
        pinned.remove(&place.address);
    }
    Moment { action: if is { "segment_alloc" } else { "segment_free" }, place, at, stream: 0, row: None }
}

/// What is pinned at the end, and what lives in it.
fn segments(
    to: &mut Pickle<'_>,
    recording: &Recording,
    callers: &Callers<'_>,
    run: &dyn Policy,
    pinned: &BTreeMap<u64, u64>,
) -> io::Result<()> {
    let lives = |it: &(usize, &Row)| it.1.until == u64::MAX;
    let place = |(index, row): (usize, &Row)| Some((run.place(row.number)?.address, (row.bytes, index)));
    let live: BTreeMap<u64, (u64, usize)> = recording.rows.iter().enumerate().filter(lives).filter_map(place).collect();
    for (&address, &bytes) in pinned {
        let (requested, row) = live.get(&address).copied().unzip();
        to.dict(|to| {
            let live = requested.unwrap_or(0);
            let numbers = [
                ("device", 0),
                ("address", address),
                ("total_size", bytes),
                ("stream", 0),
                ("allocated_size", live),
                ("active_size", live),
                ("requested_size", live),
                ("is_expandable", 0),
            ];
            to.entries(&[["segment_type", "large"]], &numbers)?;
            to.text("segment_pool_id")?;
            to.list(|to| (0..2).try_for_each(|_| to.number(0)))?;
            frames(to, callers, None)?;
            to.text("blocks")?;
            to.list(|to| {
                let parts = match requested {
                    Some(requested) => vec![
                        (address, requested, "active_allocated"),
                        (address + requested, bytes - requested, "inactive"),
                    ],
                    None => vec![(address, bytes, "inactive")],
                };
                for (address, bytes, state) in parts.into_iter().filter(|it| it.1 > 0) {
                    let sizes = [("address", address), ("size", bytes), ("requested_size", bytes)];
                    to.dict(|to| {
                        to.entries(&[["state", state]], &sizes)?;
                        frames(to, callers, row.filter(|_| state == "active_allocated"))
                    })?;
                }
                Ok(())
            })
        })?;
    }
    Ok(())
}
