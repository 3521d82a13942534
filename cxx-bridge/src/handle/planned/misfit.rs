//! A plan that does not fit: said once, with how many requests it had a place for.
//!
//! Another program's plan may serve a few requests by chance, and the rest pins in step after step. Where the run is recorded
//! beside its plan, the recording tells whose the plan is (`plan::fit`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pinbuddy_slots::Served;
use pinbuddy_store::AUTO;

use super::{Handle, Planned};
use crate::backing::Memory;
use crate::plan::auto::TO_DO;

/// So many requests without a place tell, and twice as many each time: more than a thread has that is given up.
const FIRST: u64 = 1 << 13;

impl Planned {
    /// Whether it is time to look, with so many requests without a place.
    pub(super) fn is_time_to_look(unserved: u64) -> bool {
        unserved >= FIRST && unserved.is_power_of_two()
    }

    pub(in crate::handle) fn served(&self) -> Served {
        self.counts().into()
    }

    /// Whether it was said that the plan does not fit a thread any more.
    pub(in crate::handle) fn given_up(&self) -> &AtomicBool {
        &self.given_up
    }

    /// Whether it was said that it does not fit at all.
    pub(in crate::handle) fn is_misfit(&self) -> bool {
        self.misfit.load(Ordering::Relaxed)
    }
}

impl<M: Memory> Handle<M> {
    /// The recording beside the plan says whether it is this program's.
    pub fn leave_misfit_to_the_recording(&self) {
        if let Some(planned) = &self.planned {
            planned.judged_elsewhere.store(true, Ordering::Relaxed);
        }
    }

    /// Says if most requests had no place. Not where memory was refused: then there are places, and nothing in them.
    #[cold]
    pub(in crate::handle) fn say_misfit(&self, planned: &Planned) {
        let served = planned.served();
        let is_known = |it: &AtomicBool| it.load(Ordering::Relaxed);
        let known = [&planned.refused, &planned.given_up, &planned.judged_elsewhere];
        if !served.is_misfit() || known.into_iter().any(is_known) || self.room_is_enough() {
            return;
        }
        self.once(&planned.misfit, || {
            let name = self.config.plan_file.as_deref().unwrap_or(Path::new("")).display();
            let Served { served, asked } = served;
            let to_do = match self.config.plan.value.as_deref() {
                // Else the run is recorded.
                Some(AUTO) => format!("it cannot be renewed, since its folder cannot be written to: {TO_DO}"),
                _ => "give this program's plan another name, or remove the file or set BUDDY_PLAN_UPDATE=1, and the next run's plan \
                      replaces it".to_owned(),
            };
            format!(
                "the plan in {name} does not fit this program: it had a place for {served} of {asked} requests. The others are served \
                 as without a plan: {to_do}"
            )
        });
    }

    /// Whether the plan's regions without slots, which are the engine's, held all that had no slot.
    fn room_is_enough(&self) -> bool {
        let room = self.settings.count.unwrap_or(0) as u64;
        let most = || Some(self.cell.provisioner()?.engine().stats().segments.peak);
        room > 0 && self.cell.guarded(most).is_some_and(|it| it <= room)
    }

    /// The process ends.
    pub(in crate::handle) fn say_misfit_at_the_end(&self) {
        if let Some(planned) = &self.planned {
            self.say_misfit(planned);
        }
    }
}
