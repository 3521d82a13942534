//! Rust's lines: tests that count, and LLVM's programs, which read what they counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::folder;
use super::lines::Lines;
use crate::support::refusal::refuse;
use crate::support::scratch::Scratch;
use crate::support::{cargo, relay};

/// Crates whose tests run. The models' are the engine's.
const CRATES: [&str; 4] = [
    "pinbuddy-core",
    "pinbuddy-model",
    "pinbuddy-machine",
    "pinbuddy-bridge",
];

/// Debian has the programs of this LLVM; those of older ones do not read what today's rustc counts.
const OLDEST: u32 = 19;

/// llvm-profdata and llvm-cov, which read what rustc's programs count.
pub struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Those of the toolchain, else the system's: the newest that read what a program of one line has counted.
    pub fn find() -> Result<Self> {
        let rustc =
            |arguments: &[&str]| -> Result<String> { said(Command::new("rustc").args(arguments)) };
        let version = rustc(&["--version", "--verbose"])?;
        let version = version
            .lines()
            .find_map(|line| line.strip_prefix("LLVM version: "))
            .context("rustc does not say which LLVM it has")?;
        let newest: u32 = version.split('.').next().unwrap_or_default().parse()?;
        let libraries = rustc(&["--print", "target-libdir"])?;
        let own = Path::new(libraries.trim()).with_file_name("bin");
        let of = |name: &dyn Fn(&str) -> PathBuf| Self {
            profdata: name("llvm-profdata"),
            cov: name("llvm-cov"),
        };
        let numbered = (OLDEST..=newest).rev();
        let numbered = numbered.map(|it| of(&|name| format!("{name}-{it}").into()));
        let mut all = [of(&|name| own.join(name))]
            .into_iter()
            .chain(numbered)
            .chain([of(&|name| name.into())]);
        let probe = Probe::new()?;
        all.find(|it| probe.is_read_by(it)).ok_or_else(|| {
            refuse("no llvm-profdata and llvm-cov that read what rustc's programs count")
                .expected(format!("those of LLVM {newest}, or of one since {OLDEST}"))
                .remedy(format!(
                    "rustup component add llvm-tools, or apt-get install llvm-{OLDEST}"
                ))
                .into()
        })
    }

    /// What all programs counted.
    pub fn read(&self, counts: &Path, programs: &[PathBuf], lines: &mut Lines) -> Result<()> {
        let mut raw = Vec::new();
        for entry in
            fs::read_dir(counts).with_context(|| format!("listing {}", counts.display()))?
        {
            raw.push(entry?.path());
        }
        ensure!(!raw.is_empty(), "no program counted anything");
        let merged = folder().join("merged.profdata");
        self.merge(&raw, &merged)?;
        for program in programs {
            for (file, seen) in lcov(&self.export(&merged, program)?) {
                lines.add(file, seen)?;
            }
        }
        Ok(())
    }

    fn merge(&self, raw: &[PathBuf], merged: &Path) -> Result<()> {
        let mut command = Command::new(&self.profdata);
        command.args(["merge", "--sparse", "--output"]).arg(merged);
        said(command.args(raw)).map(drop)
    }

    fn export(&self, merged: &Path, program: &Path) -> Result<String> {
        let mut command = Command::new(&self.cov);
        command.args(["export", "--format=lcov", "--instr-profile"]);
        said(command.arg(merged).arg(program))
    }
}

/// A program of one line that has run and counted it.
struct Probe(Scratch);

impl Probe {
    fn new() -> Result<Self> {
        let probe = Self(Scratch::folder(&folder().join("probe"))?);
        fs::write(probe.at("probe.rs"), "fn main() {}\n").context("writing a probe")?;
        let mut rustc = Command::new("rustc");
        rustc.args(["-Cinstrument-coverage", "-o"]);
        said(rustc.arg(probe.at("probe")).arg(probe.at("probe.rs")))?;
        let mut run = Command::new(probe.at("probe"));
        said(run.env("LLVM_PROFILE_FILE", probe.at("raw")))?;
        Ok(probe)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn is_read_by(&self, tools: &Tools) -> bool {
        let merged = self.at("merged");
        let read = tools
            .merge(&[self.at("raw")], &merged)
            .and_then(|()| tools.export(&merged, &self.at("probe")));
        read.is_ok_and(|text| {
            let files = lcov(&text);
            matches!(&files[..], [(_, lines)] if lines[..] == [(1, true)])
        })
    }
}

/// Runs the crates' tests; the programs.
pub fn tests(counts: &Path) -> Result<Vec<PathBuf>> {
    let test = |arguments: &[&str]| {
        let mut command = cargo::command();
        command
            .args(["test", "--tests", "--target-dir"])
            .arg(folder())
            .args(CRATES.iter().flat_map(|it| ["--package", it]))
            .args(arguments)
            .env("CARGO_ENCODED_RUSTFLAGS", "-Cinstrument-coverage")
            // Build scripts count as well; their counts are for nobody.
            .env("LLVM_PROFILE_FILE", folder().join("scripts.profraw"))
            .env("INSTA_UPDATE", "no");
        command
    };
    let messages = ["--no-run", "--message-format", "json-render-diagnostics"];
    let programs = cargo::executables(&said(test(&messages).stderr(Stdio::inherit()))?);
    ensure!(!programs.is_empty(), "cargo built no tests");
    let mut tests = test(&[]);
    let (_, success) = relay::run(tests.env("LLVM_PROFILE_FILE", pattern(counts, "tests")))?;
    ensure!(success, "tests failed; their output is above");
    Ok(programs)
}

/// A file for each program, which all its processes add to.
pub fn pattern(counts: &Path, name: &str) -> PathBuf {
    counts.join(format!("{name}-%2m.profraw"))
}

/// What a program prints.
fn said(command: &mut Command) -> Result<String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("running {shown}"))?;
    ensure!(
        output.status.success(),
        "{shown}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Each file, with its lines and whether they ran.
fn lcov(text: &str) -> Vec<(&str, Vec<(u64, bool)>)> {
    let mut files: Vec<(&str, Vec<(u64, bool)>)> = Vec::new();
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("SF:") {
            files.push((file, Vec::new()));
        } else if let Some((number, count)) =
            line.strip_prefix("DA:").and_then(|it| it.split_once(','))
            && let (Ok(number), Some((_, seen))) = (number.parse(), files.last_mut())
        {
            seen.push((number, count != "0"));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_and_their_lines() {
        let text =
            "SF:a.rs\nFN:1,f\nDA:1,5\nDA:2,0\nend_of_record\nSF:b.rs\nDA:7,18446744073709551615\n";
        let b = vec![(7, true)];
        assert_eq!(
            super::lcov(text),
            [("a.rs", vec![(1, true), (2, false)]), ("b.rs", b)]
        );
    }

    #[test]
    fn programs_that_read_no_counts_are_not_taken() {
        let nothing = super::Tools {
            profdata: "true".into(),
            cov: "true".into(),
        };
        assert!(!super::Probe::new().unwrap().is_read_by(&nothing));
    }
}
