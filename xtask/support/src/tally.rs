//! Counts and durations of tests, read from JUnit files, which all runners here write.

use std::time::Duration;

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
    /// Its name in the report.
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

/// The suites of a JUnit report, as pytest and nextest write it. A text that is none counts nothing.
pub fn junit(text: &str) -> Tally {
    let mut tally = Tally::default();
    for suite in text.split("<testsuite ").skip(1) {
        let (head, cases) = suite.split_once('>').unwrap_or((suite, ""));
        let number = |name| attribute(head, name).parse().unwrap_or(0_usize);
        let (failed, skipped) = (number("failures") + number("errors"), number("skipped"));
        tally.add(Tally {
            passed: number("tests").saturating_sub(failed + skipped),
            failed,
            skipped,
            timed: cases
                .split("<testcase ")
                .skip(1)
                .filter_map(timed)
                .collect(),
        });
    }
    tally
}

/// `classname="test_file" name="test_it" time="2.5"`, in any order.
fn timed(case: &str) -> Option<Timed> {
    Some(Timed {
        name: format!(
            "{}::{}",
            attribute(case, "classname"),
            attribute(case, "name")
        ),
        took: Duration::try_from_secs_f64(attribute(case, "time").parse().ok()?).ok()?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_of_a_report_counts_with_the_times_of_its_tests() {
        let pytest = r#"<?xml?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="20" time="9">
            <testcase classname="test_a" name="test_b[a&gt;b]" time="2.5"><failure>&lt;time=&quot;7&quot;</failure></testcase>
            <testcase classname="test_a" name="test_c" time="0.25" /></testsuite></testsuites>"#;
        let nextest = r#"<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="x" time="1.5">
            <testsuite name="core" tests="2" disabled="0" errors="0" failures="0">
                <testcase name="it_holds" classname="core" timestamp="x" time="1.25"></testcase>
                <testcase name="other" classname="core" timestamp="x" time="0.5"></testcase></testsuite>
            <testsuite name="core::model" tests="1" disabled="0" errors="0" failures="1"></testsuite></testsuites>"#;
        let seen = |text: &str| {
            let tally = junit(text);
            let names: Vec<_> = tally
                .timed
                .iter()
                .map(|it| format!("{} {:?}", it.name, it.took))
                .collect();
            ((tally.passed, tally.failed, tally.skipped), names)
        };
        let names = ["test_a::test_b[a&gt;b] 2.5s", "test_a::test_c 250ms"];
        assert_eq!(
            seen(pytest),
            ((14, 3, 3), names.map(str::to_owned).to_vec())
        );
        let names = ["core::it_holds 1.25s", "core::other 500ms"];
        assert_eq!(
            seen(nextest),
            ((2, 1, 0), names.map(str::to_owned).to_vec())
        );
        assert_eq!(seen("killed"), ((0, 0, 0), Vec::new()));
    }

    #[test]
    fn silence_is_a_failure() {
        assert_eq!(Tally::default().checked(true).failed, 1);
        assert_eq!(Tally::one().checked(false).failed, 1);
        assert_eq!(Tally::one().checked(true), Tally::one());
    }
}
