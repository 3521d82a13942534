//! Counts and durations of tests, read from their runners' output.

use std::time::Duration;

use anyhow::{Context, Result};

/// The counts of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: usize,
    /// How many failed or could not run.
    pub failed: usize,
    /// How many were skipped by themselves.
    pub skipped: usize,
    /// The tests with a known duration.
    pub timed: Vec<Timed>,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Its name in the runner's output.
    pub name: String,
    /// Its duration.
    pub took: Duration,
}

impl Tally {
    /// One passed test.
    pub fn one() -> Self {
        Self {
            passed: 1,
            ..Self::default()
        }
    }

    /// A runner that failed without naming a test has failed once.
    pub fn checked(mut self, success: bool) -> Self {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
        if self.passed + self.failed + self.skipped == 0 {
            self.failed = 1;
        }
        self
    }

    /// The sum of both.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.timed.extend(other.timed);
    }
}

/// `Summary [  1.2s] 40 tests run: 38 passed (1 slow), 1 failed, 1 timed out, 3 skipped`.
pub fn nextest(text: &str) -> Tally {
    let mut tally = Tally {
        timed: text
            .lines()
            .filter_map(|it| nextest_time(&plain(it)))
            .collect(),
        ..Tally::default()
    };
    let summary = text
        .lines()
        .rev()
        .map(plain)
        .find(|line| line.trim_start().starts_with("Summary ["));
    let Some(counts) = summary
        .as_deref()
        .and_then(|line| Some(line.split_once(" run: ")?.1))
    else {
        return tally;
    };
    for part in counts.split(", ") {
        let mut words = part.split_whitespace();
        let Some(count) = words.next().and_then(|it| it.parse::<usize>().ok()) else {
            continue;
        };
        match words.next() {
            Some("passed") => tally.passed += count,
            Some("skipped") => tally.skipped += count,
            _ => tally.failed += count,
        }
    }
    tally
}

/// `        PASS [   1.204s] ( 7/41) package::program name_of_the_test`.
fn nextest_time(line: &str) -> Option<Timed> {
    let rest = line.trim_start().strip_prefix("PASS [")?;
    let (seconds, rest) = rest.split_once("s]")?;
    let name = rest.split_once(')').map_or(rest, |(_, name)| name);
    timed(name, seconds)
}

fn timed(name: &str, seconds: &str) -> Option<Timed> {
    let took = Duration::try_from_secs_f64(seconds.trim().parse().ok()?).ok()?;
    Some(Timed {
        name: name.trim().to_owned(),
        took,
    })
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; …`, once per test binary.
pub fn cargo(text: &str) -> Tally {
    let mut tally = Tally::default();
    for line in text.lines().map(plain) {
        let Some(counts) = line
            .strip_prefix("test result: ")
            .and_then(|it| Some(it.split_once(". ")?.1))
        else {
            continue;
        };
        for part in counts.split("; ") {
            let mut words = part.split_whitespace();
            let Some(count) = words.next().and_then(|it| it.parse::<usize>().ok()) else {
                continue;
            };
            match words.next() {
                Some("passed") => tally.passed += count,
                Some("failed") => tally.failed += count,
                Some("ignored") => tally.skipped += count,
                _ => {}
            }
        }
    }
    tally
}

/// The first `<testsuite>` of a JUnit report, as pytest writes it.
pub fn junit(text: &str) -> Result<Tally> {
    let (_, suite) = text
        .split_once("<testsuite ")
        .context("a report without a test suite")?;
    let (suite, cases) = suite.split_once('>').unwrap_or((suite, ""));
    let number = |name| attribute(suite, name).parse().unwrap_or(0_usize);
    let case = |it: &str| {
        let name = format!("{}::{}", attribute(it, "classname"), attribute(it, "name"));
        timed(&name, attribute(it, "time"))
    };
    let (failed, skipped) = (number("failures") + number("errors"), number("skipped"));
    Ok(Tally {
        passed: number("tests").saturating_sub(failed + skipped),
        failed,
        skipped,
        timed: cases.split("<testcase ").skip(1).filter_map(case).collect(),
    })
}

/// The value of an attribute in `tag`, the text after a tag's name.
fn attribute<'a>(text: &'a str, name: &str) -> &'a str {
    let text = text.split('>').next().unwrap_or_default();
    let padded = format!(" {name}=\"");
    let value = text.strip_prefix(&padded[1..]);
    let value = value.or_else(|| Some(text.split_once(&padded)?.1));
    value
        .and_then(|it| it.split('"').next())
        .unwrap_or_default()
}

/// `Ran 22 tests in 1.2s`, then `OK` or `FAILED (failures=1, errors=2, skipped=3)`.
pub fn unittest(text: &str) -> Tally {
    let mut tally = Tally::default();
    let mut ran = 0_usize;
    for line in text.lines().map(plain) {
        if let Some(rest) = line.strip_prefix("Ran ") {
            ran = rest
                .split(' ')
                .next()
                .map_or(0, |it| it.parse().unwrap_or(0));
        } else if line.starts_with("OK") || line.starts_with("FAILED (") {
            let inside = line.split(['(', ')']).nth(1).unwrap_or_default();
            for part in inside.split(", ") {
                let (name, count) = part.split_once('=').unwrap_or((part, ""));
                let count: usize = count.parse().unwrap_or(0);
                match name {
                    "failures" | "errors" | "unexpected successes" => tally.failed += count,
                    "skipped" => tally.skipped += count,
                    _ => {}
                }
            }
        }
    }
    tally.passed = ran.saturating_sub(tally.failed + tally.skipped);
    tally
}

/// A line without colour codes.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut parts = line.split('\x1b');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        text.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_unittest() {
        let good = unittest("test_a ... ok\nRan 22 tests in 1.2s\n\nOK\n");
        assert_eq!((good.passed, good.failed, good.skipped), (22, 0, 0));
        let bad = unittest("Ran 9 tests in 1.2s\n\nFAILED (failures=1, errors=2, skipped=3)\n");
        assert_eq!((bad.passed, bad.failed, bad.skipped), (3, 3, 3));
        assert_eq!(unittest("Traceback").checked(false).failed, 1);
    }

    #[test]
    fn each_runner() {
        let tally = |passed, failed, skipped| Tally {
            passed,
            failed,
            skipped,
            timed: Vec::new(),
        };
        let text = "\x1b[32m     Summary\x1b[0m [   1.204s] 41 tests run: 38 passed (1 slow), 2 failed, 1 timed out, 3 skipped\n";
        assert_eq!(nextest(text), tally(38, 3, 3));
        let text = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1s\n\
                    test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(cargo(text), tally(14, 1, 1));
        let text = r#"<?xml?><testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="20" time="1">"#;
        assert_eq!(junit(text).unwrap(), tally(14, 3, 3));
    }

    #[test]
    fn each_test_has_its_time() {
        let text = "\x1b[32m        PASS\x1b[0m [   1.250s] (  7/41) \x1b[35mcore::model\x1b[0m it_holds\n\
                    PASS [   0.5s] core::model other\n Summary [ 2.0s] 2 tests run: 2 passed";
        let xml = r#"<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="0" tests="2" time="9">
            <testcase classname="test_a" name="test_b[a&gt;b]" time="2.5"><failure>&lt;time=&quot;7&quot;</failure></testcase>
            <testcase classname="test_a" name="test_c" time="0.25" /></testsuite></testsuites>"#;
        let seen = |tally: Tally| -> Vec<_> {
            let timed = tally.timed.into_iter();
            timed.map(|it| (it.name, it.took.as_millis())).collect()
        };
        let named = |name: &str, milliseconds| (name.to_owned(), milliseconds);
        assert_eq!(
            seen(nextest(text)),
            [
                named("core::model it_holds", 1250),
                named("core::model other", 500)
            ]
        );
        assert_eq!(
            seen(junit(xml).unwrap()),
            [
                named("test_a::test_b[a&gt;b]", 2500),
                named("test_a::test_c", 250)
            ]
        );
    }

    #[test]
    fn silence_is_a_failure() {
        assert_eq!(Tally::default().checked(true).failed, 1);
        assert_eq!(Tally::one().checked(false).failed, 1);
        assert_eq!(Tally::one().checked(true), Tally::one());
    }
}
