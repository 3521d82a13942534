//! The program as a run starts it: each question with whatever driver there is.

use std::process::{Command, Output};

use serde_json::Value;

fn run(words: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_pinbuddy-gpu-questions");
    Command::new(program).args(words).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn without_a_driver_or_a_gpu_there_is_no_answer() {
    for question in ["pace", "stalls", "unpinning"] {
        let output = Command::new(env!("CARGO_BIN_EXE_pinbuddy-gpu-questions"))
            .args([question, "5"])
            // A GPU of this machine is none of this test's.
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .unwrap();
        assert!(output.status.success(), "{question}");
        let lines = lines(&output);
        assert_eq!(lines.len(), 2, "{question}: {lines:?}");
        assert_eq!(lines[1]["answer"], "cannot be asked here");
        let why = lines[1]["why"].as_str().unwrap();
        assert!(
            why.contains("libcuda") || why.starts_with("cuInit returned 100"),
            "{why}"
        );
    }
}

#[test]
fn an_unknown_question_is_refused_with_those_that_there_are() {
    let output = run(&["weather", "5"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words.contains("found     weather 5") && words.contains("pace, stalls"),
        "{words}"
    );
}
