//! A row of the table: what a check explored, and how it ended.

use std::fmt::Write as _;

use serde::Serialize;

/// What a check did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explored {
    /// How much of what: `actions`, `executions`.
    #[serde(serialize_with = "by_name")]
    pub figures: Vec<(String, u64)>,
    /// What was done in place of the check, where its tool is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// What is wrong, if it has failed: its figures are worth having then, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrong: Option<String>,
    /// What else is to be said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

fn by_name<S: serde::Serializer>(
    figures: &[(String, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(figures.iter().map(|(name, number)| (name, number)))
}

impl Explored {
    /// So much more of that.
    pub fn figure(mut self, name: impl Into<String>, number: u64) -> Self {
        self.figures.push((name.into(), number));
        self
    }

    /// What is to be said.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// It has failed, and this is wrong.
    pub fn wrong(mut self, what: impl Into<String>) -> Self {
        self.wrong = Some(what.into());
        self
    }

    /// The check's own tool is missing; this was done.
    pub fn instead(mut self, what: impl Into<String>) -> Self {
        self.instead = Some(what.into());
        self
    }
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It found nothing.
    Passed,
    /// It could not run, and something else that shows the same found nothing.
    Instead,
    /// It found something, or could not run.
    Failed,
}

/// See the module's documentation.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The check's name.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    #[serde(flatten)]
    pub explored: Explored,
    /// How long it took.
    pub seconds: f64,
}

/// The table.
pub fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let outcome = match row.outcome {
            Outcome::Passed => "passed",
            Outcome::Instead => "instead",
            Outcome::Failed => "FAILED",
        };
        let figures = row.explored.figures.iter();
        let mut said: Vec<String> = figures
            .map(|(name, number)| format!("{} {name}", grouped(*number)))
            .collect();
        said.extend(row.explored.instead.clone());
        said.extend(row.explored.wrong.clone());
        if !row.explored.note.is_empty() {
            said.push(row.explored.note.clone());
        }
        let _ = writeln!(
            text,
            "{:<10}{outcome:<9}{:>8.1} s  {}",
            row.name,
            row.seconds,
            said.join("; ")
        );
    }
    text
}

/// `1 234 567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_and_its_json() {
        let explored = Explored::default().figure("actions", 1_234_567);
        let rows = [
            Row {
                name: "model",
                outcome: Outcome::Passed,
                explored: explored.figure("cases", 99),
                seconds: 12.34,
            },
            Row {
                name: "miri",
                outcome: Outcome::Instead,
                explored: Explored::default()
                    .instead("no nightly toolchain: the crates forbid unsafe code"),
                seconds: 0.1,
            },
            Row {
                name: "deny",
                outcome: Outcome::Failed,
                explored: Explored::default()
                    .figure("crates", 99)
                    .wrong("a licence that is not permissive"),
                seconds: 0.1,
            },
        ];
        insta::assert_snapshot!(text(&rows), @r"
        model     passed       12.3 s  1 234 567 actions; 99 cases
        miri      instead       0.1 s  no nightly toolchain: the crates forbid unsafe code
        deny      FAILED        0.1 s  99 crates; a licence that is not permissive
        ");
        let json = serde_json::to_string(&rows[0]).unwrap();
        insta::assert_snapshot!(json, @r#"{"name":"model","outcome":"passed","figures":{"actions":1234567,"cases":99},"seconds":12.34}"#);
    }
}
