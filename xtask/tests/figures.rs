//! The figures in the documents are those of the committed runs.
//!
//! `<!-- figures: FILE -->` names a run's JSON, from the repository's root, for the lines that follow
//! it. A table's row that ends in `<!-- = PATH … -->` has one number in its cells after the first for
//! each path, in their order, rounded to as many decimals as are shown. A path's keys are parted by `/`,
//! a space in one may be written `_` and a `/` in one `\`, and `*FACTOR` after it changes the unit. In a list, a key is a
//! position or the `name` of an item. `A:B` is A over B, and `.` stands for a number that no run has. `NAME@PATH` is of
//! another run, that of docs/results/NAME.json.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Documents that have figures of committed runs.
const DOCUMENTS: [&str; 9] = [
    "README.md",
    "docs/bench.md",
    "docs/comparison.md",
    "docs/device.md",
    "docs/measured.md",
    "docs/plans.md",
    "docs/reliability.md",
    "docs/settings.md",
    "docs/worst.md",
];

/// The numbers in a text, as they are written, less the commas between thousands.
fn numbers(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_between = |at: usize| at > 0 && digit(at - 1) && (1..=3).all(|it| digit(at + it));
    let kept = (0..chars.len()).filter(|&at| chars[at] != ',' || !is_between(at));
    let text: String = kept.map(|at| chars[at]).collect();
    text.split(|it: char| !it.is_ascii_digit() && it != '.' && it != '-')
        .map(|it| it.trim_matches('.').trim_end_matches('-'))
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

fn read(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

fn run_of(file: &str) -> Value {
    serde_json::from_str(&read(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// What a path names, if that is a number.
fn at(run: &Value, path: &str) -> Option<f64> {
    if let Some((name, path)) = path.split_once('@') {
        return at(&run_of(&format!("docs/results/{name}.json")), path);
    }
    let (path, factor) = path.split_once('*').unwrap_or((path, "1"));
    let (path, over) = path
        .split_once(':')
        .map_or((path, None), |(path, over)| (path, Some(over)));
    let over = match over {
        Some(over) => named(run, over)?,
        None => 1.0,
    };
    Some(named(run, path)? / over * factor.parse::<f64>().ok()?)
}

/// The number that is there, or under there.
fn named(run: &Value, path: &str) -> Option<f64> {
    path.split('/').fold(run, inside).as_f64()
}

/// What a key names.
fn inside<'v>(value: &'v Value, key: &str) -> &'v Value {
    let key = key.replace('\\', "/");
    let spaced = key.replace('_', " ");
    match value {
        Value::Array(all) => match key.parse() {
            Ok(at) => all.get::<usize>(at),
            Err(_) => all.iter().find(|it| it["name"] == spaced),
        }
        .unwrap_or(&Value::Null),
        other if other[&key].is_null() => &other[&spaced],
        other => &other[&key],
    }
}

/// What is wrong with a row.
fn wrong(row: &str, run: &Value) -> Option<String> {
    let (cells, paths) = row.split_once("<!-- =")?;
    let paths: Vec<&str> = paths
        .trim_end_matches(['-', '>', ' '])
        .split_whitespace()
        .collect();
    let Some((_, cells)) = cells.strip_prefix('|').and_then(|it| it.split_once('|')) else {
        return Some(format!("no row of a table: {row}"));
    };
    let shown = numbers(cells);
    if shown.len() != paths.len() {
        return Some(format!(
            "{} numbers, {} paths: {row}",
            shown.len(),
            paths.len()
        ));
    }
    let of_a_run = |it: &(&&str, String)| *it.0 != ".";
    let mut all = paths.iter().zip(shown).filter(of_a_run);
    all.find_map(|(path, shown)| {
        let Some(value) = at(run, path) else {
            return Some(format!("the run has no {path}: {row}"));
        };
        let decimals = shown.split_once('.').map_or(0, |(_, after)| after.len());
        let rounded = format!("{value:.decimals$}");
        (rounded != shown).then(|| format!("{path} is {rounded}, not {shown}: {row}"))
    })
}

#[test]
fn every_figure_is_of_the_run_that_it_names() {
    for document in DOCUMENTS {
        let mut run = Value::Null;
        let mut rows = 0;
        for line in read(document).lines() {
            if let Some(file) = line.strip_prefix("<!-- figures: ") {
                run = run_of(file.trim_end_matches(" -->"));
            } else if line.contains("<!-- =") {
                rows += 1;
                assert_eq!(wrong(line, &run), None, "{document}");
            }
        }
        assert!(rows > 2, "{document} has {rows} rows with figures");
    }
}

#[test]
fn every_document_with_such_figures_is_looked_at() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("docs/{}", path.file_name().unwrap().to_str().unwrap());
        if name.ends_with(".md") && read(&name).contains("<!-- =") {
            assert!(DOCUMENTS.contains(&name.as_str()), "{name}");
        }
    }
}

#[test]
fn a_figure_that_is_not_the_runs_is_noticed() {
    let run = serde_json::json!({"ratio": {"129.5MiB": 0.306}, "spread": [0.2, 0.4]});
    let row = |value| {
        format!("| 8 MiB | {value} (0.2 to 0.4) | <!-- = ratio/129.5MiB spread/0 spread/1 -->")
    };
    assert_eq!(wrong(&row("0.31"), &run), None);
    assert_eq!(wrong(&row("0.306"), &run), None);
    assert!(wrong(&row("0.30"), &run).is_some());
    assert!(wrong("| a | 1 | <!-- = nothing -->", &run).is_some());
    assert!(wrong("- a: 0.31 <!-- = ratio/129.5MiB -->", &run).is_some());
    let run = serde_json::json!([{"name": "a b", "figures": {"x/y": 2844, "all": 2885}}]);
    let row = |shown| {
        format!(
            "| lines | {shown} | <!-- = a_b/figures/x\\y . a_b/figures/x\\y:0/figures/all*100 -->"
        )
    };
    assert_eq!(wrong(&row("2,844 of 7: 98.6 %"), &run), None);
    assert!(wrong(&row("2,845 of 7: 98.6 %"), &run).is_some());
    assert!(wrong(&row("2,844 of 7: 98.5 %"), &run).is_some());
    assert!(wrong("| a | 1 2 | <!-- = spread/0 -->", &run).is_some());
}
