//! Faults: which calls fail, how, and how often each was made.
//!
//! A plan is text, from `PINBUDDY_SIM_FAULTS` or from `pinbuddy_sim_faults`: rules with `;` between them, each
//! `NAME:N=OUTCOME` (the N-th call, counted from 1) or `NAME:N+=OUTCOME` (that one and all later ones).
//!
//! - A CUDA entry point's outcome is an error's number; 0 is a lie: success, and nothing was done. `*` is any of them.
//! - A system call's outcome is an errno, `short` for a `read` or `write` of one byte, or `<FILE` for an `open` that
//!   opens another file. `open(/proc/meminfo)` is that file's alone. Only calls by the tested library are counted,
//!   and only where a rule is about any (`system`).
//!
//! A call that fails has done nothing. Errors that CUDA calls sticky stay (`sticky`). Knows no CUDA and no kernel.

mod plan;
pub(crate) mod sticky;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use crate::error::{Error, lock};
use crate::note;
pub(crate) use plan::Outcome;
use plan::Plan;

/// Whether there is a plan: without one, nothing is counted.
static ARMED: AtomicBool = AtomicBool::new(false);
/// Whether it is about system calls: without, they are not even looked at.
static ABOUT_SYSTEM: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> =
    Mutex::new(State { plan: Plan::empty(), calls: BTreeMap::new(), cuda_calls: 0, injected: 0 });

struct State {
    plan: Plan,
    calls: BTreeMap<String, u64>,
    /// Of all CUDA entry points together.
    cuda_calls: u64,
    injected: u64,
}

/// Replace the plan; counts start again, and no error is sticky any more. False where the text is no plan.
pub(crate) fn arm(text: &str) -> bool {
    read_environment();
    install(text)
}

fn install(text: &str) -> bool {
    let plan = match text.parse::<Plan>() {
        Ok(plan) => plan,
        Err(why) => {
            note::always(&format!("faults {text:?} are ignored: {why}"));
            return false;
        }
    };
    sticky::forget();
    ABOUT_SYSTEM.store(plan.is_about_system_calls(), Ordering::Relaxed);
    let mut state = lock(&STATE);
    *state = State { plan, calls: BTreeMap::new(), cuda_calls: 0, injected: 0 };
    ARMED.store(true, Ordering::Relaxed);
    true
}

/// The environment's plan, from the first CUDA call on.
fn read_environment() {
    static ONCE: Once = Once::new();
    if !ONCE.is_completed() {
        ONCE.call_once(|| {
            if let Ok(text) = std::env::var("PINBUDDY_SIM_FAULTS") {
                install(&text);
            }
        });
    }
}

/// Whether anything is counted.
fn armed() -> bool {
    ARMED.load(Ordering::Relaxed)
}

/// Whether system calls are counted.
pub(crate) fn is_about_system_calls() -> bool {
    ABOUT_SYSTEM.load(Ordering::Relaxed)
}

/// What a CUDA entry point is to answer instead of being called.
pub(crate) fn of_call(entry: &'static str) -> Option<Error> {
    read_environment();
    if !armed() || entry.starts_with("__") || entry.starts_with("pinbuddy") {
        return None;
    }
    let mut state = lock(&STATE);
    let number = state.count(entry);
    state.cuda_calls += 1;
    let found = state.plan.find(entry, number).or_else(|| state.plan.find("*", state.cuda_calls));
    let Some(Outcome::Number(number)) = found else {
        drop(state);
        return sticky::error().filter(|_| !sticky::is_exempt(entry));
    };
    let error = Error(number);
    state.injected += 1;
    drop(state);
    note::log(|| format!("{entry} is made to answer {}", error.0));
    sticky::keep(error);
    Some(error)
}

/// What a system call is to answer instead of being made; `names` are what it goes by.
pub(crate) fn of_system_call(names: &[&str]) -> Option<Outcome> {
    let mut state = lock(&STATE);
    let mut found = None;
    for name in names {
        let number = state.count(name);
        found = found.or_else(|| state.plan.find(name, number));
    }
    state.injected += u64::from(found.is_some());
    drop(state);
    if found.is_some() {
        note::log(|| format!("{names:?} is made to fail"));
    }
    found
}

/// How often each was called, and how many calls were made to fail, as JSON; nothing without a plan.
pub(crate) fn json() -> Option<String> {
    if !armed() {
        return None;
    }
    let state = lock(&STATE);
    let calls: Vec<String> = state.calls.iter().map(|(name, count)| format!("{name:?}: {count}")).collect();
    let (injected, calls) = (state.injected, calls.join(", "));
    Some(format!("\"injected\": {injected}, \"calls\": {{{calls}}}"))
}

impl State {
    /// Counts a call and says which one of its name it is.
    fn count(&mut self, name: &str) -> u64 {
        if let Some(count) = self.calls.get_mut(name) {
            *count += 1;
            return *count;
        }
        self.calls.insert(name.to_owned(), 1);
        1
    }
}
