//! The table of a pull request, from the JSON that `bench --json` writes.
//!
//! Invariant: each number is in the file; its spread is added if the file has one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::support::refusal::refuse;

/// The name of each figure with what it is relative to, and its place in the file.
const ROWS: &str = "\
allocate + free, 8 MiB, time, over stock's = /hit_pair_ratio/8MiB
allocate + free, 64 KiB, time, over stock's = /hit_pair_ratio/64KiB
the same, used on a stream, 8 MiB, over stock's = /hit_pair_ratio/event
eight threads, throughput, over stock's = /threads_ratio/8
first iteration, times faster, over stock = /first_iteration_speedup/background
pinned, sizes that vary: stock, over largest live set = /pinned_over_requested/stock/variable-lengths
pinned, sizes that vary: subclass, over largest live set = /pinned_over_requested/pinbuddy-exact/variable-lengths
pinned, 129.5 MiB x 40: stock, over largest live set = /pinned_over_requested/stock/fixed-129.5mib
pinned, 129.5 MiB x 40: subclass, over largest live set = /pinned_over_requested/pinbuddy-exact/fixed-129.5mib";

/// The newest results that are checked in.
pub fn newest(root: &Path) -> Result<PathBuf> {
    let folder = root.join("docs/results");
    let files = fs::read_dir(&folder).with_context(|| format!("listing {}", folder.display()))?;
    let files = files.flatten().map(|it| it.path());
    let results = files.filter(|it| it.to_string_lossy().ends_with("-bench.json"));
    results.max().context("docs/results has no *-bench.json")
}

/// The table, with where it was measured.
pub fn table(file: &Path) -> Result<String> {
    let no_results = |found: String| {
        refuse(format!("{} has no results of a benchmark", file.display()))
            .found(found)
            .expected("a file that `cargo xtask bench --json FILE` wrote")
            .remedy("pass another one with --bench")
    };
    let text = fs::read_to_string(file).map_err(|error| no_results(error.to_string()))?;
    let results: Value =
        serde_json::from_str(&text).map_err(|error| no_results(error.to_string()))?;
    let mut rows = String::new();
    for (name, pointer) in ROWS.lines().filter_map(|line| line.split_once(" = ")) {
        let Some(value) = results.pointer(pointer).and_then(Value::as_f64) else {
            continue;
        };
        let spread = results.pointer(&format!("/context/spread{pointer}"));
        let end = |index: usize| spread?.get(index)?.as_f64();
        let spread = match (end(0), end(1)) {
            (Some(least), Some(most)) => format!(" ({least:.2} to {most:.2})"),
            _ => String::new(),
        };
        rows += &format!("| {name} | {value:.2}{spread} |\n");
    }
    if rows.is_empty() {
        return Err(no_results("none of the figures of the table".to_owned()).into());
    }
    let context = |key: &str| {
        let value = &results["context"][key];
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let [date, processor, cores, memory, cuda, fork] =
        ["date", "processor", "cores", "memory_mib", "cuda", "fork"].map(context);
    Ok(format!(
        "Measured on {date}: {processor}, {cores} cores, {memory} MiB, CUDA {cuda}, torch {fork}; in turns on the same \
         requests in one run, medians (least to most). Ratios are the result; times are of one machine.\n\n\
         | | |\n|---|---|\n{rows}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::paths;

    #[test]
    fn the_checked_in_results_fill_every_row() {
        let table = table(&newest(paths::root()).unwrap()).unwrap();
        assert_eq!(
            table.lines().filter(|it| it.starts_with("| ")).count(),
            1 + ROWS.lines().count(),
            "{table}"
        );
    }

    #[test]
    fn something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        for text in ["{}", "no JSON"] {
            fs::write(&file, text).unwrap();
            assert!(table(&file).unwrap_err().to_string().contains("--bench"));
        }
    }
}
