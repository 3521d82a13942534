//! Leads a request to its block: the provisioner names each step, and it is carried out here.
//!
//! Invariants: a request takes a bounded number of steps, apart from sleeping; regions that it is told to
//! unpin are unpinned, whatever its outcome.

use std::thread;
use std::time::{Duration, Instant};

use pinbuddy_core::{Engine, Home, Step, Want};

use super::live::Waiting;
use super::{Grant, Handle, grant};
use crate::backing::{Memory, background};
use crate::log::{self, Bytes};

/// After so many steps a request is left to upstream. It takes a few, unless other threads take what it
/// has pinned or released, again and again.
const STEPS: usize = 32;

/// Streams are asked again after so long: copies of a mebibyte take as long.
const MOMENT: Duration = Duration::from_micros(50);

/// The outcome of a step.
#[derive(Debug)]
enum Answer {
    Served(Grant),
    ToDo(Step),
    /// Ask again, after sleeping.
    AskAgain,
}

impl<M: Memory> Handle<M> {
    /// [`Self::request_at`] of the only home.
    #[cfg(test)]
    pub(crate) fn request(&'static self, bytes: usize) -> Option<Grant> {
        self.request_at(bytes, Home::default())
    }

    /// A block of at least `bytes` bytes for a request of this home, or `None` if upstream's path serves the
    /// request: below the threshold, when nothing more can be pinned, and once the engine is retired.
    #[inline]
    pub fn request_at(&'static self, bytes: usize, home: Home) -> Option<Grant> {
        self.cell.guarded(|| {
            let (now, left) = self.at_first();
            let mut want = Want::new(bytes).at(home);
            let mut provisioner = self.cell.provisioner_to_ask()?;
            match provisioner.step(&mut want, now, left) {
                Step::Block(block) => {
                    let grant = grant(&provisioner, block);
                    let hired = provisioner.hire();
                    drop(provisioner);
                    if hired {
                        self.hired();
                    }
                    Some(grant)
                }
                step => {
                    drop(provisioner);
                    self.provide(want, step)
                }
            }
        })
    }

    /// The time and what the budget leaves, for a request's first step. Most requests hit, so these are read
    /// only where the first step may be a pin.
    #[inline]
    fn at_first(&self) -> (Duration, usize) {
        if self.may_pin_at_first { (self.cell.now(), self.pinner.quota().left()) } else { (Duration::ZERO, 0) }
    }

    #[cold]
    fn provide(&'static self, mut want: Want, first: Step) -> Option<Grant> {
        if let Step::PassThrough { why: None, unpin } = &first
            && unpin.is_empty()
        {
            return None;
        }
        let grant = self.lead(&mut want, first);
        if grant.is_some()
            && want.is_polling()
            && let Some(mut provisioner) = self.cell.provisioner()
        {
            provisioner.was_worth_waiting();
        }
        // Only now that the request has its block, so that the worker does not compete with it.
        self.hire();
        self.watch_idle();
        self.stay_if_closed();
        grant
    }

    /// Carries out all steps of a request.
    fn lead(&self, want: &mut Want, first: Step) -> Option<Grant> {
        let mut answer = Answer::ToDo(first);
        let mut refused_by = None;
        let mut waiting = None;
        let mut steps = 0;
        // Each answer is carried out: one that was dropped would be a block that nobody has, or memory that nobody unpins.
        loop {
            steps += 1;
            if let Answer::ToDo(Step::Reap | Step::PassThrough { .. }) = &answer
                && let Some(grant) = self.borrow_instead(want, &mut answer)
            {
                return Some(grant);
            }
            if let Answer::ToDo(Step::WarmUp | Step::Pin(_) | Step::Poll) = &answer {
                waiting.get_or_insert_with(|| self.request_waits());
            }
            match answer {
                Answer::Served(grant) => return Some(grant),
                Answer::AskAgain => steps -= 1,
                Answer::ToDo(Step::Reap) => _ = self.completions.reap(),
                Answer::ToDo(Step::Poll) => {
                    steps -= 1;
                    if !self.looks_again() {
                        want.impatient();
                    }
                    if let Some(grant) = self.borrow(want.bytes()) {
                        return Some(grant);
                    }
                }
                Answer::ToDo(Step::WarmUp) => self.warm_up_here(),
                Answer::ToDo(Step::Pin(permit)) => {
                    let (bytes, device) = (permit.bytes, self.pinner.memory.device());
                    match self.carry_out(permit, device, &self.cell) {
                        Ok(Some(grant)) => return Some(grant),
                        Ok(None) => {}
                        Err(refused) => {
                            want.refused(refused.why, bytes);
                            refused_by = Some(refused);
                        }
                    }
                }
                Answer::ToDo(Step::PassThrough { unpin, why }) => {
                    let _heard = (!unpin.is_empty()).then(|| self.waits_for_driver(true));
                    self.unpin_all(unpin);
                    let exact = Engine::exact_region(want.bytes()).unwrap_or(want.bytes());
                    self.say_refused(exact, why?, refused_by.as_ref());
                    return None;
                }
                // Blocks come with their address, and sleeping needs the lock.
                Answer::ToDo(Step::Block(_) | Step::Wait { .. }) => {}
            }
            if steps >= STEPS {
                break;
            }
            answer = self.ask(want, &mut waiting)?;
        }
        log::debug(|| {
            let size = Bytes(want.bytes() as u64);
            format!("{size} are left to PyTorch's own allocator after {STEPS} steps")
        });
        None
    }

    /// Before memory is pinned for a request, or it is left to upstream: what a plan leaves idle, once all blocks are
    /// released that can be.
    fn borrow_instead(&self, want: &Want, answer: &mut Answer) -> Option<Grant> {
        self.planned.as_ref()?;
        self.completions.reap();
        let grant = self.borrow(want.bytes())?;
        if let Answer::ToDo(Step::PassThrough { unpin, .. }) = answer {
            self.unpin_all(std::mem::take(unpin));
        }
        Some(grant)
    }

    /// Sleeps a moment and releases what streams are done with; false if there is nothing to wait for.
    fn looks_again(&self) -> bool {
        let pending = self.stats().map_or(0, |it| it.pending_bytes.current);
        if pending == 0 {
            return false;
        }
        thread::sleep(MOMENT);
        self.completions.reap()
    }

    /// Asks for the next step; carries it out if it is a wait.
    fn ask<'a>(&'a self, want: &mut Want, waiting: &mut Option<Waiting<'a>>) -> Option<Answer> {
        // The clock is read once: once the budget is used up, that is a good part of a request's cost.
        let now = Instant::now();
        let left = self.pinner.left(want.bytes(), now);
        let mut provisioner = self.cell.provisioner_to_ask()?;
        Some(match provisioner.step(want, self.cell.at(now), left) {
            Step::Block(block) => Answer::Served(grant(&provisioner, block)),
            Step::Wait { until } => {
                waiting.get_or_insert_with(|| self.request_waits());
                let _waiting = background::wait();
                drop(self.cell.sleep(provisioner, until)?);
                Answer::AskAgain
            }
            step => Answer::ToDo(step),
        })
    }
}
