//! The matrix as a table and as JSON: one row per release, one column per stage.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};

/// The stages, in order.
pub const STAGES: [&str; 6] = [
    "header",
    "applies",
    "compiles",
    "links",
    "imports",
    "smoke test",
];

/// The outcome of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It passed.
    Ok,
    /// It failed; the first line of the error.
    Failed(String),
    /// Not run: an earlier one failed, or `--quick`.
    NotRun,
}

/// One release.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its version.
    pub torch: String,
    /// The CUDA version of its wheel, once known.
    pub cuda: Option<String>,
    /// Outcomes in the order of [`STAGES`]; by name in JSON.
    #[serde(serialize_with = "by_name")]
    pub stages: [Outcome; 6],
    /// Seconds of all stages.
    pub seconds: f64,
}

fn by_name<S: Serializer>(stages: &[Outcome; 6], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(STAGES.iter().zip(stages))
}

impl Row {
    /// The row of a release before its turn.
    pub fn new(torch: &str) -> Self {
        Self {
            torch: torch.to_owned(),
            cuda: None,
            stages: [const { Outcome::NotRun }; 6],
            seconds: 0.0,
        }
    }

    /// Whether any stage did.
    pub fn failed(&self) -> bool {
        self.stages
            .iter()
            .any(|it| matches!(it, Outcome::Failed(_)))
    }
}

/// The table, then the failures.
pub fn text(rows: &[Row]) -> String {
    let mut text = format!("{:<9}{:<7}", "torch", "CUDA");
    for stage in STAGES {
        let _ = write!(text, "{stage:<12}");
    }
    text.push_str("seconds\n");
    for row in rows {
        let cuda = row.cuda.as_deref().unwrap_or("?");
        let _ = write!(text, "{:<9}{cuda:<7}", row.torch);
        for outcome in &row.stages {
            let word = match outcome {
                Outcome::Ok => "ok",
                Outcome::Failed(_) => "FAILED",
                Outcome::NotRun => "not run",
            };
            let _ = write!(text, "{word:<12}");
        }
        let _ = writeln!(text, "{:>7.1}", row.seconds);
    }
    for row in rows {
        for (stage, outcome) in STAGES.iter().zip(&row.stages) {
            if let Outcome::Failed(why) = outcome {
                let _ = writeln!(text, "torch {}, {stage}: {why}", row.torch);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_and_a_line_for_what_failed() {
        let mut good = Row::new("2.15.0");
        (good.cuda, good.seconds) = (Some("13.2".into()), 101.26);
        good.stages = [const { Outcome::Ok }; 6];
        let mut quick = Row::new("2.9.1");
        quick.cuda = Some("12.8".into());
        quick.stages[..4].fill(Outcome::Ok);
        let mut bad = Row::new("2.8.0");
        bad.stages[0] = Outcome::Ok;
        bad.stages[1] = Outcome::Failed("the series does not apply".into());
        assert!(bad.failed() && !quick.failed() && !good.failed());
        let json = serde_json::to_value(&bad).unwrap();
        assert_eq!(json["stages"]["header"], "ok");
        assert_eq!(
            json["stages"]["applies"]["failed"],
            "the series does not apply"
        );
        assert_eq!(json["stages"]["smoke test"], "not_run");
        insta::assert_snapshot!(text(&[bad, quick, good]));
    }
}
