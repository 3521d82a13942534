//! What is known of a process.

use std::time::SystemTime;

use pinbuddy_live::Page;
use pinbuddy_machine::Held;
use serde_json::{Value, json};

/// A process.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) pid: u32,
    pub(super) state: State,
}

/// Whether it shows anything.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Shown(Page),
    /// There is no such process any more.
    Ended,
    /// It has no page, for this reason.
    Silent(String),
    /// It has one that cannot be used.
    Wrong(String),
}

impl Row {
    /// What it shows.
    pub(super) fn page(&self) -> Option<&Page> {
        match &self.state {
            State::Shown(page) => Some(page),
            _ => None,
        }
    }

    /// What is to be said of it, if anything.
    pub(super) fn remark(&self) -> Option<String> {
        match &self.state {
            State::Ended => Some("there is no such process, or not any more".to_owned()),
            State::Silent(why) | State::Wrong(why) => Some(why.clone()),
            State::Shown(page) if page.counters.retired => {
                Some("retired: PyTorch's own allocator serves since; standard error says why".to_owned())
            }
            State::Shown(page) => {
                let seconds = now().saturating_sub(page.updated) / 1_000_000_000;
                (seconds >= 3).then(|| format!("not refreshed for {seconds} s: is it stopped?"))
            }
        }
    }

    fn json(&self) -> Value {
        let state = match &self.state {
            State::Shown(_) => "shown",
            State::Ended => "ended",
            State::Silent(_) => "silent",
            State::Wrong(_) => "wrong",
        };
        let mut value = json!({});
        if let Some(page) = self.page() {
            value = json!(page);
            value["budget_bytes"] = json!(page.counters.budget.bytes());
            value["idle_bytes"] = json!(page.counters.idle());
            value["hit_rate"] = json!(page.counters.hit_rate());
        }
        // As it is called here, which in a container is not what it calls itself.
        value["pid"] = json!(self.pid);
        value["state"] = json!(state);
        value["remark"] = json!(self.remark());
        value
    }
}

/// All rows, and who else holds memory, in a line.
pub(super) fn json(rows: &[Row], others: &Held) -> Value {
    json!({ "processes": rows.iter().map(Row::json).collect::<Vec<_>>(), "others": others })
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}
