//! What `build-wheel` needs: an interpreter that torch has wheels for, compilers, room on the disk.

use std::path::Path;

use serde::Serialize;

use super::finding::Finding;
use super::room::Disk;
use super::setting::Setting;
use super::torch::Found;
use crate::build_wheel::compile::{TOOLS, Tool};
use crate::build_wheel::fetch;
use crate::python::Python;
use crate::support::paths;
use xtask_patchkit::release::{Release, Versions};

/// The first release of g++ that knows `-std=c++20`.
const OLDEST_COMPILER: u32 = 10;
/// What was found.
#[derive(Debug, Serialize)]
pub struct Building {
    /// The interpreter for the wheel.
    pub python: Interpreter,
    /// The programs for compiling.
    pub programs: Vec<Program>,
    /// Whether the official wheel is in the cache.
    pub fetched: bool,
    /// The file systems that it writes to, with their free space.
    pub disks: Vec<Disk>,
}

/// An interpreter.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "state")]
pub enum Interpreter {
    /// Torch has wheels for it.
    Fits {
        /// Version, tags and system.
        what: String,
    },
    /// No interpreter of this name.
    Absent {
        /// In a line.
        why: String,
    },
    /// Torch has no wheels for it, or it does not run.
    Refused {
        /// In a line.
        why: String,
    },
}

/// A program on the PATH.
#[derive(Debug, Serialize)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its version line; none if it is missing.
    pub version: Option<String>,
}

impl Building {
    /// Looks at everything; `wanted` is the default release.
    pub fn look(interpreter: &Path, wanted: Option<(&Versions, &Release)>) -> Self {
        let release = wanted.map(|(_, release)| release);
        let probed = Python::probe(interpreter).and_then(|python| {
            if let Some((versions, release)) = wanted {
                crate::build_wheel::release::check_python(versions, release, &python)?;
            }
            Ok(python)
        });
        let cache = paths::cache();
        let cached = match (&probed, release) {
            (Ok(python), Some(release)) => fetch::cached(&cache, release, python),
            _ => None,
        };
        let fetched = cached.is_some();
        let python = match probed {
            Ok(python) => Interpreter::Fits {
                what: python.describe(),
            },
            Err(error) => {
                let text = error.to_string();
                let why = text.lines().next().unwrap_or_default().to_owned();
                match why.starts_with("there is no") {
                    true => Interpreter::Absent { why },
                    false => Interpreter::Refused { why },
                }
            }
        };
        Self {
            python,
            programs: TOOLS.map(Program::look).into(),
            fetched,
            disks: Disk::look(cache, fetched),
        }
    }

    /// Judges everything; `found` is what the interpreter has installed.
    pub fn findings(
        &self,
        setting: Setting,
        found: Option<&Found>,
        interpreter: &str,
    ) -> Vec<Finding> {
        let mut findings = vec![self.interpreter(setting)];
        if let Some(found) = found {
            findings.push(environments(found, setting, interpreter));
        }
        for program in &self.programs {
            findings.extend(program.finding(setting));
        }
        let wheel = match self.fetched {
            true => "in the cache",
            false => "will be fetched by pip",
        };
        findings.push(Finding::ok("torch wheel", wheel));
        findings.extend(self.disks.iter().map(Disk::finding));
        findings
    }

    fn interpreter(&self, setting: Setting) -> Finding {
        let name = "python";
        match &self.python {
            Interpreter::Fits { what } => Finding::ok(name, what),
            Interpreter::Absent { why } => {
                Finding::missing(name, why).root(setting.install("python3 python3-venv", "python3"))
            }
            Interpreter::Refused { why } => {
                Finding::missing(name, why).run("cargo xtask doctor --python PY  # another one")
            }
        }
    }
}

/// Whether a virtual environment with pip can be made.
fn environments(found: &Found, setting: Setting, interpreter: &str) -> Finding {
    let has = |name: &str| found.pip.iter().any(|it| it == name);
    if has("venv") && (has("ensurepip") || has("pip")) {
        return Finding::ok("venv, pip", "there");
    }
    Finding::missing("venv, pip", format!("{interpreter} has only one, or none"))
        .root(setting.install("python3-venv", "python3-pip"))
}

impl Program {
    /// Runs `PROGRAM --version`.
    pub fn look(tool: Tool) -> Self {
        Self {
            name: tool.name,
            version: tool.version(),
        }
    }

    /// Judges one program; none if nothing needs it.
    pub fn finding(&self, setting: Setting) -> Option<Finding> {
        let tool = TOOLS.into_iter().find(|it| it.name == self.name)?;
        let install = setting.install(tool.apt, tool.dnf);
        let Some(version) = &self.version else {
            return Some(Finding::missing(tool.name, "not on the PATH").root(install));
        };
        if tool.name == "g++" && major(version).is_some_and(|it| it < OLDEST_COMPILER) {
            let value = format!("{version}, older than -std=c++20 ({OLDEST_COMPILER})");
            return Some(Finding::missing(tool.name, value).root(install));
        }
        // `git version 2.47.3`, beside its name.
        let version = version.trim_start_matches(tool.name).trim();
        Some(Finding::ok(
            tool.name,
            version.trim_start_matches("version "),
        ))
    }
}

/// The version in `g++ (Debian 12.2.0-14) 12.2.0`: after the packager's text.
fn major(version: &str) -> Option<u32> {
    let (_, after) = version.split_once(") ")?;
    after.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The doctor must not call ready what `build-wheel` refuses before it fetches anything.
    #[test]
    fn a_python_that_the_newest_release_has_no_wheel_for_is_missing() {
        let versions = Versions::read(paths::root()).unwrap();
        let mut release = versions.find(None).unwrap().clone();
        let python = Path::new("python3");
        let looked = |release: &Release| Building::look(python, Some((&versions, release))).python;
        release.pythons = vec![Python::probe(python).unwrap().short()];
        assert!(matches!(looked(&release), Interpreter::Fits { .. }));
        release.pythons = vec!["3.99".to_owned()];
        let Interpreter::Refused { why } = looked(&release) else {
            panic!("it fits");
        };
        assert!(why.contains("has no official wheel for Python"), "{why}");
    }

    #[test]
    fn compilers_of_all_kinds() {
        assert_eq!(major("g++ (Debian 12.2.0-14) 12.2.0"), Some(12));
        let red_hat = "g++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-20)";
        assert_eq!(major(red_hat), Some(8));
        assert_eq!(major("clang version 18"), None, "unknown is not refused");
        assert_eq!(major("g++ (Ubuntu 9.4.0-1ubuntu1~20.04) 9.4.0"), Some(9));
    }
}
