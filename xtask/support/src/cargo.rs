//! Calls cargo, and reads its messages (`--message-format json`) for the paths of built libraries and programs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::paths;

/// cargo, in the checkout.
pub fn command() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(paths::root());
    command
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

fn all(messages: &str) -> impl Iterator<Item = Message> {
    let lines = messages.lines();
    lines.filter_map(|line| serde_json::from_str(line).ok())
}

/// The shared library called `name` among cargo's messages.
pub fn library(messages: &str, name: &str) -> Result<PathBuf> {
    let mut files = all(messages).flat_map(|message| message.filenames);
    files
        .find(|path| path.file_name().is_some_and(|it| it == name))
        .with_context(|| format!("cargo built no {name}"))
}

/// The program called `name` among cargo's messages.
pub fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    let mut programs = all(messages).filter_map(|message| message.executable);
    programs
        .find(|path| path.file_name().is_some_and(|it| it == name))
        .with_context(|| format!("cargo built no {name}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn finds_each_library_by_its_name() {
        let messages = "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/t/libone.rlib\",\"/t/libone.so\"]}\n{\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(
            library(messages, "libone.so").unwrap(),
            Path::new("/t/libone.so")
        );
        assert!(library(messages, "libtwo.so").is_err());
        assert!(library("", "libone.so").is_err());
    }
}
