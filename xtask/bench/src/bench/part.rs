//! The parts of a benchmark run, in order.

use clap::ValueEnum;

/// What `--only` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Allocate and free of a cached block, by size, mixed, with an event; split and merge
    Hit,
    /// The same on 1 to 8 threads
    Threads,
    /// Split and merge among 100 to a million blocks
    Scaling,
    /// What is pinned for training, serving, loading and checkpoint traces
    Memory,
    /// Time in the allocator in the first iteration of a training trace, with pages locked
    First,
    /// Second runs with BUDDY_PLAN: their first iteration, their pairs
    Plan,
    /// What a pair takes more while BUDDY_TRACE records it
    Record,
    /// Device memory: planned pairs, and what passes through beside a plan
    Device,
    /// Device memory of real trainings: what PyTorch reserves, its model, a plan (tests/python/device_trainings.py)
    Trainings,
    /// A cold start by backing and page size (tests/python/cold_start.py)
    WarmUp,
    /// What is left to upstream, and imports (tests/python/measure.py)
    Overhead,
    /// Clear, fit, steps, first block (tests/python/production.py)
    Production,
    /// Cold starts, growth, clears, shortage, exits (files of tests/programs); worst/NAME is one of its programs
    Worst,
    /// Building the fork wheel, with nothing compiled
    Build,
}

impl Part {
    /// The chosen parts, deduplicated; if none is chosen, all of them, minus the long ones in a quick run.
    pub fn chosen(chosen: &[Self], quick: bool) -> Vec<Self> {
        let wanted = |part: &Self| {
            if chosen.is_empty() {
                !(quick && part.is_long())
            } else {
                chosen.contains(part)
            }
        };
        let all = Self::value_variants().iter().copied();
        all.filter(wanted).collect()
    }

    fn is_long(self) -> bool {
        matches!(
            self,
            Self::Plan
                | Self::Record
                | Self::Device
                | Self::Trainings
                | Self::WarmUp
                | Self::Overhead
                | Self::Production
                | Self::Worst
                | Self::Build
        )
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |it| it.get_name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_once_in_the_order_of_a_run() {
        let chosen = Part::chosen(&[Part::Build, Part::Hit, Part::Build], true);
        assert_eq!(chosen, [Part::Hit, Part::Build]);
        let all = Part::chosen(&[], false);
        assert_eq!(all, Part::value_variants());
        let quick = Part::chosen(&[], true);
        assert!(quick.contains(&Part::First) && !quick.contains(&Part::Build));
        assert_eq!(Part::WarmUp.name(), "warm-up");
    }
}
