//! Calls cargo, and reads its messages (`--message-format json`) for the paths of built libraries and programs.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::paths;
use super::refusal::refuse;

/// cargo, in the checkout: the one that runs this, or else the one on the path.
pub fn command() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(paths::root());
    command
}

/// `cargo build` of these packages in a profile, whose output are messages.
pub fn build(packages: &[&str], profile: &str) -> Command {
    let mut command = command();
    command.args(["build", "--quiet", "--locked", "--profile", profile]);
    command.args(["--message-format", "json-render-diagnostics"]);
    packages.iter().for_each(|it| {
        command.args(["--package", it]);
    });
    command
}

/// The messages of a build that has ended. `what` was built, in words; `command` shows again what failed, if it can.
pub fn messages(output: &Output, what: &str, expected: &str, command: &str) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Otherwise it reads as if the code were wrong.
    let wrong = match output.status.signal() {
        Some(signal) => format!("the build of {what} was ended by signal {signal}: run it again"),
        None => format!("{what} does not compile"),
    };
    let refusal =
        refuse(wrong).found(String::from_utf8_lossy(&output.stderr).trim()).expected(format!("{expected} to compile"));
    Err(match command {
        "" => refusal,
        _ => refusal.remedy(command),
    }
    .into())
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The shared library or the program called `name` among cargo's messages.
pub fn built(messages: &str, name: &str) -> Result<PathBuf> {
    let lines = messages.lines();
    let all = lines.filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut all = all.flat_map(|it| it.filenames);
    all.find(|path| path.file_name().is_some_and(|it| it == name)).with_context(|| format!("cargo built no {name}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn finds_each_library_and_program_by_its_name() {
        let messages = "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/libone.rlib\",\"/t/libone.so\"]}\n\
                        {\"filenames\":[\"/t/tool\"],\"executable\":\"/t/tool\"}\n{\"reason\":\"build-finished\",\"success\":true}\n";
        for (name, path) in [("libone.so", "/t/libone.so"), ("tool", "/t/tool")] {
            assert_eq!(built(messages, name).unwrap(), Path::new(path));
            assert!(built("", name).is_err());
        }
        assert!(built(messages, "libtwo.so").is_err());
    }

    #[test]
    fn a_build_that_was_ended_is_no_wrong_code() {
        let why = |script: &str| {
            let ended = Command::new("sh").args(["-c", script]).output().unwrap();
            messages(&ended, "it", "all", "").unwrap_err().to_string()
        };
        assert!(why("kill -15 $$").starts_with("the build of it was ended by signal 15: run it again\n"));
        assert!(why("exit 101").starts_with("it does not compile\n"));
    }
}
