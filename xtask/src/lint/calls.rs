//! What workflows, scripts and documents call: scripts that are there, and command lines of `cargo xtask`
//! that its own parser takes. Those that are handed on are checked by a test of xtask-bench.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;

use super::File;
use crate::cli::Cli;
use crate::support::calls::{COMMAND, commands};

/// What is wrong, a line each.
pub fn check(root: &Path, files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|it| it.is_workflow() || it.is_script()) {
        let text = file.text.as_deref().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with('#') || line.starts_with("echo ") {
                continue;
            }
            let place = format!("{}:{}", file.path, number + 1);
            complaints.extend(commands(line).filter_map(|it| refused(&it, &place)));
            let absent = scripts(line).filter(|it| !is_program(&root.join(it)));
            complaints.extend(absent.map(|it| format!("{place}: {it} is no program")));
        }
    }
    complaints
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// `ci/NAME.sh`, wherever it stands in a line.
fn scripts(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|it: char| it.is_whitespace() || "\"'()`;|&".contains(it));
    words.filter(|it| it.starts_with("ci/") && it.ends_with(".sh"))
}

fn refused(arguments: &[String], place: &str) -> Option<String> {
    let all = ["cargo xtask"].into_iter();
    let all = all.chain(arguments.iter().map(String::as_str));
    let error = Cli::try_parse_from(all).err()?;
    if error.kind() == ErrorKind::DisplayHelp {
        return None;
    }
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default();
    Some(format!("{place}: {COMMAND}{}: {said}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parser_refuses_and_what_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        let text = "#!/usr/bin/env bash\ncargo xtask test --quik\ncargo xtask venv --torch \"$1\"\nci/no.sh\n";
        let file = File {
            path: "ci/a.sh".into(),
            text: Some(text.into()),
        };
        insta::assert_snapshot!(check(root.path(), &[file]).join("\n"), @"
        ci/a.sh:2: cargo xtask test --quik: error: unexpected argument '--quik' found
        ci/a.sh:4: ci/no.sh is no program
        ");
    }
}
