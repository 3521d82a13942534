//! Checks that scripts called in workflows, scripts and documents exist, and that the parser accepts their `cargo
//! xtask` commands. A test of xtask-bench checks the commands that are handed on.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;

use super::File;
use crate::cli::Cli;
use crate::support::calls::{COMMAND, commands};

/// All complaints, one per line.
pub fn check(root: &Path, files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let document = file.path.ends_with(".md");
        if !(document || file.is_workflow() || file.is_script()) {
            continue;
        }
        let text = file.text.as_deref().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            // In a document only lines after `$ ` are commands; comments explain them.
            let line = match (document, line.strip_prefix("$ ")) {
                (true, Some(command)) => command.split('#').next().unwrap_or_default(),
                (true, None) => continue,
                (false, _) => line,
            };
            if line.starts_with('#') || line.starts_with("echo ") {
                continue;
            }
            let at = format!("{}:{}", file.path, number + 1);
            complaints.extend(commands(line).filter_map(|it| refused(&it, &at)));
            let absent = scripts(line).filter(|it| !is_program(&root.join(it)));
            complaints.extend(absent.map(|it| format!("{at}: {it} is not an executable file")));
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

fn refused(arguments: &[String], at: &str) -> Option<String> {
    let all = ["cargo xtask"].into_iter();
    let all = all.chain(arguments.iter().map(String::as_str));
    let error = Cli::try_parse_from(all).err()?;
    if error.kind() == ErrorKind::DisplayHelp {
        return None;
    }
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default();
    Some(format!("{at}: {COMMAND}{}: {said}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parser_refuses_and_what_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        let text = "#!/usr/bin/env bash\ncargo xtask test --quik\ncargo xtask venv --torch \"$1\"\nci/no.sh\n";
        let file = |path: &str, text: &str| File {
            path: path.into(),
            text: Some(text.into()),
        };
        let document = "`cargo xtask tset`\n$ cargo xtask tset   # cargo xtask tset\n";
        let files = [file("ci/a.sh", text), file("docs/a.md", document)];
        insta::assert_snapshot!(check(root.path(), &files).join("\n"), @"
        ci/a.sh:2: cargo xtask test --quik: error: unexpected argument '--quik' found
        ci/a.sh:4: ci/no.sh is not an executable file
        docs/a.md:2: cargo xtask tset: error: unrecognized subcommand 'tset'
        ");
    }
}
