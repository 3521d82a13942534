//! Checks that the parser accepts the `cargo xtask` commands of workflows, scripts and documents. What is handed
//! on, others check: `bench` tests/python/test_bench.py, `upstream-pr` and parts of `patch` those of tests/checkout.

use std::fs;

use clap::Parser as _;
use clap::error::ErrorKind;
use xshell::{Shell, cmd};

use super::Cli;
use crate::support::paths;
use xtask_patchkit::git;

/// The start of such a command line.
const COMMAND: &str = "cargo xtask ";
/// Stands in for a shell variable or a workflow expression.
const VALUE: &str = "2.15.0";

/// The arguments of each `cargo xtask` in a line, split as a shell would; variables become [`VALUE`].
fn commands(line: &str) -> impl Iterator<Item = Vec<String>> {
    line.split(COMMAND).skip(1).map(|rest| {
        let mut rest = rest.to_owned();
        while let Some(start) = rest.find("${{") {
            let Some(end) = rest[start..].find("}}") else {
                break;
            };
            rest.replace_range(start..start + end + 2, VALUE);
        }
        let end = rest.find(['|', '>', '&', ';', ')', '`', '#']).unwrap_or(rest.len());
        let words = rest[..end].split_whitespace();
        // A list of arguments, `"${more[@]}"`, may be empty.
        let words = words.filter(|it| !it.contains("[@]") && *it != "\"$@\"");
        let plain = |word: &str| match word.find('$') {
            Some(_) => VALUE.to_owned(),
            None => word.trim_matches(['"', '\'']).to_owned(),
        };
        words.map(plain).collect()
    })
}

/// What the parser says of each command that it refuses.
fn refused(document: bool, text: &str) -> Vec<String> {
    let typed = text.lines().map(str::trim_start).filter_map(|line| {
        // In a document only lines after `$ ` are commands; comments explain them.
        match (document, line.strip_prefix("$ ")) {
            (true, command) => command?.split('#').next(),
            (false, _) => (!line.starts_with('#') && !line.starts_with("echo ")).then_some(line),
        }
    });
    typed.flat_map(commands).filter_map(complaint).collect()
}

fn complaint(words: Vec<String>) -> Option<String> {
    let all = ["cargo xtask"].into_iter();
    let error = Cli::try_parse_from(all.chain(words.iter().map(String::as_str))).err()?;
    let said = error.to_string();
    let said = said.lines().next().unwrap_or_default();
    let is_help = error.kind() == ErrorKind::DisplayHelp;
    (!is_help).then(|| format!("{COMMAND}{}: {said}", words.join(" ")))
}

/// Documents, scripts and workflows of this checkout.
fn files() -> Vec<String> {
    let shell = Shell::new().unwrap();
    shell.change_dir(paths::root());
    let listed = git::text(git::unbound(cmd!(shell, "git ls-files *.md *.sh *.yml .ci/run")));
    let listed = listed.unwrap();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn command_lines_of_this_checkout_are_accepted() {
    let (mut complaints, mut read) = (Vec::new(), 0);
    for file in files() {
        let Ok(text) = fs::read_to_string(paths::root().join(&file)) else {
            continue;
        };
        read += text.matches(COMMAND).count();
        complaints.extend(refused(file.ends_with(".md"), &text));
    }
    assert_eq!(complaints, [""; 0]);
    assert!(read > 50, "{read}");
}

#[test]
fn what_the_parser_refuses_is_named() {
    let script = "cargo xtask test --quik\nout=$(cargo xtask venv --torch \"$1\" --stok) && cargo xtask test --quick | tee x\n\
                  # cargo xtask tset\nrun: cargo xtask test --torch ${{ env.IT }} \"${more[@]}\"\n";
    let document = "`cargo xtask tset`\n$ cargo xtask tset   # cargo xtask tset\n";
    let all = [refused(false, script), refused(true, document)].concat();
    insta::assert_snapshot!(all.join("\n"), @"
    cargo xtask test --quik: error: unexpected argument '--quik' found
    cargo xtask venv --torch 2.15.0 --stok: error: unexpected argument '--stok' found
    cargo xtask tset: error: unrecognized subcommand 'tset'
    ");
}
