//! What the program says to a user who has just installed it.

use std::fs;
use std::process::{Command, Output};

fn tools(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pinbuddy-tools"));
    command.args(arguments).output().unwrap()
}

/// As the wheel's command is called, whatever the program's file is.
#[test]
fn what_cannot_be_understood_is_said_of_the_command_that_was_typed() {
    for (arguments, says) in [
        (&["plan", "--help"][..], "Usage: pinbuddy plan"),
        (&["report", "x", "--bogus"], "Usage: pinbuddy report"),
        (&["top", "train.py"], "to start a program, --launch CMD"),
        (
            &["report", "x", "--time-limit", "-1"],
            "expected a number of seconds, 0 or more",
        ),
    ] {
        let output = tools(arguments);
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("pinbuddy-tools"), "{said}");
    }
}

#[test]
fn a_plan_of_all_sizes_names_no_smallest_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.jsonl");
    let request = |id| format!("{{\"t\":{id},\"op\":\"alloc\",\"id\":{id},\"bytes\":1000}}\n");
    let header = "{\"format\":\"pinbuddy-trace\",\"version\":3}\n";
    fs::write(&file, format!("{header}{}{}", request(1), request(2))).unwrap();
    let said = tools(&["plan", &file.display().to_string()]).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("2 requests, at most "), "{said}");
}
