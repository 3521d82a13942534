//! The closing summary of `build-wheel`, for people and, with `--json`, for scripts.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use xtask_support::typed;
use xtask_wheel::platform::Floors;

/// The results of a build.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The fork wheel.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Of the whole file.
    pub sha256: String,
    /// `torch.__version__` of the fork.
    pub version: String,
    /// The applied series.
    pub series: String,
    /// The newest symbol versions that our libraries need.
    pub floors: Floors,
    /// The platform tag.
    pub tag: String,
    /// Of libtorch_pinbuddy.so.
    pub library_bytes: u64,
    /// The checkout's commit, if it has no uncommitted changes.
    pub commit: Option<String>,
    /// Seconds by step, in order.
    pub steps: Vec<StepTime>,
    /// The command that installs the wheel.
    pub install: String,
}

/// Prints the summary of a build.
pub fn print(summary: &(impl Serialize + fmt::Display), as_json: bool) -> Result<()> {
    match as_json {
        true => println!("{}", serde_json::to_string_pretty(summary)?),
        false => print!("\n{summary}"),
    }
    Ok(())
}

/// The command that installs a wheel with that interpreter.
pub fn install(python: &Path, wheel: &Path) -> String {
    let words = [python, wheel].map(|it| typed::quoted(&it.display().to_string()));
    format!("{} -m pip install {}", words[0], words[1])
}

/// The duration of a step.
#[derive(Debug, Serialize)]
pub struct StepTime {
    /// The step's name.
    pub step: String,
    /// Its seconds.
    pub seconds: f64,
}

impl StepTime {
    /// From the times of a progress report.
    pub fn list(times: Vec<(String, Duration)>) -> Vec<Self> {
        let round = |time: Duration| (time.as_secs_f64() * 1000.0).round() / 1000.0;
        let one = |(step, time)| Self {
            step,
            seconds: round(time),
        };
        times.into_iter().map(one).collect()
    }

    /// A line for each step, and one for the total.
    pub fn write_all(steps: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total = 0.0;
        for Self { step, seconds } in steps {
            writeln!(f, "  {seconds:>7.1} s  {step}")?;
            total += seconds;
        }
        writeln!(f, "  {total:>7.1} s  in all")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes.div_ceil(1_000_000);
        writeln!(f, "{}", self.path.display())?;
        for (label, value) in [
            ("size", format!("{megabytes} MB ({} bytes)", self.bytes)),
            ("SHA-256", self.sha256.clone()),
            ("version", self.version.clone()),
            ("series", self.series.clone()),
            ("needs", self.floors.to_string()),
            ("tag", self.tag.clone()),
            (
                "library",
                format!("{} KiB", self.library_bytes.div_ceil(1024)),
            ),
        ] {
            writeln!(f, "  {label:<9}{value}")?;
        }
        StepTime::write_all(&self.steps, f)?;
        writeln!(f, "To install it: {}", self.install)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json() {
        let times = vec![
            ("verify".into(), Duration::from_millis(4_200)),
            ("compile".into(), Duration::from_secs(31)),
        ];
        let summary = Summary {
            path: "dist/torch-2.15.0+cu132.pinbuddy.0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
                .into(),
            bytes: 539_000_001,
            sha256: "ab".repeat(32),
            version: "2.15.0+cu132.pinbuddy.0.1.0".into(),
            series: "2.15.0".into(),
            floors: Floors::default(),
            tag: "manylinux_2_28_x86_64".into(),
            library_bytes: 700_000,
            commit: None,
            steps: StepTime::list(times),
            install: install(Path::new("python3.11"), Path::new("my dist/torch.whl")),
        };
        insta::assert_snapshot!("summary_text", summary.to_string());
        insta::assert_snapshot!(
            "summary_json",
            serde_json::to_string_pretty(&summary).unwrap()
        );
    }
}
