//! Lines of C++, as gcov counts them: each object file has a description beside it, and counts once a process ended.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::lines::Lines;
use crate::sanitize;
use crate::support::paths;
use crate::support::refusal::refuse;
use crate::test::plugin::Library;

/// gcov, of g++'s version: others do not read its files.
pub struct Tool;

#[derive(Deserialize)]
struct Said {
    /// What relative paths begin at.
    current_working_directory: PathBuf,
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    file: String,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    line_number: u64,
    count: u64,
}

impl Tool {
    /// The system's.
    pub fn find() -> Result<Self> {
        let version = |program: &str| {
            let output = Command::new(program)
                .arg("-dumpfullversion")
                .output()
                .ok()?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let wanted = version("g++").context("there is no g++")?;
        let output = Command::new("gcov").arg("--version").output();
        let text = output.map_or_else(|_| Vec::new(), |it| it.stdout);
        let text = String::from_utf8_lossy(&text);
        let found = text.lines().next().unwrap_or("none");
        if found.contains(&wanted) {
            return Ok(Self);
        }
        Err(refuse("no gcov that reads what g++ counts")
            .found(found)
            .expected(format!("gcov {wanted}"))
            .remedy("apt-get install gcc, or dnf install gcc; as new as g++")
            .into())
    }

    /// What was counted before is gone.
    pub fn forget(&self) -> Result<()> {
        for file in counted()? {
            fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
        }
        Ok(())
    }

    /// What all processes counted.
    pub fn read(&self, lines: &mut Lines) -> Result<()> {
        let counted = counted()?;
        ensure!(!counted.is_empty(), "no process counted lines of C++");
        for file in counted {
            let mut command = Command::new("gcov");
            command.args(["--json-format", "--stdout"]).arg(&file);
            command.current_dir(folder());
            let output = command.output().context("running gcov")?;
            let shown = file.display();
            ensure!(
                output.status.success(),
                "gcov {shown}: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
            let said: Said = serde_json::from_slice(&output.stdout)
                .with_context(|| format!("reading what gcov says of {shown}"))?;
            for file in said.files {
                let seen = file.lines.iter();
                let path = said.current_working_directory.join(&file.file);
                lines.add(
                    &path.to_string_lossy(),
                    seen.map(|it| (it.line_number, it.count > 0)),
                )?;
            }
        }
        Ok(())
    }
}

fn folder() -> PathBuf {
    paths::target().join(Library::Coverage.flavour().target())
}

/// The counts of each object file.
fn counted() -> Result<Vec<PathBuf>> {
    if !folder().exists() {
        return Ok(Vec::new());
    }
    sanitize::files(&folder(), ".gcda")
}
