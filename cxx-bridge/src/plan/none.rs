//! A file that says that a program has no plan, and why, so that its later runs are not recorded in vain.
//!
//! Only of a run of many requests: one that failed early says nothing about the program. Knows no kind of memory.

use std::io::{self, Write};

use pinbuddy_plan::file::{MadeFor, NO_PLAN};
use serde::{Deserialize, Serialize};

use super::unusable::Unusable;

const VERSION: u64 = 1;

/// See the module's documentation.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoPlan {
    format: String,
    version: u64,
    torch: String,
    world_size: u32,
    rank: u32,
    /// Recorded requests.
    pub(super) requests: usize,
    /// Why there is none, as the end of a sentence.
    pub(super) why: String,
}

impl NoPlan {
    /// Of a run with so many requests.
    pub(super) fn new(run: &MadeFor, requests: usize, why: &str) -> Self {
        Self {
            format: NO_PLAN.to_owned(),
            version: VERSION,
            torch: run.torch.clone(),
            world_size: run.world_size,
            rank: run.rank,
            requests,
            why: why.to_owned(),
        }
    }

    /// What this text says, if it is such a file's.
    pub(super) fn read(text: &str, run: &MadeFor) -> Option<Result<Self, Unusable>> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let head: Head = serde_json::from_str(text).ok()?;
        if head.format != NO_PLAN {
            return None;
        }
        let read = serde_json::from_str(text).map_err(|why| Unusable::stale(&why));
        Some(read.and_then(|it: Self| match it == Self::new(run, it.requests, &it.why) {
            true => Ok(it),
            false => Err(Unusable::stale(&format!(
                "it was written by torch {}, rank {} of {} processes, and this is torch {}, rank {} of {}",
                it.torch, it.rank, it.world_size, run.torch, run.rank, run.world_size
            ))),
        }))
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_for_the_same_run_alone() {
        let run = |torch: &str| MadeFor { torch: torch.to_owned(), world_size: 1, ..MadeFor::default() };
        let none = NoPlan::new(&run("2.15.0"), 5000, "nothing came again");
        let mut text = Vec::new();
        none.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(NoPlan::read(&text, &run("2.15.0")), Some(Ok(none)));
        let other = NoPlan::read(&text, &run("2.11.0")).unwrap().unwrap_err();
        assert!(other.why.contains("torch 2.15.0, rank 0 of 1") && other.to_do.is_none());
        let later = text.replace("\"version\":1", "\"version\":2");
        assert!(NoPlan::read(&later, &run("2.15.0")).unwrap().is_err());
        assert_eq!(NoPlan::read("{\"format\":\"pinbuddy-plan\"}", &run("")), None);
    }
}
