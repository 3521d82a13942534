//! A table's row with numbers names the run that they are from (`figures.rs`), or its table is listed here with the reason
//! why it does not.
//!
//! Tables are those outside of blocks of code. A number is a cell after the first that is a number with a unit at most.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The document, how the table's head begins, and the reason.
const UNMARKED: [(&str, &str, &str); 7] = [
    ("docs/bench.md", "| figure |", "targets, which the code has"),
    (
        "docs/device.md",
        "| record | stock |",
        "replays on models, the same each time: `pinbuddy plan` of records that are not in the repository",
    ),
    (
        "docs/gpu.md",
        "| question |",
        "how long stages take at most, from the driver of the runs",
    ),
    (
        "docs/gpu.md",
        "| stage | seconds",
        "how long stages take at most, from the driver of the runs",
    ),
    (
        "docs/releases.md",
        "| torch | CUDA |",
        "versions of torch and of CUDA, no measurement",
    ),
    (
        "docs/variables.md",
        "| variable |",
        "defaults, compared with the code by a test",
    ),
    (
        "docs/worst.md",
        "| | wanted |",
        "bounds, which never_worse.rs tests",
    ),
];

/// Ties a row to the committed run that its numbers are of.
const MARK: &str = "<!-- =";

const UNITS: [&str; 14] = [
    "%", "ms", "s", "µs", "ns", "KiB", "MiB", "GiB", "MB", "GB", "bytes", "seconds", "minutes",
    "times",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches('-').replace([',', '.'], "");
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}

/// `0.36`, `1,024 MiB`, `0.36 (0.35 to 0.36)`, `5.3 to 8.9`, `2, 1`.
fn is_figure(cell: &str) -> bool {
    let bare = cell.trim().replace(['*', '(', ')'], " ");
    let mut words = bare.split_whitespace().peekable();
    words
        .peek()
        .is_some_and(|it| is_number(it.trim_end_matches(',')))
        && words.all(|it| {
            let it = it.trim_end_matches(',');
            is_number(it) || it == "to" || UNITS.contains(&it)
        })
}

/// The heads of tables that have rows with numbers and without marks.
fn unmarked(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let (mut head, mut code) = (None, false);
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
        }
        if code || !line.starts_with('|') {
            head = None;
            continue;
        }
        let Some(head) = head else {
            head = Some(line);
            continue;
        };
        let is_marked = line.contains(MARK);
        let mut cells = line.trim_matches(['|', ' ']).split('|').skip(1);
        if !is_marked && cells.any(is_figure) {
            found.insert(head);
        }
    }
    found
}

fn documents() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for folder in ["", "docs", "examples", "ci"] {
        for entry in fs::read_dir(root().join(folder)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            // The changelog tells of the past.
            if path.ends_with(".md") && path != "CHANGELOG.md" {
                all.push((path, fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn every_row_of_figures_names_its_run_or_its_table_is_listed_with_a_reason() {
    let mut complaints = Vec::new();
    let mut needed = BTreeSet::new();
    let documents = documents();
    for (path, text) in &documents {
        for head in unmarked(text) {
            let listed = UNMARKED
                .iter()
                .position(|it| it.0 == path && head.starts_with(it.1));
            match listed {
                Some(at) => {
                    needed.insert(at);
                }
                None => complaints.push(format!("{path}: {head}")),
            }
        }
    }
    assert!(
        complaints.is_empty(),
        "rows of these tables have figures of no run:\n{}",
        complaints.join("\n")
    );
    let idle: Vec<_> = (0..UNMARKED.len())
        .filter(|it| !needed.contains(it))
        .map(|it| UNMARKED[it])
        .collect();
    assert!(
        idle.is_empty(),
        "no such table has unmarked figures: {idle:?}"
    );
    assert!(
        UNMARKED.iter().all(|it| it.2.contains(' ')),
        "a reason is a sentence"
    );
}

#[test]
fn an_unmarked_figure_is_noticed() {
    for figure in [
        "0.36",
        "1,024 MiB",
        "**2.3** (2.0 to 2.6)",
        "5.3 to 8.9",
        "2, 1",
        "-3 %",
    ] {
        assert!(is_figure(figure), "{figure}");
    }
    for other in [
        "",
        "2.15.0 and later",
        "`8`",
        "two",
        "1 for all",
        "a 1",
        "to",
    ] {
        assert!(!is_figure(other), "{other}");
    }
    let table = |row: &str| format!("text\n\n| a | b |\n|---|---|\n| x | y |\n{row}\n\n| c |\n");
    assert_eq!(
        unmarked(&table("| x | 1.2 |"))
            .into_iter()
            .collect::<Vec<_>>(),
        ["| a | b |"]
    );
    assert!(unmarked(&table("| x | 1.2 | <!-- = a/b -->")).is_empty());
    assert!(unmarked(&table("| 1.2 | x |")).is_empty());
    assert!(unmarked("```\n| a | b |\n|---|---|\n| x | 1 |\n```\n").is_empty());
}
