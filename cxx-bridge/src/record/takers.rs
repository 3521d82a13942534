//! The sinks of a recording, and which of them hears what.
//!
//! Invariant: a sink hears of no block that was requested before it was added. Knows no thread.

use pinbuddy_events::Event;

use super::merge::Output;
use super::sink::Sink;
use super::source::Lost;

struct Taker {
    sink: Box<dyn Sink>,
    /// The first block that it hears of.
    from: u64,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Takers(Vec<Taker>);

impl Takers {
    /// Adds sinks, which hear of blocks from number `from` on.
    pub(super) fn add(&mut self, sinks: Vec<Box<dyn Sink>>, from: u64) {
        let taker = |sink| Taker { sink, from };
        self.0.extend(sinks.into_iter().map(taker));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn any(&self, which: impl Fn(&dyn Sink) -> bool) -> bool {
        self.0.iter().any(|it| which(&*it.sink))
    }

    /// Ends and removes some.
    pub(super) fn end(&mut self, which: impl Fn(&dyn Sink) -> bool) {
        self.0.retain_mut(|taker| {
            let ends = which(&*taker.sink);
            if ends {
                taker.sink.end();
            }
            !ends
        });
    }

    pub(super) fn pause(&mut self) {
        self.0.iter_mut().for_each(|it| it.sink.pause());
    }
}

impl Output for Takers {
    fn event(&mut self, event: Event) {
        let id = event.op.id().unwrap_or(u64::MAX);
        for taker in self.0.iter_mut().filter(|it| id >= it.from) {
            taker.sink.event(event);
        }
    }

    fn lost(&mut self, entries: Lost) {
        self.0.iter_mut().for_each(|it| it.sink.lost(entries));
    }
}
