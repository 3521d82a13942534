//! Second runs: a program runs once with `BUDDY_PLAN`, is recorded and planned, and runs again with its plan.
//!
//! The first run is not measured.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use pinbuddy_plan::file::Plan;
use pinbuddy_replay::workload::Sizes;

use super::figure::Target;
use super::fixture::Fixture;
use super::harness::Harness;
use super::subject::{Memory, Settings, Subject};
use xtask_support::paths;
use xtask_support::scratch::Scratch;

/// The plan of a first run.
pub struct Planned {
    /// A plan is only made where there is no file, so the file is below.
    folder: Scratch,
}

impl Planned {
    /// Runs a program once; its plan is written when its process ends.
    pub fn of_a_run(
        fixture: &Fixture,
        program: impl FnOnce(&mut Harness) -> Result<()>,
    ) -> Result<Self> {
        let planned = Self {
            folder: Scratch::folder(&paths::target().join("bench/plan"))?,
        };
        let mut harness = planned.start(fixture, Memory::Counted, Settings::new())?;
        program(&mut harness)?;
        drop(harness);
        let written = planned.file().is_file();
        anyhow::ensure!(written, "the first run wrote no plan");
        Ok(planned)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("run.plan")
    }

    /// How much it pins.
    pub fn bytes(&self) -> Result<u64> {
        let text = fs::read_to_string(self.file()).context("reading the plan")?;
        Ok(Plan::read(&text)?.regions.iter().sum())
    }

    /// A process that uses it.
    pub fn start(&self, fixture: &Fixture, memory: Memory, more: Settings) -> Result<Harness> {
        let file = self.file().display().to_string();
        let mut settings = vec![("BUDDY_PLAN", file)];
        settings.extend(more);
        fixture.start(Subject::PinbuddyPlan, memory, settings)
    }
}

/// How many of the requests got their slots; `None` for a plan of an amount alone.
pub fn hits_in_percent(harness: &mut Harness) -> Result<Option<f64>> {
    let answer = harness.ask("plan")?;
    let hits = answer.number("hits")?;
    let all = hits + answer.number("misses")? + answer.number("unplanned")?;
    Ok((all > 0.0).then(|| 100.0 * hits / all))
}

/// The most that a plan may pin over the largest live set.
pub fn bound(sizes: Sizes) -> Target {
    Target::AtMost(match sizes {
        Sizes::Fixed => 1.02,
        Sizes::Vary => 1.08,
    })
}
