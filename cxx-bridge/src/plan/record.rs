//! Records this run's requests, for a plan of pinned memory.
//!
//! Invariant: memory is bounded by [`MOST_EVENTS`].

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use pinbuddy_events::{Event, Op, Whose};
use pinbuddy_plan::file::MadeFor;
use pinbuddy_plan::{Options, Plan, Record, for_several, plan};

use super::fit::Trial;
use super::planner::{Made, Plannable, Planner};
use super::{Beside, ToRecord};
use crate::log::{self, Bytes};
use crate::record::{Lost, Sink};

/// So many events are recorded; with them, less than 100 MiB are in use.
pub(crate) const MOST_EVENTS: u32 = 2_000_000;

/// See the module's documentation.
#[derive(Debug)]
pub struct Recording {
    record: Record,
    planner: Planner,
    /// By thread.
    lanes: HashMap<u32, u32>,
    /// Events were dropped: what comes after that is not recorded.
    is_torn: bool,
    /// Where the run uses a plan, until it is known whether that fits.
    trial: Option<(Trial, Box<Beside>)>,
    /// The kept plan that does not fit this run: runs of this program differ.
    differs: Option<Arc<Plan>>,
    /// The plan that is there stays: nothing is recorded.
    is_over: bool,
}

impl Recording {
    /// Nothing recorded yet.
    pub fn new(mut recorded: ToRecord) -> Self {
        log::info(|| {
            let path = recorded.place.path.display();
            match recorded.above {
                0 => format!("this run is recorded for a plan in {path}"),
                usize::MAX => format!("this run is recorded until it is known whether the plan in {path} fits"),
                above => format!(
                    "the plan in {path} is of few requests: this run is recorded, and if it makes more than {above} its plan \
                     replaces that one"
                ),
            }
        });
        let beside = recorded.beside.take();
        Self {
            trial: beside.map(|it| (Trial::of(&it.plan), it)),
            differs: None,
            record: Record::new(MOST_EVENTS),
            planner: Planner::new(recorded),
            lanes: HashMap::new(),
            is_torn: false,
            is_over: false,
        }
    }

    /// It is known whether the plan fits that this run uses.
    fn judge(&mut self, trial: &Trial, beside: Beside) {
        let is_kept = self.planner.is_kept();
        let fits = match is_kept {
            true => trial.keeps_its_word(),
            false => trial.fits(),
        };
        if fits {
            // Only a plan of few requests is replaced by one of more.
            self.is_over = self.planner.is_for_others_only();
            return;
        }
        let why = trial.why();
        let path = self.planner.path().display();
        let update = beside.update;
        let line = |whose, then| format!("the plan in {path} does not fit this {whose}: {why}. {then}");
        if is_kept {
            // Nobody has named it, and nobody has to do anything.
            let then = "This run's plan is written at its end, for both if one can serve both";
            log::info(|| line("run", then));
            self.differs = Some(Arc::new(beside.plan));
        } else if update {
            log::warn(|| line("program", "It is made anew"));
        } else {
            let then = "It stays, and requests without a place are served as without a plan: give this program's plan another name, or \
                remove the file or set BUDDY_PLAN_UPDATE=1, and the next run's plan replaces it";
            log::warn(|| line("program", then));
        }
        match update {
            true => self.planner.replace_any(),
            false => self.is_over = true,
        }
    }

    /// Whether nothing more is recorded.
    fn is_complete(&self) -> bool {
        self.is_torn || self.record.is_full()
    }

    fn push(&mut self, op: Op) {
        let own = match op {
            Op::Request { private: true, .. } => return,
            Op::Request { bytes, .. } if bytes < self.planner.threshold().max(1) => return,
            Op::Request { thread, .. } => {
                let many = self.lanes.len() as u32;
                op.on_thread(*self.lanes.entry(thread).or_insert(many))
            }
            op => op,
        };
        self.record.push(own);
        if let Some((mut trial, beside)) = self.trial.take() {
            trial.event(op);
            match trial.is_over() {
                true => self.judge(&trial, *beside),
                false => self.trial = Some((trial, beside)),
            }
        }
    }
}

impl Sink for Recording {
    fn event(&mut self, event: Event) {
        if !self.is_torn && !self.is_over && event.whose == Whose::Host {
            self.push(event.op);
        }
    }

    fn lost(&mut self, lost: Lost) {
        let events = lost.pinned;
        if events > 0 && !self.is_torn {
            log::warn(|| format!("{events} events were lost: the plan is made of what was recorded before"));
        }
        self.is_torn |= events > 0;
    }

    fn pause(&mut self) {
        let requests = self.record.len();
        let is_due = self.planner.is_due(requests) || self.is_complete();
        let is_free = !self.planner.is_at_work() && !self.planner.is_done(requests);
        if self.is_over || !is_due || !is_free {
            return;
        }
        if let Some(job) = self.planner.job(requests) {
            let (record, differs) = (self.record.clone(), self.differs.clone());
            job.start(move || Recorded { record, differs });
        }
    }

    fn wants_more(&self) -> bool {
        // The program goes on, and so do other recordings, which must not lose events while this one's last plan is made: a thread
        // makes it. Until then the end of the process may come.
        !self.is_over && (!self.is_complete() || !self.planner.is_done(self.record.len()))
    }

    fn end(&mut self) {
        // It asked for less than the plan was made of. One that ended early says nothing, unless its plan was asked for.
        if let Some((trial, beside)) = self.trial.take() {
            match trial.tells() || (beside.update && !self.planner.is_kept()) {
                true => self.judge(&trial, *beside),
                false => self.is_over = true,
            }
        }
        if !self.is_over {
            let record = std::mem::replace(&mut self.record, Record::new(0));
            let differs = self.differs.take();
            self.planner.end(&Recorded { record, differs });
        }
    }
}

impl Plannable for Record {
    type Plan = Plan;

    fn requests(&self) -> usize {
        self.len()
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Plan {
        let began = Instant::now();
        let mut made = plan(self, options, stop);
        made.facts.seconds = began.elapsed().as_secs_f64();
        made
    }
}

/// A record, and a plan of a run that differed, which is to stay if one plan can serve both.
#[derive(Clone, Debug)]
struct Recorded {
    record: Record,
    differs: Option<Arc<Plan>>,
}

impl Plannable for Recorded {
    type Plan = Plan;

    fn requests(&self) -> usize {
        self.record.len()
    }

    fn planned(&self, options: &Options, stop: &(dyn Fn() -> bool + Sync)) -> Plan {
        let made = self.record.planned(options, stop);
        match &self.differs {
            Some(kept) => for_several(&self.record, made, kept),
            None => made,
        }
    }
}

impl Made for Plan {
    fn write(&self, out: &mut io::BufWriter<fs::File>) -> io::Result<()> {
        Self::write(self, out)
    }

    fn requests_in(text: &str, run: &MadeFor) -> Option<usize> {
        let plan = Self::read(text).ok().filter(|it| it.made_for == *run)?;
        usize::try_from(plan.facts.requests).ok()
    }

    fn summary(&self) -> String {
        let (size, slots) = (Bytes(self.reserved()), self.slots.len());
        format!("a plan of {size} and {slots} slots")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_memory_that_is_lost_tears_no_plan_of_pinned_memory() {
        let to_record = ToRecord::new("/proc/never written".into(), MadeFor::default());
        let mut recording = Recording::new(to_record);
        let mut lose = |pinned, device| {
            recording.lost(Lost { pinned, device });
            recording.wants_more()
        };
        assert!(lose(0, 5));
        assert!(!lose(1, 0));
    }

    #[test]
    fn a_record_that_is_complete_while_a_plan_is_made_gets_its_own_plan() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.json");
        for is_torn in [false, true] {
            let _ = fs::remove_file(&path);
            let mut recording = Recording::new(ToRecord::new(path.clone(), MadeFor::default()));
            recording.record = Record::new(if is_torn { 1000 } else { 8 });
            // A thread that takes its time.
            let (done, until) = std::sync::mpsc::channel::<()>();
            let copy = move || {
                let _ = until.recv();
                Record::new(1)
            };
            recording.planner.job(0).unwrap().start(copy);
            for id in 1..=8 {
                recording.push(Op::request(id, 1 << 20));
            }
            let pinned = u64::from(is_torn);
            recording.lost(Lost { pinned, device: 0 });
            recording.pause();
            assert!(recording.wants_more(), "its plan is still to be made");
            drop(done);
            while recording.wants_more() {
                recording.pause();
                std::thread::yield_now();
            }
            let text = fs::read_to_string(&path).unwrap();
            assert_eq!(Plan::read(&text).unwrap().facts.requests, 8);
        }
    }

    const MIB: u64 = 1 << 20;

    /// A run that asks for these sizes (MiB), again and again.
    fn run(mut recording: Recording, sizes: &[u64], requests: u64) {
        let asked = sizes.iter().copied().cycle();
        for (id, mib) in (1..=requests).zip(asked) {
            for op in [Op::request(id, mib * MIB), Op::free(id)] {
                if recording.wants_more() {
                    recording.event(Event::host(id, op));
                }
            }
        }
        recording.end();
    }

    #[test]
    fn a_plan_is_replaced_by_a_longer_run_of_its_program_and_by_anothers_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.plan");
        let read = || Plan::read(&fs::read_to_string(&path).unwrap()).unwrap();
        let beside = |update| {
            let mut it = ToRecord::new(path.clone(), MadeFor::default());
            let plan = read();
            it.above = 4 * plan.facts.requests as usize;
            it.beside = Some(Box::new(Beside { plan, update }));
            Recording::new(it)
        };
        let (own, other) = ([5, 7, 6], [9, 4, 11, 13]);
        let first = ToRecord::new(path.clone(), MadeFor::default());
        run(Recording::new(first), &own, 30);
        run(beside(false), &other, 1000);
        assert_eq!(read().facts.requests, 30, "another program's");
        run(beside(true), &own, 120);
        assert_eq!(read().facts.requests, 30, "not much longer");
        run(beside(false), &own, 1000);
        assert_eq!(read().facts.requests, 1000, "the same program's");
        run(beside(true), &other, 8);
        assert_eq!(read().facts.requests, 8, "asked for");
    }

    #[test]
    fn a_kept_plan_is_renewed_by_a_run_that_it_does_not_fit_and_then_fits_both() {
        use pinbuddy_store::Role;
        let folder = tempfile::tempdir().unwrap();
        let place = super::super::Place::in_folder(folder.path(), "train", Role::First);
        place.prepare().unwrap();
        let path = place.path.clone();
        let read = || {
            let text = fs::read_to_string(&path).unwrap();
            Plan::read(pinbuddy_store::body(&text)).unwrap()
        };
        let (config, _) = crate::config::of_pairs(&[]);
        let beside = |requests, sizes| {
            let choice = super::super::Choice::Use(read());
            let recorded = super::super::to_record(&choice, &config, Some(&place));
            run(Recording::new(recorded.unwrap()), sizes, requests);
        };
        let shapes = [[5, 7, 6], [6, 8, 5]];
        let first = ToRecord::at(place.clone(), MadeFor::default());
        run(Recording::new(first), &shapes[0], 6000);
        let alone = read();
        beside(6000, &shapes[1]);
        let both = read();
        assert_eq!(both.lanes.len(), 2 * alone.lanes.len());
        beside(5, &[9]);
        assert_eq!(read(), both, "it ended early");
        for sizes in &shapes {
            beside(5000, sizes);
            assert_eq!(read(), both, "it fits: nothing is written");
        }
        // Ten times as much: none serves both, and the newest stays.
        beside(6000, &[50, 70, 60]);
        assert_eq!(read().lanes.len(), alone.lanes.len());
    }
}
