//! Makes plans of a record while it grows, and writes them.
//!
//! A plan is made each time that there are twice as many requests as the last time, and at the end; so a program that
//! is killed leaves one, too. A thread of low priority makes it, of a copy of the record. Knows no kind of memory.
//!
//! Invariant: the file is whole at every moment, and no plan of fewer requests replaces one of more that was made for the
//! same run, whichever process wrote it. There is no lock between processes, which could stop: the plan there is read again just
//! before it is replaced, and only who replaces it in the same moment is not seen.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pinbuddy_plan::Options;
use pinbuddy_plan::file::MadeFor;
use pinbuddy_store::body;

use super::none::NoPlan;
use super::room::lack_of_room;
use super::{Place, ToRecord, WHOLE};
use crate::backing::background;
use crate::log;
use crate::sync;

/// The first plan is made of so many requests.
const FIRST: usize = 256;

/// How much processor time planning has while the program runs, and at its end.
const PATIENCE: Duration = Duration::from_secs(60);
const LAST_PATIENCE: Duration = Duration::from_secs(3);
/// Where others use the processors it takes so many times as long at most.
const BUSY: u32 = 4;
/// So long by the clock the end of a process is at most, with all its plans: schedulers of jobs give one that is to end 30 s.
pub(crate) const LAST_OF_ALL: Duration = LAST_PATIENCE.saturating_mul(BUSY);
/// Why there is none where that was too short.
const NO_TIME: &str = "none was found in the time that a search has";

/// What a plan can be made of.
pub(crate) trait Plannable: Clone + Send + 'static {
    /// What is made of it.
    type Plan: Made;

    /// How many requests it has.
    fn requests(&self) -> usize;

    /// How long the plan that was found is tried once the search has ended: that asks nobody whether to stop.
    fn trial(&self) -> Duration {
        Duration::ZERO
    }

    /// Its plan. Asks `stop` whether to end with the best so far.
    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Self::Plan;

    /// Why what was made of it plans nothing, if so.
    fn why_none(&self, _made: &Self::Plan) -> Option<&'static str> {
        None
    }
}

/// A plan that can be written.
pub(crate) trait Made {
    /// Of how many requests the plan in this text is; `None` if there is none that was made for this run.
    fn requests_in(text: &str, run: &MadeFor) -> Option<usize>;

    /// Writes the text of its file.
    fn write(&self, out: &mut io::BufWriter<fs::File>) -> io::Result<()>;

    /// What it is, in a few words.
    fn summary(&self) -> String;
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Planner {
    target: Arc<Target>,
    run: MadeFor,
    /// Whether a thread makes a plan.
    at_work: Arc<AtomicBool>,
    /// Requests of the last plan, and of the next.
    planned: Arc<AtomicUsize>,
    next: usize,
    /// There was no room for a plan of so many.
    too_many: usize,
}

/// A plan that a thread is to make.
#[derive(Debug)]
pub(crate) struct Job {
    of: Planner,
    requests: usize,
}

impl Planner {
    /// Of a run that is recorded.
    pub(crate) fn new(recorded: ToRecord) -> Self {
        let ToRecord { place, run, above, .. } = recorded;
        Self {
            target: Arc::new(Target::new(place)),
            run,
            at_work: Arc::default(),
            planned: Arc::new(AtomicUsize::new(above)),
            next: FIRST.max(above.saturating_add(1)),
            too_many: 0,
        }
    }

    /// Requests from so many bytes on are planned.
    pub(crate) fn threshold(&self) -> u64 {
        self.run.threshold
    }

    /// The plan that is there is another program's, and is replaced whatever it was made of.
    pub(crate) fn replace_any(&mut self) {
        self.target = Arc::new(Target { replaces_any: true, ..Target::new(self.target.place.clone()) });
        self.planned = Arc::default();
        self.next = FIRST;
    }

    /// Whether this run's plan replaces another program's alone.
    pub(crate) fn is_for_others_only(&self) -> bool {
        self.planned.load(Ordering::Relaxed) == usize::MAX
    }

    /// Where the plan is written.
    pub(crate) fn path(&self) -> &Path {
        &self.target.place.path
    }

    /// Whether that was chosen by what this program is.
    pub(crate) fn is_kept(&self) -> bool {
        self.target.place.is_kept()
    }

    /// Whether a record of so many requests is to be planned.
    pub(crate) fn is_due(&self, requests: usize) -> bool {
        requests >= self.next
    }

    /// From how many requests on that is so.
    pub(crate) fn due_at(&self) -> usize {
        self.next
    }

    /// What the last plan was made of is not the program any more: the next one is due at once.
    pub(crate) fn hurry(&mut self) {
        self.next = 0;
    }

    /// Whether a thread makes a plan.
    pub(crate) fn is_at_work(&self) -> bool {
        self.at_work.load(Ordering::Acquire)
    }

    /// Whether there is a plan of a record of so many requests, or no room for one, and no thread makes one.
    pub(crate) fn is_done(&self, requests: usize) -> bool {
        !self.is_at_work() && (requests <= self.too_many || self.has_planned(requests))
    }

    fn has_planned(&self, requests: usize) -> bool {
        requests <= self.planned.load(Ordering::Relaxed)
    }

    /// A plan of a record of so many requests or more, for [`Job::start`] under no lock; none while a thread is at work, nor where
    /// there is no room.
    #[must_use]
    pub(crate) fn job(&mut self, requests: usize) -> Option<Job> {
        if self.at_work.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.next = requests.saturating_mul(2);
        if lack_of_room(requests, 1, true).is_some() {
            // Said at the end.
            self.too_many = requests;
            self.at_work.store(false, Ordering::Release);
            return None;
        }
        Some(Job { of: self.clone(), requests })
    }

    /// The record is complete.
    pub(crate) fn end(&self, record: &impl Plannable) {
        let (requests, is_at_work) = (record.requests(), self.is_at_work());
        if !is_at_work && self.has_planned(requests) {
            return;
        }
        // The process does not wait for a thread that is making one.
        match lack_of_room(requests, 1 + u64::from(is_at_work), false) {
            Some(why) => {
                let stays = match self.target.written() {
                    0 | usize::MAX => String::new(),
                    first => format!(". That of the first {first} requests stays"),
                };
                self.target.refused(&format!("{why}{stays}"));
            }
            None => make(record, self.run.clone(), &self.target, LAST_PATIENCE, last_moment()),
        }
        self.target.close();
    }
}

impl Job {
    /// Has a thread make it, of the record that `copy` copies in that thread.
    pub(crate) fn start<R: Plannable>(self, copy: impl FnOnce() -> R + Send + 'static) {
        let Self { of, requests } = self;
        let at_work = Arc::clone(&of.at_work);
        let work = move || {
            background::enter();
            make(&copy(), of.run, &of.target, PATIENCE, Instant::now() + PATIENCE * BUSY);
            of.planned.store(requests, Ordering::Relaxed);
            of.at_work.store(false, Ordering::Release);
        };
        if sync::start("pinbuddy-planner", work).is_err() {
            // The next plan is made later, or at the end.
            at_work.store(false, Ordering::Release);
        }
    }
}

/// When the end of the process, which has begun, has taken long enough.
fn last_moment() -> Instant {
    static LAST_MOMENT: OnceLock<Instant> = OnceLock::new();
    *LAST_MOMENT.get_or_init(|| Instant::now() + LAST_OF_ALL)
}

/// Makes the plan and writes it. The search takes so much processor time, and ends before `last`, with some time for the trial.
fn make<R: Plannable>(record: &R, run: MadeFor, target: &Target, patience: Duration, last: Instant) {
    // A record is empty once the process ends, and what was in it is planned there.
    if record.requests() == 0 || !target.is_ready() {
        return;
    }
    let (worked, trial) = (background::work(), record.trial());
    let patience = patience.saturating_sub(trial);
    let was_cut = AtomicBool::new(false);
    let stop = || {
        let is_over = background::work() - worked > patience || Instant::now() + trial * BUSY > last;
        was_cut.fetch_or(is_over, Ordering::Relaxed) || is_over
    };
    // One thread, which this one is.
    let options = Options { made_for: run, threads: 1, ..Options::default() };
    let made = record.planned(&options, &stop);
    let (run, requests) = (&options.made_for, record.requests());
    let was_cut = was_cut.into_inner();
    let none = record.why_none(&made).map(|why| if was_cut { NO_TIME } else { why });
    // Where there was no time to find one, a plan of half of the requests stays; one of fewer knows little of the others.
    let stays = |there: usize| none == Some(NO_TIME) && there >= requests / 2;
    let requests_in = |text: &str| match NoPlan::read(text, run) {
        // Any plan is better.
        Some(there) => there.ok().filter(|_| none.is_some()).map(|it| it.requests),
        None => R::Plan::requests_in(text, run).map(|it| if stays(it) { usize::MAX } else { it }),
    };
    // A run of few requests may have failed early.
    let none = none.filter(|_| requests as u64 >= WHOLE);
    let write = |out: &mut io::BufWriter<fs::File>| match none {
        Some(why) => NoPlan::new(run, requests, why).write(out),
        None => made.write(out),
    };
    match target.replace(requests, requests_in, write) {
        Ok(false) => {}
        Ok(true) if none.is_some() => {
            log::info(|| format!("{target} says that there is no plan for this program: later runs are not recorded"));
        }
        Ok(true) => log::info(|| format!("{} was written to {target}", made.summary())),
        Err(why) => target.refused(&why),
    }
}

/// The file. A thread may still write it when the process ends and writes it as well.
#[derive(Debug)]
struct Target {
    place: Place,
    /// Of so many requests is the plan that was written last; of any number, once nothing is written any more. Locked while
    /// one is written.
    requests: Mutex<usize>,
    /// Whether the plan there is replaced however many requests it was made of.
    replaces_any: bool,
    /// That none is written is said once: a full disk refuses each.
    said: Once,
}

impl Target {
    fn new(place: Place) -> Self {
        Self { place, requests: Mutex::default(), replaces_any: false, said: Once::new() }
    }

    /// Whether a plan can be written: of a kept one the folder is made. What is wrong with that is said once.
    fn is_ready(&self) -> bool {
        let lock = self.requests.lock();
        let mut last = lock.unwrap_or_else(PoisonError::into_inner);
        if !self.place.is_kept() || *last == usize::MAX {
            return *last < usize::MAX;
        }
        let prepared = self.place.prepare();
        if let Err(why) = &prepared {
            *last = usize::MAX;
            self.refused(why);
        }
        prepared.is_ok()
    }

    /// Of how many requests the plan is that was written last.
    fn written(&self) -> usize {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No plan is written.
    fn refused(&self, why: &dyn fmt::Display) {
        self.said.call_once(|| log::warn(|| format!("the plan could not be written to {self}: {why}")));
    }

    /// Replaces the file with the plan of so many requests that `write_to` writes; false, and nothing is done, where the
    /// plan there is one of more, as `requests_in` reads its text. A kept one, which many processes make, is not replaced by one of
    /// as many either.
    fn replace(
        &self,
        requests: usize,
        requests_in: impl Fn(&str) -> Option<usize>,
        write_to: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
    ) -> io::Result<bool> {
        let lock = self.requests.lock();
        let mut last = lock.unwrap_or_else(PoisonError::into_inner);
        // Processes that are no ranks of one run share a file: a short one must not have the last word.
        let enough = requests.saturating_add(usize::from(!self.place.is_kept()));
        let is_better = || -> io::Result<bool> {
            let own = |text: &String| !self.replaces_any && self.place.check(text).is_ok();
            let there = self.place.text_to_replace()?.filter(own);
            Ok(there.and_then(|it| requests_in(body(&it))).is_none_or(|it| it < enough))
        };
        if *last > requests || !is_better()? {
            return Ok(false);
        }
        let text = |out: &mut io::BufWriter<fs::File>| {
            out.write_all(self.place.head().as_bytes())?;
            write_to(out)
        };
        if !write(&self.place.real(), text, is_better)? {
            return Ok(false);
        }
        *last = requests;
        self.place.trim();
        Ok(true)
    }

    /// Nothing is written from here on: the process ends, and would leave half of a file behind.
    fn close(&self) {
        let lock = self.requests.lock();
        *lock.unwrap_or_else(PoisonError::into_inner) = usize::MAX;
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.path.display().fmt(f)
    }
}

/// Replaces the file at once with what `text` writes, if that is better when it is written.
fn write(
    path: &Path,
    text: impl FnOnce(&mut io::BufWriter<fs::File>) -> io::Result<()>,
    is_better: impl FnOnce() -> io::Result<bool>,
) -> io::Result<bool> {
    let (beside, file) = create_beside(path)?;
    let written = (|| {
        let mut out = io::BufWriter::new(file);
        text(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        let is_better = is_better()?;
        if is_better {
            fs::rename(&beside, path)?;
        }
        Ok(is_better)
    })();
    if !matches!(written, Ok(true)) {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A new file in the same folder that only this user reads. Its name cannot be foretold, and it is never written through
/// a link that somebody else has put there.
fn create_beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    // The standard library's one source of random numbers.
    let random = RandomState::new().build_hasher().finish();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{random:016x}.tmp"));
    let beside = path.with_file_name(name);
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    options.open(&beside).map(|file| (beside, file))
}

#[cfg(test)]
mod tests;
