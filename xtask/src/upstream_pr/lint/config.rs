//! What a tree's .lintrunner.toml says: which linter looks at which files, and what it needs to run.
//!
//! Runs nothing. Patterns mean what they mean to lintrunner: `*` stays within a folder.

use anyhow::{Context, Result};
use glob::{MatchOptions, Pattern};
use serde::Deserialize;

/// Where the configuration is in the tree.
pub const FILE: &str = ".lintrunner.toml";
/// Where the tree's own linters are.
pub const ADAPTERS: &str = "tools/linter/adapters/";
/// What stands for the list of files in a command.
pub const PATHS: &str = "@{{PATHSFILE}}";

#[derive(Debug, Deserialize)]
struct Config {
    linter: Vec<Linter>,
}

/// One linter.
#[derive(Clone, Debug, Deserialize)]
pub struct Linter {
    /// Its name.
    pub code: String,
    include_patterns: Vec<String>,
    #[serde(default)]
    exclude_patterns: Vec<String>,
    /// Run in the tree's root.
    pub command: Vec<String>,
    #[serde(default)]
    init_command: Vec<String>,
}

/// What a linter needs besides the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Python.
    Nothing,
    /// These packages from PyPI.
    Packages(Vec<String>),
    /// A clang-format.
    ClangFormat,
    /// What cannot be had here, and why.
    Other(String),
}

/// Reads a configuration.
pub fn parse(text: &str) -> Result<Vec<Linter>> {
    let config: Config =
        toml::from_str(text).with_context(|| format!("reading the tree's {FILE}"))?;
    Ok(config.linter)
}

impl Linter {
    /// Those of the files that it looks at.
    pub fn matching(&self, files: &[String]) -> Result<Vec<String>> {
        let compile = |patterns: &[String]| {
            let all = patterns.iter().map(|it| Pattern::new(it));
            let all: Result<Vec<_>, _> = all.collect();
            all.with_context(|| format!("in the patterns of {}", self.code))
        };
        let (include, exclude) = (
            compile(&self.include_patterns)?,
            compile(&self.exclude_patterns)?,
        );
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        let any = |patterns: &[Pattern], file: &str| {
            patterns.iter().any(|it| it.matches_with(file, options))
        };
        let files = files
            .iter()
            .filter(|it| any(&include, it) && !any(&exclude, it));
        Ok(files.cloned().collect())
    }

    /// What it takes to run it.
    pub fn needs(&self) -> Needs {
        let own = self
            .command
            .get(1)
            .is_some_and(|it| it.starts_with(ADAPTERS));
        if self.command.first().is_none_or(|it| it != "python3") || !own {
            return Needs::Other(format!("it runs {}", self.command.join(" ")));
        }
        if !self.command.iter().any(|it| it == PATHS) {
            return Needs::Other("it looks at no single files".to_owned());
        }
        let Some(init) = self.init_command.get(1) else {
            return Needs::Nothing;
        };
        let arguments = &self.init_command[2..];
        if init.ends_with("/pip_init.py") {
            let packages = arguments.iter().filter(|it| !it.starts_with('-'));
            return Needs::Packages(packages.cloned().collect());
        }
        let binary = arguments.iter().find_map(|it| it.strip_prefix("--linter="));
        match binary {
            Some("clang-format") => Needs::ClangFormat,
            Some(other) => Needs::Other(format!(
                "it needs a binary of {other} that only lintrunner init fetches"
            )),
            None => Needs::Other(format!("it needs {init}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"
merge_base_with = "origin/main"
[[linter]]
code = "A"
include_patterns = ["aten/*.h", "c10/**/*.h"]
exclude_patterns = ["c10/x/**"]
command = ["python3", "tools/linter/adapters/a.py", "--", "@{{PATHSFILE}}"]
init_command = ["python3", "tools/linter/adapters/pip_init.py", "--dry-run={{DRYRUN}}", "b==1", "c==2"]
[[linter]]
code = "TIDY"
include_patterns = ["**"]
command = ["python3", "tools/linter/adapters/a.py", "@{{PATHSFILE}}"]
init_command = ["python3", "tools/linter/adapters/s3_init.py", "--linter=clang-tidy"]
is_formatter = true
[[linter]]
code = "SELF"
include_patterns = ["**"]
command = ["python3", "tools/linter/adapters/version.py"]
"#;

    #[test]
    fn files_and_needs() {
        let linters = parse(CONFIG).unwrap();
        let files = ["aten/a.h", "aten/src/b.h", "c10/c.h", "c10/x/d.h", "e.cpp"];
        let files = files.map(str::to_owned);
        assert_eq!(
            linters[0].matching(&files).unwrap(),
            ["aten/a.h", "c10/c.h"]
        );
        assert_eq!(linters[1].matching(&files).unwrap().len(), 5);
        let packages = vec!["b==1".to_owned(), "c==2".to_owned()];
        assert_eq!(linters[0].needs(), Needs::Packages(packages));
        assert!(matches!(linters[1].needs(), Needs::Other(it) if it.contains("clang-tidy")));
        assert!(matches!(linters[2].needs(), Needs::Other(it) if it.contains("no single files")));
        assert!(parse("[[linter]]\n").is_err());
    }
}
