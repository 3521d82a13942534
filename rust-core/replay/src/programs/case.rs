//! A random program with its machine, settings and budget.

use pinbuddy_core::Settings;

use crate::GIB;
use crate::policy::pinbuddy;
use crate::world::Machine;

use super::{Bounds, Cell, Outcome, Run, Shape, Sizes, Verdict, run};

/// How pinbuddy is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The defaults.
    Default,
    /// `BUDDY_WARMUP=off BUDDY_GROWTH=exact`.
    Exact,
    /// `BUDDY_BLOCK_COUNT=4`.
    Told,
}

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// How the program's requests are drawn.
    pub shape: Shape,
    /// The numbers that decide them.
    pub tape: Vec<Cell>,
    /// The machine that it runs on.
    pub machine: Machine,
    /// How pinbuddy is set.
    pub setting: Setting,
}

const SEGMENT: u64 = GIB;
const COUNT: u64 = 4;

impl Setting {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Default, Self::Exact, Self::Told];

    fn settings(self, sizes: Sizes) -> Settings {
        let mut settings = pinbuddy::Settings::default();
        if sizes == Sizes::Small {
            settings.threshold_bytes = 0;
        }
        match self {
            Self::Default => settings.core(),
            Self::Exact => settings.exact().core(),
            Self::Told => pinbuddy::Settings { block_count: Some(COUNT), ..settings }.core(),
        }
    }
}

impl Case {
    /// Whether the budget is less than the program may need.
    pub fn is_short(&self) -> bool {
        self.machine.budget < u64::MAX
    }

    /// How near it comes to each bound; with `audits`, the state is audited now and then.
    ///
    /// # Errors
    ///
    /// What an audit found.
    pub fn judge(&self, audits: bool) -> Result<Verdict, String> {
        let (ours, stocks) = self.run(audits)?;
        let told = match self.setting {
            Setting::Told => COUNT * SEGMENT,
            _ => 0,
        };
        let bounds = Bounds { told, segment: SEGMENT, registration: self.machine.registers(told / COUNT) };
        Ok(Verdict::of(&ours, &stocks, bounds))
    }

    /// Runs it with pinbuddy and with stock.
    ///
    /// # Errors
    ///
    /// What an audit found.
    pub fn run(&self, audits: bool) -> Result<(Outcome, Outcome), String> {
        let acts = self.shape.acts(&self.tape);
        let of = Run { acts: &acts, machine: self.machine, audits };
        let ours = run(of, Some(&self.setting.settings(self.shape.sizes)))?;
        Ok((ours, run(of, None)?))
    }
}
