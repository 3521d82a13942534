//! What documents say there is: settings that the code reads, workflows and scripts that exist.
//!
//! The settings' names stand in the code as `"BUDDY_…"` and `"PINBUDDY_SIM_…"`, in the files named below.

use std::collections::BTreeSet;

use super::File;

/// The table of the library's settings. A test beside it compares it with docs/variables.md.
const SETTINGS: &str = "cxx-bridge/src/config/variables.rs";
/// The simulator's sources, and the document that explains its settings.
const SIMULATOR: &str = "tests/cuda-sim/src/";
const SIMULATOR_PAGE: &str = "docs/simulator.md";
/// The document that has a row for each workflow and explains each script.
const CI_PAGE: &str = "ci/README.md";
/// Tells what was, too.
const HISTORY: &str = "CHANGELOG.md";

/// All complaints, one per line.
pub fn check(files: &[File]) -> Vec<String> {
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for file in files {
        let simulator = file.path.starts_with(SIMULATOR);
        if !simulator && file.path != SETTINGS {
            continue;
        }
        // Names that tests make up come after the table.
        let text = text(file).split("#[cfg(test)]").next().unwrap_or_default();
        for name in names(text).filter(|it| text.contains(&format!("\"{it}\""))) {
            known.insert(name);
            if simulator && !page(files, SIMULATOR_PAGE).contains(name) {
                let from = &file.path;
                complaints.push(format!(
                    "{SIMULATOR_PAGE}: no row explains {name}, which {from} reads"
                ));
            }
        }
    }
    for file in files.iter().filter(|it| is_document(it)) {
        for (number, line) in text(file).lines().enumerate() {
            let unknown = names(line).filter(|it| !known.contains(it));
            let at = format!("{}:{}", file.path, number + 1);
            complaints.extend(unknown.map(|it| format!("{at}: {it} is no setting")));
        }
    }
    for file in files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let script = file.path.starts_with("ci/") && file.is_script();
        let row = if script { &file.path } else { name };
        if (script || file.is_workflow()) && !page(files, CI_PAGE).contains(&format!("`{row}")) {
            complaints.push(format!("{CI_PAGE}: nothing explains {}", file.path));
        }
    }
    complaints.sort_unstable();
    complaints.dedup();
    complaints
}

fn is_document(file: &File) -> bool {
    (file.path.ends_with(".md") && file.path != HISTORY) || file.is_script() || file.is_workflow()
}

fn text(file: &File) -> &str {
    file.text.as_deref().unwrap_or_default()
}

fn page<'a>(files: &'a [File], path: &str) -> &'a str {
    files.iter().find(|it| it.path == path).map_or("", text)
}

/// Names of settings in a text. `BUDDY_*` and `BUDDY_` alone are none.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    words.filter(|word| {
        let mut prefixes = ["BUDDY_", "PINBUDDY_SIM_"].into_iter();
        prefixes.any(|it| word.strip_prefix(it).is_some_and(|rest| !rest.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_complained_of() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: Some(text.to_owned()),
        };
        let files = [
            file(
                SETTINGS,
                "variable(\"BUDDY_LOG\")\n#[cfg(test)]\n\"BUDDY_LOK\"",
            ),
            file(
                "tests/cuda-sim/src/a.rs",
                "is(\"PINBUDDY_SIM_A\"); is(\"PINBUDDY_SIM_B\")",
            ),
            file(SIMULATOR_PAGE, "| `PINBUDDY_SIM_A=1` | a |\n"),
            file("docs/x.md", "`BUDDY_LOG=off`, `BUDDY_*`\n`BUDDY_LOK=off`\n"),
            file(HISTORY, "`BUDDY_OLD` is gone\n"),
            file(CI_PAGE, "| `a.yml` | `ci/a.sh` |\n"),
            file(".github/workflows/a.yml", "# A.\n"),
            file(".github/workflows/b.yml", "# B.\n"),
            file("ci/a.sh", "#!/usr/bin/env bash\n"),
            file("ci/b.sh", "#!/usr/bin/env bash\n"),
        ];
        insta::assert_snapshot!(check(&files).join("\n"), @"
        ci/README.md: nothing explains .github/workflows/b.yml
        ci/README.md: nothing explains ci/b.sh
        docs/simulator.md: no row explains PINBUDDY_SIM_B, which tests/cuda-sim/src/a.rs reads
        docs/x.md:2: BUDDY_LOK is no setting
        ");
    }
}
