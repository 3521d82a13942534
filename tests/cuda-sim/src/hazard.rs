//! Hazards: what must not happen to page-locked memory while a copy has it in flight, and what is given back twice.
//!
//! Watched with `PINBUDDY_SIM_HAZARDS=1`. Each copy and memset that a stream has been given and not done yet has its
//! page-locked ranges in a table, with the stack of who asked for it. Reported, each with the call that does it, is
//! such memory that is unpinned, unmapped or handed out: an allocator says what it hands out (`pinbuddy_sim_handed_out`),
//! as ours does where it is built with assertions. Reported as well is a range whose content changes before its turn
//! comes; who writes there is not known, since nothing watches single stores. Memory that is registered when it is unmapped,
//! and calls that give back what is not there, are hazards, too. `pinbuddy_sim_in_flight` answers without a report.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::error::{Error, lock};
use crate::stack::Stack;
use crate::stats::STATS;
use crate::work::{Area, Source, Work};
use crate::{config, memory, note};

static FLIGHTS: Mutex<BTreeMap<u64, Vec<Range>>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The entry point that this thread is in.
    static ENTRY: Cell<&'static str> = const { Cell::new("") };
}

/// Calls that give something back: what they refuse was given back before, or never there.
const GIVING_BACK: [&str; 9] = [
    "cudaFreeHost",
    "cudaHostUnregister",
    "cudaFree",
    "cudaFreeAsync",
    "cudaEventDestroy",
    "cudaStreamDestroy",
    "cuMemAddressFree",
    "cuMemRelease",
    "cuMemUnmap",
];

/// A page-locked range that a copy has in flight.
#[derive(Clone, Debug)]
struct Range {
    start: usize,
    bytes: usize,
    /// Whether the copy writes it; else it reads it.
    written: bool,
    /// What was there when the copy was asked for, unless an earlier copy is still to write there.
    content: Option<u64>,
    who: Arc<Asked>,
}

/// Who asked for a copy.
#[derive(Debug)]
struct Asked {
    entry: &'static str,
    stack: Stack,
}

/// A copy that is in flight until this is dropped.
#[derive(Debug)]
pub(crate) struct Flight(u64);

/// This thread is in an entry point.
pub(crate) fn enter(entry: &'static str) {
    ENTRY.set(entry);
}

/// An entry point refused by itself.
pub(crate) fn refused(entry: &'static str, error: Error) {
    let twice = error == Error::cudaErrorHostMemoryAlreadyRegistered;
    let back = GIVING_BACK.contains(&entry)
        && [
            Error::cudaErrorInvalidValue,
            Error::cudaErrorHostMemoryNotRegistered,
            Error::cudaErrorInvalidResourceHandle,
        ]
        .contains(&error);
    if config::get().hazards && (twice || back) {
        let what = if twice { "is there already" } else { "was not there" };
        report(&format!("what {entry} names {what} (error {})", error.0));
    }
}

/// A stream is given work that is not done yet.
pub(crate) fn begin(work: &Work) -> Option<Arc<Flight>> {
    if !config::get().hazards {
        return None;
    }
    let areas: Vec<(Area, bool)> = match work {
        Work::Copy(transfer) => {
            let mut areas = vec![(transfer.target, true)];
            if let Source::Memory(source) = &transfer.source {
                areas.push((*source, false));
            }
            areas
        }
        Work::Set { target, .. } => vec![(*target, true)],
        _ => return None,
    };
    let who = Arc::new(Asked { entry: ENTRY.get(), stack: Stack::capture() });
    let ranges: Vec<Range> = areas
        .into_iter()
        .filter(|(area, _)| memory::is_page_locked(area.address))
        .map(|(area, written)| Range {
            start: area.address,
            bytes: area.extent(),
            written,
            content: unwritten(area).then(|| sum(area)),
            who: Arc::clone(&who),
        })
        .collect();
    if ranges.is_empty() {
        return None;
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    lock(&FLIGHTS).insert(number, ranges);
    Some(Arc::new(Flight(number)))
}

impl Flight {
    /// The copy's turn has come: what it is about should be as it was.
    pub(crate) fn arrives(&self) {
        let ranges = lock(&FLIGHTS).get(&self.0).cloned().unwrap_or_default();
        for range in ranges {
            let area = Area::line(range.start, range.bytes);
            if range.content.is_some_and(|before| before != sum(area)) {
                say(&format!("{} was written before its turn; by whom is not known", range.told()));
            }
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        lock(&FLIGHTS).remove(&self.0);
    }
}

impl Range {
    fn overlaps(&self, start: usize, bytes: usize) -> bool {
        self.start < start.saturating_add(bytes) && start < self.start + self.bytes
    }

    fn told(&self) -> String {
        format!(
            "pinned memory that a copy {} ({} bytes at {:#x}; {}, asked for by{}\n  )",
            if self.written { "is to write" } else { "is to read" },
            self.bytes,
            self.start,
            self.who.entry,
            self.who.stack.lines()
        )
    }
}

/// A call takes memory away: whether a copy still has any of it in flight.
pub(crate) fn goes(call: &str, start: usize, bytes: usize) {
    if let Some(range) = first_in(start, bytes) {
        report(&format!("{call} takes {} away", range.told()));
    }
}

/// An allocator hands memory out.
pub(crate) fn handed_out(start: usize, bytes: usize) {
    if let Some(range) = first_in(start, bytes) {
        report(&format!("an allocator hands out {}", range.told()));
    }
}

/// Memory is about to be unmapped.
pub(crate) fn unmapped(start: usize, bytes: usize) {
    if !config::if_read().is_some_and(|it| it.hazards) {
        return;
    }
    goes("munmap", start, bytes);
    if let Some(region) = memory::page_locked_in(start, bytes) {
        report(&format!(
            "munmap of {bytes} bytes at {start:#x} takes page-locked memory away ({} bytes at {:#x} are still pinned)",
            region.bytes, region.base
        ));
    }
}

/// How many copies have any of this memory in flight.
pub(crate) fn in_flight(start: usize, bytes: usize) -> usize {
    let flights = lock(&FLIGHTS);
    let all = flights.values().flatten();
    all.filter(|it| it.overlaps(start, bytes)).count()
}

fn first_in(start: usize, bytes: usize) -> Option<Range> {
    let flights = lock(&FLIGHTS);
    let mut all = flights.values().flatten();
    all.find(|it| it.overlaps(start, bytes)).cloned()
}

/// Whether no copy in flight is to write there, so that nobody may.
fn unwritten(area: Area) -> bool {
    let flights = lock(&FLIGHTS);
    let mut all = flights.values().flatten();
    area.rows == 1 && !all.any(|it| it.written && it.overlaps(area.address, area.extent()))
}

/// What a range has in it, as a number.
fn sum(area: Area) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for at in (0..area.extent()).step_by(8) {
        let mut word = [0_u8; 8];
        let length = (area.extent() - at).min(8);
        // SAFETY: the range was named by a copy call and found page-locked; another thread may be
        // writing it, which is what is looked for, and any content will do.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::with_exposed_provenance::<u8>(area.address + at),
                word.as_mut_ptr(),
                length,
            );
        }
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    sum
}

/// With the stack of who does it, who is the caller.
fn report(what: &str) {
    say(&format!("{what}; by{}", Stack::capture().lines()));
}

fn say(what: &str) {
    STATS.hazards.add(1);
    note::always(&format!("hazard: {what}"));
}
