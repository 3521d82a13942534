//! Rules of which call fails and how, read from text.

use std::str::FromStr;

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This error.
    Number(u32),
    /// A read that gives less than there is, or a write that takes less.
    Short,
    /// Another file is opened.
    File(String),
}

/// All rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    rules: Vec<Rule>,
}

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    name: String,
    /// Counted from 1.
    call: u64,
    /// Later calls, too.
    for_good: bool,
    outcome: Outcome,
}

impl Plan {
    pub(super) const fn empty() -> Self {
        Self { rules: Vec::new() }
    }

    /// Whether a rule speaks of any.
    pub(super) fn is_about_system_calls(&self) -> bool {
        let of_cuda = |name: &str| name.starts_with("cu") || name == "*";
        self.rules.iter().any(|rule| !of_cuda(&rule.name))
    }

    /// What becomes of a call; the first rule that speaks of it counts.
    pub(super) fn find(&self, name: &str, call: u64) -> Option<Outcome> {
        let speaks = |rule: &&Rule| rule.name == name && (rule.call == call || rule.for_good && rule.call < call);
        self.rules.iter().find(speaks).map(|it| it.outcome.clone())
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rules = text.split(';').map(str::trim).filter(|it| !it.is_empty());
        let rules = rules
            .map(|rule| read(rule).ok_or_else(|| format!("{rule:?} is not NAME:N=OUTCOME")))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }
}

fn read(rule: &str) -> Option<Rule> {
    let (call, outcome) = rule.split_once('=')?;
    let (name, number) = call.rsplit_once(':')?;
    let (number, for_good) = match number.strip_suffix('+') {
        Some(number) => (number, true),
        None => (number, false),
    };
    let outcome = match outcome.strip_prefix('<') {
        Some(file) => Outcome::File(file.to_owned()),
        None if outcome == "short" => Outcome::Short,
        None => Outcome::Number(outcome.parse().ok()?),
    };
    Some(Rule { name: name.to_owned(), call: number.parse().ok().filter(|it| *it > 0)?, for_good, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_speaks_of_one_call_or_of_all_from_one_on() {
        let plan: Plan = "cudaHostAlloc:2=2; cudaEventQuery:3+=700;".parse().unwrap();
        let fails = |name: &str, calls: u64| -> Vec<u64> {
            (1..=calls).filter(|call| plan.find(name, *call).is_some()).collect()
        };
        assert_eq!(fails("cudaHostAlloc", 5), [2]);
        assert_eq!(fails("cudaEventQuery", 5), [3, 4, 5]);
        assert!(fails("cudaFree", 5).is_empty() && !plan.is_about_system_calls());
        assert_eq!(plan.find("cudaEventQuery", 4), Some(Outcome::Number(700)));
        // Names may be files, and outcomes other files.
        let plan: Plan = "open(/proc/meminfo):1+=</tmp/a=b;read:1=short".parse().unwrap();
        let other = Some(Outcome::File("/tmp/a=b".into()));
        assert!(plan.is_about_system_calls());
        assert_eq!(plan.find("open(/proc/meminfo)", 7), other);
        assert_eq!(plan.find("read", 1), Some(Outcome::Short));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["cudaFree", "cudaFree=2", "cudaFree:0=2", "cudaFree:1=", "cudaFree:x=1", "cudaFree:1=-1"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
        assert_eq!("".parse(), Ok(Plan::empty()));
    }
}
