//! Compares a run with the fork or the plug-in to stock's. Knows nothing of known differences.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::report::{Ran, Report};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// How the program ended. Where that differs, nothing else is compared.
    Exit,
    Results,
    Warnings,
    PeakPinned,
    Statistics,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub what: What,
    /// The name of the result or statistic, or the warning.
    pub of: Option<String>,
    pub stock: String,
    pub found: String,
}

/// The limit of pinned bytes if stock pins `stock` bytes and at most `set` are in use: the bound of docs/worst.md,
/// twice the larger of stock's and 1.25 sets. (Without the two segments that it also allows, which are more than
/// any client pins.)
pub fn allowed(stock: u64, set: u64) -> u64 {
    2 * stock.max(set + set / 4)
}

/// All differences, in the order of [`What`].
pub fn compare(stock: &Ran, other: &Ran) -> Vec<Difference> {
    if stock.exit != other.exit {
        return vec![Difference {
            what: What::Exit,
            of: None,
            stock: stock.exit.clone(),
            found: other.exit.clone(),
        }];
    }
    let mut found = Vec::new();
    if let (Some(stock), Some(other)) = (&stock.report, &other.report) {
        let before = entries(&stock.results);
        values(What::Results, &before, &entries(&other.results), &mut found);
        peak(stock, other, &mut found);
        let before = entries(&stock.statistics);
        let after = entries(&other.statistics);
        values(What::Statistics, &before, &after, &mut found);
        let of = "names of statistics";
        lines(What::Statistics, of, &stock.names, &other.names, &mut found);
    }
    warnings(stock, other, &mut found);
    found
}

fn peak(stock: &Report, other: &Report, found: &mut Vec<Difference>) {
    let most = allowed(stock.peak_pinned, other.peak_active);
    if other.peak_pinned > most {
        found.push(Difference {
            what: What::PeakPinned,
            of: None,
            stock: format!("{} bytes, so that {most} are allowed", stock.peak_pinned),
            found: format!("{} bytes", other.peak_pinned),
        });
    }
}

fn entries<V: fmt::Display>(of: &std::collections::BTreeMap<String, V>) -> Vec<(&str, String)> {
    of.iter()
        .map(|(name, value)| (name.as_str(), value.to_string()))
        .collect()
}

/// A name that only one of them has is a difference, too.
fn values(
    what: What,
    stock: &[(&str, String)],
    other: &[(&str, String)],
    found: &mut Vec<Difference>,
) {
    let names: BTreeSet<&str> = stock.iter().chain(other).map(|(name, _)| *name).collect();
    let of = |all: &[(&str, String)], name: &str| {
        let one = all.iter().find(|(it, _)| *it == name);
        one.map_or_else(|| "not there".to_owned(), |(_, value)| value.clone())
    };
    for name in names {
        let (before, after) = (of(stock, name), of(other, name));
        if before != after {
            found.push(Difference {
                what,
                of: Some(name.to_owned()),
                stock: before,
                found: after,
            });
        }
    }
}

fn lines(what: What, of: &str, stock: &[String], other: &[String], found: &mut Vec<Difference>) {
    let missing = |from: &[String], than: &[String]| {
        let only: Vec<_> = from.iter().filter(|it| !than.contains(it)).collect();
        only.iter()
            .map(|it| it.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    if stock != other {
        found.push(Difference {
            what,
            of: Some(of.to_owned()),
            stock: missing(stock, other),
            found: missing(other, stock),
        });
    }
}

fn warnings(stock: &Ran, other: &Ran, found: &mut Vec<Difference>) {
    for line in stock.warnings.symmetric_difference(&other.warnings) {
        let here = |ran: &Ran| {
            let said = ran.warnings.contains(line);
            if said { "said" } else { "not said" }.to_owned()
        };
        found.push(Difference {
            what: What::Warnings,
            of: Some(line.clone()),
            stock: here(stock),
            found: here(other),
        });
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exit => "exit",
            Self::Results => "results",
            Self::Warnings => "warnings",
            Self::PeakPinned => "peak-pinned",
            Self::Statistics => "statistics",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if let Some(of) = &self.of {
            write!(f, " of {of:?}")?;
        }
        write!(f, ": stock {}, here {}", self.stock, self.found)
    }
}

#[cfg(test)]
pub mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::report::SUCCESS;

    /// A run that ended well.
    pub fn ran() -> Ran {
        Ran {
            exit: SUCCESS.to_owned(),
            seconds: 2.04,
            warnings: BTreeSet::new(),
            exception: None,
            last_words: String::new(),
            report: Some(Report {
                results: [
                    ("data".to_owned(), json!("ab")),
                    ("pinned".to_owned(), json!(8)),
                ]
                .into(),
                statistics: [("active_requests.freed".to_owned(), 9)].into(),
                names: vec!["a".to_owned(), "b".to_owned()],
                peak_pinned: 96 << 20,
                peak_active: 96 << 20,
                pins: 3,
            }),
        }
    }

    fn report(ran: &mut Ran) -> &mut Report {
        ran.report.as_mut().unwrap()
    }

    #[test]
    fn time_and_a_peak_within_bounds_are_no_differences() {
        let mut other = ran();
        other.seconds = 99.0;
        report(&mut other).peak_pinned = 192 << 20;
        report(&mut other).pins = 1;
        report(&mut other).peak_active = 1;
        assert_eq!(compare(&ran(), &other), []);
    }

    #[test]
    fn everything_that_differs_is_found() {
        let (mut stock, mut other) = (ran(), ran());
        stock.warnings.insert("UserWarning: a".to_owned());
        other.warnings.insert("pinbuddy: b".to_owned());
        let of = report(&mut other);
        of.results.insert("data".to_owned(), json!("cd"));
        of.results.remove("pinned");
        of.peak_active = 1;
        of.peak_pinned = (192 << 20) + 1;
        of.statistics.insert("active_requests.freed".to_owned(), 8);
        of.names = vec!["a".to_owned(), "c".to_owned()];
        let said: Vec<_> = compare(&stock, &other)
            .iter()
            .map(ToString::to_string)
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        results of "data": stock "ab", here "cd"
        results of "pinned": stock 8, here not there
        peak-pinned: stock 100663296 bytes, so that 201326592 are allowed, here 201326593 bytes
        statistics of "active_requests.freed": stock 9, here 8
        statistics of "names of statistics": stock b, here c
        warnings of "UserWarning: a": stock said, here not said
        warnings of "pinbuddy: b": stock not said, here said
        "#);
    }

    /// The moment at which threads free a block varies from run to run, and the peak in use with it.
    #[test]
    fn what_is_in_use_counts_where_it_is_more_than_stock_pins() {
        assert_eq!(allowed(64, 32), 128);
        assert_eq!(allowed(64, 80), 200);
    }

    /// After a crash results are not compared, nor is the crash's own output.
    #[test]
    fn where_the_end_differs_that_is_all() {
        let mut other = ran();
        other.exit = "signal 11".to_owned();
        other.report = None;
        other.warnings.insert("Traceback".to_owned());
        let found = compare(&ran(), &other);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "exit: stock exit code 0, here signal 11"
        );
    }
}
