//! A stream's queue: work in order, done by a thread of its own, later than the call that gave it.
//!
//! A thread is started when there is work and leaves when there has been none for a while, so the
//! many streams of a pool cost nothing until they are used. Work is counted: a ticket is the
//! number of an item, and a queue has finished a ticket when it has finished that many items. An
//! idle queue does what takes no time (recording an event) at the call: that is where it has come.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Status, lock};
use crate::note;
use crate::work::{self, Work};

/// How long a thread without work stays.
const PATIENCE: Duration = Duration::from_millis(500);

/// Work in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: VecDeque<Work>,
    submitted: u64,
    finished: u64,
    has_thread: bool,
}

impl Queue {
    /// Add work to the end; the answer is its ticket.
    pub(crate) fn push(self: &Arc<Self>, work: Work) -> Status<u64> {
        let mut state = lock(&self.state);
        if work.is_instant() && state.finished == state.submitted {
            work.perform();
            state.submitted += 1;
            state.finished += 1;
            return Ok(state.submitted);
        }
        if !state.has_thread {
            let queue = Arc::clone(self);
            std::thread::Builder::new()
                .name("cuda-sim-stream".into())
                .spawn(move || queue.serve())
                .map_err(|_| Error::cudaErrorOperatingSystem)?;
            state.has_thread = true;
        }
        state.pending.push_back(work);
        state.submitted += 1;
        let ticket = state.submitted;
        drop(state);
        self.changed.notify_all();
        Ok(ticket)
    }

    /// The ticket of the newest work.
    pub(crate) fn newest(&self) -> u64 {
        lock(&self.state).submitted
    }

    /// Whether all work so far is done.
    pub(crate) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.finished == state.submitted
    }

    /// Wait until a ticket's work is done.
    pub(crate) fn wait(&self, ticket: u64) {
        let mut state = lock(&self.state);
        while state.finished < ticket {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The thread: do the work in order until there is none.
    fn serve(&self) {
        work::enter_stream();
        let mut state = lock(&self.state);
        loop {
            let Some(work) = state.pending.pop_front() else {
                let (woken, timeout) = self.pause(state);
                state = woken;
                if timeout && state.pending.is_empty() {
                    state.has_thread = false;
                    return;
                }
                continue;
            };
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| work.perform())).is_err() {
                note::always("work on a stream failed inside the simulator; that is a bug in it");
            }
            state = lock(&self.state);
            state.finished += 1;
            self.changed.notify_all();
        }
    }

    fn pause<'a>(&self, state: MutexGuard<'a, State>) -> (MutexGuard<'a, State>, bool) {
        let (state, result) = self.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        (state, result.timed_out())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Completion, HostCall};

    #[test]
    fn work_is_done_in_order_and_later_than_the_call() {
        let queue = Arc::new(Queue::default());
        let gate = Arc::new(Completion::default());
        let order = Arc::new(Mutex::new(Vec::new()));
        queue.push(Work::Await(Arc::clone(&gate))).unwrap();
        for number in 0..100 {
            let order = Arc::clone(&order);
            let call = HostCall(Arc::new(move || lock(&order).push(number)));
            queue.push(Work::Call(call)).unwrap();
        }
        assert!(!queue.is_idle());
        assert!(lock(&order).is_empty());
        let opener = Arc::new(Queue::default());
        opener.push(Work::Reach(gate)).unwrap();
        queue.wait(queue.newest());
        assert!(queue.is_idle());
        assert_eq!(*lock(&order), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_idle_queue_reaches_an_event_at_the_call_and_a_busy_one_later_and_a_thread_that_left_is_replaced() {
        let queue = Arc::new(Queue::default());
        let (early, late) = (Arc::<Completion>::default(), Arc::<Completion>::default());
        queue.push(Work::Reach(Arc::clone(&early))).unwrap();
        assert!(early.at().is_some());
        queue.push(Work::Hold(Duration::from_millis(500))).unwrap();
        let ticket = queue.push(Work::Reach(Arc::clone(&late))).unwrap();
        assert!(late.at().is_none());
        queue.wait(ticket);
        assert!(late.at().is_some());
        std::thread::sleep(PATIENCE * 2);
        assert!(!lock(&queue.state).has_thread);
        queue.wait(queue.push(Work::Hold(Duration::from_millis(1))).unwrap());
        assert!(queue.is_idle());
    }
}
