//! `tests/upstream/device.toml`: the choice of tests, and what is known of them, with reasons. What is not listed is a
//! complaint, and so is what is listed and not so.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::super::outcome::{Outcome, Outcomes};
use super::super::python::Choice;
use crate::support::paths;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Known {
    patterns: Vec<String>,
    last: Vec<String>,
    #[serde(default)]
    left_out: Vec<Tests>,
    /// Fail with the official wheel.
    #[serde(default)]
    fails: Vec<Tests>,
    /// End otherwise with ours.
    #[serde(default)]
    differs: Vec<Differs>,
}

/// Tests, and what is known of all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tests {
    tests: Vec<String>,
    why: String,
}

/// A test, and a run in which it ends otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Differs {
    test: String,
    with: String,
    why: String,
}

impl Known {
    /// Reads the file of this checkout.
    pub fn read() -> Result<Self> {
        let path = paths::root().join("tests/upstream/device.toml");
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("reading {}", path.display()))?;
        let known: Self =
            toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
        let reasons = known.left_out.iter().chain(&known.fails).map(|it| &it.why);
        let mut reasons = reasons.chain(known.differs.iter().map(|it| &it.why));
        anyhow::ensure!(
            !reasons.any(|why| why.trim().is_empty()),
            "{}: something is listed with no reason",
            paths::show(&path)
        );
        Ok(known)
    }

    /// Its tests of `file`.
    pub fn choice(&self, file: PathBuf, limit: Duration) -> Choice {
        Choice {
            file,
            patterns: self.patterns.clone(),
            last: self.last.clone(),
            without: names(&self.left_out).cloned().collect(),
            limit,
        }
    }

    /// What the official wheel does and the file does not say.
    pub fn unexplained(&self, title: &str, stock: &Outcomes) -> Vec<String> {
        let fails: BTreeSet<&String> = names(&self.fails).collect();
        let mut complaints: Vec<_> = stock
            .iter()
            .filter_map(|(test, outcome)| match (outcome, fails.contains(test)) {
                (Outcome::Passed, true) => {
                    Some(format!("{test} is listed and passes with {title}"))
                }
                (Outcome::Failed(_) | Outcome::Crashed(_), false) => {
                    Some(format!("{test} with {title}: {}", words(Some(outcome))))
                }
                _ => None,
            })
            .collect();
        let gone = fails.into_iter().filter(|it| !stock.contains_key(*it));
        complaints
            .extend(gone.map(|test| format!("{test} is listed and did not run with {title}")));
        if !stock.values().any(|it| *it == Outcome::Passed) {
            complaints.push(format!("not one test passes with {title}"));
        }
        complaints
    }

    /// How ours differs from the official wheel, where the file does not say so.
    pub fn differences(&self, title: &str, stock: &Outcomes, ours: &Outcomes) -> Vec<String> {
        let tests: BTreeSet<&String> = stock.keys().chain(ours.keys()).collect();
        let listed = |test: &str| {
            let mut entries = self.differs.iter();
            entries.any(|it| it.test == test && it.with == title)
        };
        let judged = tests.into_iter().filter_map(|test| {
            let (was, is) = (stock.get(test), ours.get(test));
            match (was == is, listed(test)) {
                (false, false) => Some(format!(
                    "{test} with {title}: {}; with stock: {}",
                    words(is),
                    words(was)
                )),
                (true, true) => Some(format!("{test} is listed and does not differ with {title}")),
                _ => None,
            }
        });
        judged.collect()
    }
}

fn names(entries: &[Tests]) -> impl Iterator<Item = &String> {
    entries.iter().flat_map(|it| &it.tests)
}

fn words(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "did not run".to_owned(),
        Some(Outcome::Passed) => "passed".to_owned(),
        Some(Outcome::Failed(why)) => format!("failed: {why}"),
        Some(Outcome::Skipped(why)) => format!("skipped: {why}"),
        Some(Outcome::Crashed(how)) => format!("crashed: {how}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(of: &[(&str, Outcome)]) -> Outcomes {
        of.iter()
            .map(|(test, outcome)| ((*test).to_owned(), outcome.clone()))
            .collect()
    }

    fn known(text: &str) -> Known {
        toml::from_str(&format!("patterns = []\nlast = []\n{text}")).unwrap()
    }

    #[test]
    fn every_difference_is_a_complaint_and_so_is_one_that_is_gone() {
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        let stock = outcomes(&[
            ("a", Outcome::Passed),
            ("b", failed("1 != 2")),
            ("c", failed("1 != 2")),
            ("d", Outcome::Passed),
        ]);
        let ours = outcomes(&[
            ("a", failed("x")),
            ("b", failed("1 != 3")),
            ("c", failed("1 != 2")),
        ]);
        let known = known(
            "[[differs]]\ntest = \"a\"\nwith = \"planned\"\nwhy = \"known\"\n\
             [[differs]]\ntest = \"c\"\nwith = \"planned\"\nwhy = \"known\"\n",
        );
        insta::assert_snapshot!(known.differences("planned", &stock, &ours).join("\n"), @"
        b with planned: failed: 1 != 3; with stock: failed: 1 != 2
        c is listed and does not differ with planned
        d with planned: did not run; with stock: passed
        ");
        assert_eq!(known.differences("recorded", &stock, &stock), [""; 0]);
    }

    #[test]
    fn what_stock_fails_has_a_reason() {
        let known = known("[[fails]]\ntests = [\"a\", \"b\", \"e\"]\nwhy = \"kernels\"\n");
        let stock = outcomes(&[
            ("a", Outcome::Failed("x".into())),
            ("b", Outcome::Passed),
            ("c", Outcome::Skipped("no".into())),
            ("d", Outcome::Failed("y".into())),
        ]);
        insta::assert_snapshot!(known.unexplained("stock", &stock).join("\n"), @"
        b is listed and passes with stock
        d with stock: failed: y
        e is listed and did not run with stock
        ");
    }

    #[test]
    fn the_file_of_this_checkout_can_be_read() {
        let known = Known::read().unwrap();
        let choice = known.choice(PathBuf::from("test_cuda.py"), Duration::ZERO);
        assert!(!choice.patterns.is_empty() && !choice.without.is_empty());
    }
}
