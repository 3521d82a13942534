//! What cargo says of what it built, with `--message-format json`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The shared library called `name` among cargo's messages.
pub fn library(messages: &str, name: &str) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        filenames: Vec<PathBuf>,
    }
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .flat_map(|message| message.filenames)
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
