//! Values of `--only`: a part, or one of its programs: those of `worst`, and the workloads of `plan`.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use pinbuddy_replay::workload::WORKLOADS;

use super::part::Part;
use super::worst::program::PROGRAMS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The part, or the program's part.
    pub part: Part,
    /// As the command line names it: `worst/captures`, `plan/kv-cache`.
    pub program: Option<&'static str>,
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Choice>> = LazyLock::new(|| {
            let parts = Part::value_variants().iter().map(|&part| Choice {
                part,
                program: None,
            });
            let programs = PROGRAMS.iter().map(|it| Choice {
                part: Part::Worst,
                program: Some(it.name),
            });
            let workloads = WORKLOADS.iter().map(|it| Choice {
                part: Part::Plan,
                program: Some(format!("plan/{}", it.name).leak()),
            });
            parts.chain(programs).chain(workloads).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self.program {
            // Hidden to keep the help short; the answer to a wrong name lists the parts.
            Some(name) => Some(PossibleValue::new(name).hide(true)),
            None => self.part.to_possible_value(),
        }
    }
}

/// The chosen programs of a part. Empty means all: if none is named, or the part itself is.
pub fn programs(part: Part, chosen: &[Choice]) -> Vec<&'static str> {
    let own = || chosen.iter().filter(|it| it.part == part);
    if own().any(|it| it.program.is_none()) {
        return Vec::new();
    }
    own().filter_map(|it| it.program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Choice {
        Choice::from_str(name, false).unwrap()
    }

    #[test]
    fn a_part_or_one_of_its_programs() {
        assert_eq!(named("warm-up").part, Part::WarmUp);
        assert_eq!(named("worst/captures").part, Part::Worst);
        assert_eq!(named("plan/kv-cache").part, Part::Plan);
        assert!(Choice::from_str("worst/nothing", false).is_err());
        assert!(Choice::from_str("hit/captures", false).is_err());
    }

    #[test]
    fn all_programs_unless_some_are_named() {
        let [hit, worst, captures] = ["hit", "worst", "worst/captures"].map(named);
        let programs = |chosen: &[Choice]| programs(Part::Worst, chosen);
        assert!(programs(&[]).is_empty());
        assert!(programs(&[captures, worst]).is_empty());
        let other = named("plan/kv-cache");
        assert_eq!(programs(&[hit, captures, other]), ["worst/captures"]);
    }
}
