//! The parts of a benchmark run, in the order in which they run.

use clap::ValueEnum;

/// What `--only` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// A cold start by backing and page size (tests/python/cold_start.py)
    WarmUp,
    /// What is left to upstream, and imports (tests/python/measure.py)
    Overhead,
    /// Clear, fit, steps, first block (tests/python/production.py)
    Production,
}

impl Part {
    /// What a run without `--only` does, or those of `chosen`, each once.
    pub fn chosen(chosen: &[Self]) -> Vec<Self> {
        Self::value_variants()
            .iter()
            .copied()
            .filter(|part| chosen.is_empty() || chosen.contains(part))
            .collect()
    }

    /// As the command line names it.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |it| it.get_name().to_owned())
    }
}
