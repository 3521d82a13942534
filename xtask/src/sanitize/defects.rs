//! Defects that a sanitizer has to find: each in a process of its own, whose clean end is a failure.
//!
//! All are in one copy of the sources, and asleep until the process is told which one it has.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::program::{self, Run};
use super::{Sanitizer, compile, units};
use crate::support::paths;
use crate::support::refusal::refuse;

/// What is seeded, and where.
const LIST: &str = "tests/sanitize/defects.toml";
/// Races are found or not as threads meet: so often it may be missed.
const TRIES: u64 = 5;

#[derive(Debug, Deserialize)]
struct Defects {
    defect: Vec<Defect>,
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defect {
    /// What is wrong, in words; what a process is told.
    name: String,
    /// Of `cxx-bridge/cpp`.
    file: String,
    /// Once in that file.
    text: String,
    /// In its place.
    seeded: String,
    /// The sanitizer.
    finds: String,
    /// One of these, separated by `|`, is in what the process writes.
    says: String,
    /// The program that reaches it, of `tests/sanitize`.
    #[serde(default = "churn")]
    program: String,
}

fn churn() -> String {
    "churn".to_owned()
}

/// Runs each of a sanitizer's; how many there are.
pub fn all(sanitizer: Sanitizer) -> Result<u64> {
    let defects = read()?;
    let sources = seed(&defects, sanitizer)?;
    let library = units::library("seeded", Some("seeded.h"), &sources, sanitizer)?;
    let mut programs = BTreeMap::new();
    for defect in defects.iter().filter(|it| it.finds == sanitizer.name()) {
        let name = &*defect.program;
        if programs.contains_key(name) {
            continue;
        }
        let main = units::object(name, &format!("tests/sanitize/{name}.cpp"), sanitizer)?;
        let objects = [library.clone(), main];
        let program = compile::link(&format!("seeded-{name}"), &objects, &[], sanitizer)?;
        // With none of them awake it ends well.
        let arguments = program::arguments(name, Run::Short);
        program::run_well(&program, &arguments, sanitizer, &[])?;
        programs.insert(name, program);
    }
    let mut found = 0;
    for defect in defects.iter().filter(|it| it.finds == sanitizer.name()) {
        find(defect, &programs[&*defect.program], sanitizer)?;
        found += 1;
    }
    ensure!(
        found > 0,
        "no defect is seeded for the {} sanitizer",
        sanitizer.name()
    );
    Ok(found)
}

fn read() -> Result<Vec<Defect>> {
    let path = paths::root().join(LIST);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {LIST}"))?;
    let Defects { defect } = toml::from_str(&text).with_context(|| format!("reading {LIST}"))?;
    for Defect { name, finds, .. } in &defect {
        let known = Sanitizer::ALL.iter().any(|it| it.name() == finds);
        ensure!(known, "{LIST}: no sanitizer is called {finds} ({name})");
    }
    Ok(defect)
}

/// The sources with all defects in them.
fn seed(defects: &[Defect], sanitizer: Sanitizer) -> Result<PathBuf> {
    let original = paths::root().join("cxx-bridge/cpp");
    let copy = compile::folder().join(format!("seeded-{}-sources", sanitizer.name()));
    fs::create_dir_all(&copy).with_context(|| format!("creating {}", copy.display()))?;
    for stale in compile::files(&copy, "")? {
        fs::remove_file(&stale).with_context(|| format!("removing {}", stale.display()))?;
    }
    for ending in [".h", ".cpp"] {
        for file in compile::files(&original, ending)? {
            let name = file.strip_prefix(&original)?.to_string_lossy();
            let mut text =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            for defect in defects.iter().filter(|it| it.file == name) {
                text = defect.sow(&text)?;
            }
            let to = copy.join(&*name);
            let folder = to.parent().unwrap_or(&copy);
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
            fs::write(&to, text).with_context(|| format!("writing {}", to.display()))?;
        }
    }
    Ok(copy)
}

impl Defect {
    fn sow(&self, text: &str) -> Result<String> {
        let count = text.matches(&self.text).count();
        if count == 1 {
            return Ok(text.replacen(&self.text, &self.seeded, 1));
        }
        let Self {
            name, file, text, ..
        } = self;
        Err(refuse(format!(
            "the defect {name:?} has no place in cxx-bridge/cpp/{file}"
        ))
        .found(format!("{count} times {:?}", text.trim()))
        .expected("once")
        .remedy(format!("say in {LIST} what the line is now"))
        .into())
    }
}

fn find(defect: &Defect, program: &std::path::Path, sanitizer: Sanitizer) -> Result<()> {
    let variables = [("PINBUDDY_SEEDED", defect.name.clone().into())];
    for seed in 1..=TRIES {
        let arguments = match &*defect.program {
            "churn" => ["4", "4", "200", &seed.to_string()]
                .map(str::to_owned)
                .into(),
            other => program::arguments(other, Run::Short),
        };
        let ended = program::run(program, &arguments, sanitizer, &variables)?;
        if ended.well {
            continue;
        }
        if defect.says.split('|').any(|it| ended.said.contains(it)) {
            return Ok(());
        }
        return Err(refuse(format!(
            "the defect {:?} ended its process otherwise",
            defect.name
        ))
        .found(ended.said.trim())
        .expected(defect.says.clone())
        .into());
    }
    Err(refuse(format!(
        "the {} sanitizer missed a defect: {}",
        sanitizer.name(),
        defect.name
    ))
    .found(format!("{TRIES} processes that have it ended well"))
    .expected(defect.says.clone())
    .remedy(format!(
        "have tests/sanitize/{}.cpp reach {}, or mend {LIST}",
        defect.program, defect.file
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_defect_has_a_place() {
        let defects = read().unwrap();
        for defect in &defects {
            let file = paths::root().join("cxx-bridge/cpp").join(&defect.file);
            let text = fs::read_to_string(file).unwrap();
            assert!(defect.sow(&text).unwrap().contains(&defect.seeded));
            assert!(defect.seeded.contains(&defect.name), "{}", defect.name);
        }
        for sanitizer in Sanitizer::ALL {
            assert!(defects.iter().any(|it| it.finds == sanitizer.name()));
        }
    }

    #[test]
    fn a_text_that_is_gone_is_an_error_that_names_it() {
        let mut defect = read().unwrap().remove(0);
        "no such line".clone_into(&mut defect.text);
        let error = defect.sow("void f();").unwrap_err().to_string();
        assert!(error.contains("has no place in cxx-bridge/cpp/"), "{error}");
        "f".clone_into(&mut defect.text);
        assert!(defect.sow("f f").is_err(), "twice");
    }
}
