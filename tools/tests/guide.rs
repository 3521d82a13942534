//! docs/settings.md: its figures are what `advise` says of the workloads.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use pinbuddy_replay::workload::Workload;
use pinbuddy_trace::Header;
use serde_json::Value;

mod started;
use started::told;

/// The choices that `advise` compares, by name.
fn choices(folder: &Path, workload: &str) -> HashMap<String, Value> {
    let steps = Workload::named(workload).unwrap().steps;
    let path = started::trace(folder, workload, steps, &Header::default());
    let said = told(&["advise", "--json", path.to_str().unwrap()]);
    let advice: Value = serde_json::from_str(&said).unwrap();
    let all = advice["choices"].as_array().unwrap().iter();
    all.map(|it| (it["name"].as_str().unwrap().to_owned(), it.clone()))
        .collect()
}

#[test]
fn figures_are_what_advise_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/settings.md");
    let page = fs::read_to_string(page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut known: HashMap<&str, HashMap<String, Value>> = HashMap::new();
    let mut rows = 0;
    for line in page
        .lines()
        .filter(|it| it.starts_with("| ") && !it.starts_with("| set |"))
    {
        let (cells, of) = line.split_once(" | <!-- advise ").expect(line);
        let (workload, name) = of.trim_end_matches(" -->").split_once(": ").unwrap();
        let choices = known
            .entry(workload)
            .or_insert_with(|| choices(folder.path(), workload));
        let choice = choices
            .get(name)
            .unwrap_or_else(|| panic!("{workload} has no {name:?}"));
        let waits = choice["waits"]
            .as_u64()
            .map_or_else(|| "not modelled".to_owned(), |it| it.to_string());
        let said = format!(" | {:.2} | {waits}", choice["over_live"].as_f64().unwrap());
        assert!(cells.ends_with(&said), "{line}\n  has to end with{said}");
        rows += 1;
    }
    assert!(rows > 12, "{rows}");
}
