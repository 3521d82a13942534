//! What the program says to a user who has just installed it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::started;
use started::{Lines, command, fed, file, says, told};

/// As the wheel's command is called, whatever the program's file is.
#[test]
fn help_and_what_cannot_be_understood_are_said_of_the_command_that_was_typed() {
    let own = env!("CARGO_BIN_EXE_pinbuddy-tools");
    for (started_as, arguments, part) in [
        (own, &["plan", "--help"][..], "Usage: pinbuddy plan "),
        (own, &["report", "x", "--bogus"], "Usage: pinbuddy report"),
        (own, &["top", "train.py"], "to start a program, --launch CMD"),
        (own, &["report", "x", "--time-limit", "-1"], "expected a number of seconds, 0 or more"),
        ("python -m pinbuddy", &["plan", "--help"], "Usage: python -m pinbuddy plan "),
        ("/opt/bin/pinbuddy", &["plan", "--help"], "Usage: pinbuddy plan "),
    ] {
        let output = command().arg0(started_as).args(arguments).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        says(&said, part);
        assert!(!said.contains("pinbuddy-tools"), "{said}");
    }
}

/// What bash offers for the last of these words.
fn completed(script: &str, words: &str) -> Vec<String> {
    let asks = "COMP_WORDS=($WORDS); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _pinbuddy pinbuddy ${COMP_WORDS[-1]} ${COMP_WORDS[-2]}; echo ${COMPREPLY[@]}";
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("{script}\n{asks}")]);
    let output = bash.env("WORDS", words).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn shells_complete_commands_options_and_values() {
    let script = told(&["completions", "bash"]);
    for (words, offered) in [
        ("pinbuddy pl", &["plan", "plans"][..]),
        ("pinbuddy do", &["doctor"]),
        ("pinbuddy plan --time", &["--time-limit"]),
        ("pinbuddy report --format p", &["perfetto"]),
        ("pinbuddy completions z", &["zsh"]),
    ] {
        assert_eq!(completed(&script, words), offered, "{words}");
    }
    for (shell, begins) in [("zsh", "#compdef pinbuddy\n"), ("fish", "")] {
        let script = told(&["completions", shell]);
        assert!(script.starts_with(begins), "{shell}");
        for word in ["plan", "doctor", "time-limit", "perfetto"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn a_plan_of_all_sizes_names_no_smallest_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Lines::with_head("\"version\":3");
    [1, 2].into_iter().for_each(|id| lines.alloc(id, id, 1000));
    let said = told(&["plan", &file(&folder, "small.jsonl", lines.0)]);
    assert!(said.starts_with("2 requests; peak "), "{said}");
}

/// What `explain` answers, with `log` as its standard input.
fn explained(arguments: &[&str], log: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let log = fs::File::open(file(&folder, "train.log", log)).unwrap();
    let output = fed(&[&["explain"], arguments].concat(), log);
    let said = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), said)
}

#[test]
fn a_message_is_explained_by_itself_and_in_a_log() {
    let line = "pinbuddy: rank 3: warning: could not pin 1 GiB: out of memory. The warm-up ends with 2 of 8 blocks";
    let (code, said) = explained(&[line], "");
    assert_eq!(code, Some(0));
    assert!(said.starts_with("could not pin\n  The driver refused"), "{said}");
    let log = format!("epoch 1\n{line}\nsomebody could not register\n{line}\nerror: x is no trace\n");
    let (code, said) = explained(&[], &log);
    assert_eq!((code, said.matches("The driver refused").count()), (Some(0), 1));
    says(&said, "error: x is no trace\nis no trace\n");
    assert!(!said.contains("somebody"), "{said}");
}

/// Of words: whether anything is known of them, and what is answered; `^` is the beginning.
const ANSWERS: &[(&[&str], bool, &str)] = &[
    (&["first", "step", "is", "slow"], true, "To do: call pinbuddy.warm_up()"),
    (&["my slow First step!"], true, "To do: call pinbuddy.warm_up()"),
    (&["my slow First step!"], true, "^No message of pinbuddy's has these words. What comes nearest:\n"),
    (&["budget"], true, "budget, quota\n  the most that the engine pins"),
    (&["budget"], true, "would pass the budget of\n"),
    (&["BUDDY_FORK=hide"], true, "BUDDY_FORK\n  what forked children"),
    (&["no", "gpu"], true, "^there is no GPU here\n"),
    // Headings come before texts.
    (&["huge", "pages"], true, "^'huge pages' is in:\n  docs/deploy.md: Huge pages\n  "),
    (&["HUGE", "pages"], true, "\nTo read a page: pinbuddy explain docs/deploy.md\n"),
    (&["the of xyzzy"], false, "^Nothing is known of that."),
    (&["the"], false, "^Nothing is known of that."),
    (&[], true, "^Symptoms:\n"),
];

#[test]
fn a_symptom_is_found_by_its_words_and_what_is_unknown_is_said() {
    for (words, is_known, part) in ANSWERS {
        let (code, said) = explained(words, "");
        assert_eq!(code == Some(0), *is_known, "{words:?}: {said}");
        says(&format!("^{said}"), part);
    }
    let (code, said) = explained(&[], "epoch 1\n");
    assert_eq!(code, Some(1));
    assert!(said.starts_with("No message of pinbuddy's"), "{said}");
}
