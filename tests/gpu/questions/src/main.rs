//! Asks CUDA's driver one question of docs/gpu.md: `questions QUESTION SECONDS`.
//!
//! Answers are lines of JSON on standard output (`asking`). pinbuddy takes no part. Who starts it sets a time limit: a call may hang.

#![allow(missing_docs, unreachable_pub, reason = "in a program, pub says what a module offers the others")]

mod asking;
mod driver;
mod memory;
mod pace;
mod probe;
mod stalls;
mod unpinning;

use std::process::ExitCode;

use asking::Asking;
use driver::Driver;

/// A question and the program that asks it.
type Question = fn(&mut Asking, &Driver);

const QUESTIONS: [(&str, Question); 3] = [("pace", pace::ask), ("stalls", stalls::ask), ("unpinning", unpinning::ask)];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words == [probe::NEIGHBOUR] {
        return match Driver::connect().and_then(|cuda| probe::answer_neighbour(&cuda)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => complain(&failure.to_string()),
        };
    }
    let names = QUESTIONS.map(|(name, _)| name);
    let at = names.iter().position(|name| words.first() == Some(name));
    let (Some(at), [_, seconds]) = (at, &words[..]) else {
        return complain(&format!("error: expected QUESTION SECONDS; QUESTION is one of {names:?}"));
    };
    let mut it = Asking::new(seconds.parse().unwrap_or(0.0));
    if let Some(cuda) = it.need("CUDA's driver", "this machine", Driver::connect) {
        QUESTIONS[at].1(&mut it, &cuda);
    }
    // Without teardown, whatever is still pinned or running.
    std::process::exit(0)
}

fn complain(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(2)
}
