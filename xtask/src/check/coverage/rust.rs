//! Rust's lines: tests that count, and LLVM's programs, which read what they counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::folder;
use super::lines::Lines;
use crate::support::refusal::refuse;
use crate::support::{cargo, relay};

/// Crates whose tests run. The models' are the engine's.
const CRATES: [&str; 4] = [
    "pinbuddy-core",
    "pinbuddy-model",
    "pinbuddy-machine",
    "pinbuddy-bridge",
];

/// llvm-profdata and llvm-cov, of the compiler's own LLVM: others do not read its files.
pub struct Tools {
    profdata: PathBuf,
    cov: PathBuf,
}

impl Tools {
    /// Those of the toolchain, else the system's.
    pub fn find() -> Result<Self> {
        let rustc =
            |arguments: &[&str]| -> Result<String> { said(Command::new("rustc").args(arguments)) };
        let version = rustc(&["--version", "--verbose"])?;
        let wanted = version
            .lines()
            .find_map(|line| line.strip_prefix("LLVM version: "))
            .context("rustc does not say which LLVM it has")?;
        let major = wanted.split('.').next().unwrap_or_default();
        let libraries = rustc(&["--print", "target-libdir"])?;
        let own = Path::new(libraries.trim()).with_file_name("bin");
        let find = |name: &str| {
            let places = [
                own.join(name),
                format!("{name}-{major}").into(),
                name.into(),
            ];
            places.into_iter().find(|it| {
                let version = said(Command::new(it).arg("--version"));
                version.is_ok_and(|it| it.contains(&format!("LLVM version {major}.")))
            })
        };
        match (find("llvm-profdata"), find("llvm-cov")) {
            (Some(profdata), Some(cov)) => Ok(Self { profdata, cov }),
            _ => Err(
                refuse("no llvm-profdata and llvm-cov that read what rustc's LLVM counts")
                    .expected(format!("those of LLVM {major}"))
                    .remedy(format!(
                        "rustup component add llvm-tools, or apt-get install llvm-{major}"
                    ))
                    .into(),
            ),
        }
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
        said(
            Command::new(&self.profdata)
                .args(["merge", "--sparse", "--output"])
                .arg(&merged)
                .args(&raw),
        )?;
        for program in programs {
            let text = said(
                Command::new(&self.cov)
                    .args(["export", "--format=lcov", "--instr-profile"])
                    .arg(&merged)
                    .arg(program),
            )?;
            for (file, seen) in lcov(&text) {
                lines.add(file, seen)?;
            }
        }
        Ok(())
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
}
