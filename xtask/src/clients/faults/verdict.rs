//! What became of a client under a fault: which ends are allowed.
//!
//! Allowed are an end as stock's in the same place, and an end as without faults, with the same results. Ends are alike by
//! exit code and by the exception of the main thread: what a DataLoader's threads and workers say when they find each
//! other's pipes closed depends on which of them notices first. Whether a fault was met is known from what the simulator says.

use serde::Serialize;

use crate::clients::report::Ran;

/// What the simulator says of a call that it made fail.
const MET: &str = " is made to ";

/// What became of a client under one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// No call failed.
    NotMet,
    /// It ended as without faults.
    Survived,
    /// It ended as stock did.
    AsStock,
    /// Something else, as listed.
    AsListed,
    Differs,
}

/// The verdict on the fork's run, beside stock's without a fault and those with it.
pub fn of(clean: &Ran, stocks: &[Ran], fork: &Ran) -> Outcome {
    let results = |it: &Ran| it.report.as_ref().map(|it| it.results.clone());
    let has_results_of = |it: &Ran| results(it) == results(fork);
    if fork.succeeded() && (has_results_of(clean) || stocks.iter().any(has_results_of)) {
        if fork.warnings.iter().any(|it| it.contains(MET)) {
            Outcome::Survived
        } else {
            Outcome::NotMet
        }
    } else if stocks.iter().any(|it| fails_alike(it, fork)) {
        Outcome::AsStock
    } else {
        Outcome::Differs
    }
}

fn fails_alike(stock: &Ran, fork: &Ran) -> bool {
    !stock.succeeded() && (&stock.exit, &stock.exception) == (&fork.exit, &fork.exception)
}

/// How it ended, and with which exception.
pub fn end(ran: &Ran) -> String {
    if ran.succeeded() {
        return ran.exit.clone();
    }
    let exception = ran.exception.as_deref().unwrap_or("no exception");
    format!("{}, {exception}", ran.exit)
}

#[cfg(test)]
pub mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::clients::report::Report;

    /// A run that ended so, with this result.
    pub fn ran(exit: &str, exception: Option<&str>, result: Option<u64>) -> Ran {
        let report = |it: u64| Report {
            results: BTreeMap::from([("data".to_owned(), it.into())]),
            statistics: BTreeMap::new(),
            names: Vec::new(),
            peak_pinned: 0,
            peak_active: 0,
            pins: 0,
        };
        Ran {
            exit: exit.to_owned(),
            seconds: 1.0,
            warnings: BTreeSet::new(),
            exception: exception.map(str::to_owned),
            last_words: String::new(),
            report: result.map(report),
        }
    }

    fn met(mut ran: Ran) -> Ran {
        ran.warnings
            .insert("cudaFree is made to answer #".to_owned());
        ran
    }

    #[test]
    fn an_end_is_stocks_or_that_without_faults() {
        let clean = ran("exit code 0", None, Some(1));
        let survived = met(clean.clone());
        let wrong = met(ran("exit code 0", None, Some(2)));
        let failed = met(ran("exit code 1", Some("torch.AcceleratorError"), None));
        let otherwise = met(ran("exit code 1", Some("OSError"), None));
        let killed = met(ran("signal 11", None, None));
        for (stock, fork, expected) in [
            (&clean, &clean, Outcome::NotMet),
            (&failed, &survived, Outcome::Survived),
            (&failed, &failed, Outcome::AsStock),
            (&wrong, &wrong, Outcome::Survived),
            (&failed, &otherwise, Outcome::Differs),
            (&failed, &wrong, Outcome::Differs),
            (&survived, &failed, Outcome::Differs),
            (&failed, &killed, Outcome::Differs),
            (&survived, &wrong, Outcome::Differs),
        ] {
            let found = of(&clean, std::slice::from_ref(stock), fork);
            assert_eq!(found, expected, "{} {}", end(stock), end(fork));
        }
        assert_eq!(end(&failed), "exit code 1, torch.AcceleratorError");
        assert_eq!(end(&killed), "signal 11, no exception");
    }

    #[test]
    fn any_run_of_stocks_may_have_ended_so() {
        let clean = ran("exit code 0", None, Some(1));
        let failed = ran("exit code 1", Some("RuntimeError"), None);
        let both = [clean.clone(), failed.clone()];
        assert_eq!(of(&clean, &both, &failed), Outcome::AsStock);
        assert_eq!(of(&clean, &both[..1], &failed), Outcome::Differs);
    }
}
