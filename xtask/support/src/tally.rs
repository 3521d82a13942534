//! Counts of tests, read from JUnit files, which all runners here write.

use roxmltree::{Document, Node};

/// The counts of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: usize,
    /// How many failed or could not run.
    pub failed: usize,
    /// How many were skipped by themselves.
    pub skipped: usize,
    /// The names of those that failed, as far as a runner gives them.
    pub names: Vec<String>,
}

impl Tally {
    /// One passed test.
    pub fn one() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// A runner that failed without naming a test has failed once.
    pub fn checked(mut self, success: bool) -> Self {
        let count = self.passed + self.failed + self.skipped;
        if count == 0 || !success && self.failed == 0 {
            self.failed = 1;
            let what = if count == 0 { "counted nothing" } else { "failed" };
            self.names.push(format!("the runner {what}, and named no test"));
        }
        self
    }

    /// The sum of both.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.names.extend(other.names);
    }
}

/// The suites of a JUnit report, as pytest and nextest write it. A text that is none counts nothing.
pub fn junit(text: &str) -> Tally {
    let mut tally = Tally::default();
    let report = Document::parse(text).ok();
    for node in report.iter().flat_map(Document::descendants) {
        let said = |name| node.attribute(name).unwrap_or_default();
        let number = |name| said(name).parse().unwrap_or(0_usize);
        let is_failure = |it: Node<'_, '_>| matches!(it.tag_name().name(), "failure" | "error");
        if node.has_tag_name("testsuite") {
            let (failed, skipped) = (number("failures") + number("errors"), number("skipped"));
            tally.passed += number("tests").saturating_sub(failed + skipped);
            tally.failed += failed;
            tally.skipped += skipped;
        } else if node.has_tag_name("testcase") && node.children().any(is_failure) {
            let name = format!("{} {}", said("classname"), said("name"));
            tally.names.push(name.trim_start().to_owned());
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_of_a_report_counts() {
        let pytest = r#"<?xml version="1.0"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="20" time="9">
            <testcase classname="test_a" name="test_b[a&gt;b c]" time="2.5"><failure>&lt;tests=&quot;7&quot;</failure></testcase>
            <testcase classname="test_a" name="test_c" time="0.25" /></testsuite></testsuites>"#;
        let nextest = r#"<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="x" time="1.5">
            <testsuite name="core" tests="2" disabled="0" errors="0" failures="0">
                <testcase name="it_holds" classname="core" timestamp="x" time="1.25"></testcase></testsuite>
            <testsuite name="core::model" tests="1" disabled="0" errors="0" failures="1">
                <testcase name="it_breaks" classname="core::model"><failure type="test failure"/></testcase></testsuite></testsuites>"#;
        let counts = |text: &str| {
            let tally = junit(text);
            (tally.passed, tally.failed, tally.skipped)
        };
        assert_eq!(junit(pytest).names, ["test_a test_b[a>b c]"]);
        assert_eq!(junit(nextest).names, ["core::model it_breaks"]);
        assert_eq!(counts(pytest), (14, 3, 3));
        assert_eq!(counts(nextest), (2, 1, 0));
        for cut in ["killed", &nextest[..nextest.len() - 1]] {
            assert_eq!(counts(cut), (0, 0, 0));
        }
    }

    #[test]
    fn silence_is_a_failure() {
        assert_eq!(Tally::default().checked(true).failed, 1);
        assert_eq!(Tally::default().checked(true).names.len(), 1);
        assert_eq!(Tally::one().checked(false).failed, 1);
        assert_eq!(Tally::one().checked(true), Tally::one());
    }
}
