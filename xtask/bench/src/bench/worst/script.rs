//! Runs a program of `tests/programs` once, with stock or the fork, and reads its figures.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::program::{Program, Run};
use crate::bench::effort::Effort;
use crate::bench::fixture::Fixture;
use xtask_support::paths;
use xtask_support::refusal::refuse;

pub type Figures = BTreeMap<String, f64>;

/// Runs the program in its own process; its standard error is shown if it fails.
pub fn run(fixture: &Fixture, program: &Program, fork: bool) -> Result<Figures> {
    let (Run::Beside(file, arguments) | Run::Alone(file, arguments)) = program.run else {
        anyhow::bail!("{} is not a script", program.name);
    };
    let environments = &fixture.environments;
    let mut command = environments.command(environments.environment(fork).python())?;
    command
        .current_dir(paths::root().join("tests/programs"))
        .arg(format!("{file}.py"))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if fixture.effort != Effort::Full {
        command.arg("--quick");
    }
    let output = command
        .output()
        .with_context(|| format!("running {file}.py"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match parse(&said) {
        Some(figures) if output.status.success() => Ok(figures),
        _ => {
            let which = if fork { "the fork" } else { "stock" };
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(refuse(format!("{} failed with {which}", program.name))
                .found(format!("{}\n{}", output.status, errors.trim()))
                .expected("figures as one line of JSON")
                .remedy("cargo xtask sim -- PYTHON tests/programs/NAME.py runs it by itself")
                .into())
        }
    }
}

/// Parses the last line.
fn parse(said: &str) -> Option<Figures> {
    serde_json::from_str(said.lines().last()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_what_counts() {
        let figures = parse("a remark\n{\"seconds\": 0.25, \"pins\": 7}\n").unwrap();
        assert_eq!((figures["seconds"], figures["pins"]), (0.25, 7.0));
        for said in [
            "",
            "no figures\n",
            "{\"seconds\": 1}\nand a remark\n",
            "[1]\n",
        ] {
            assert!(parse(said).is_none(), "{said}");
        }
    }
}
