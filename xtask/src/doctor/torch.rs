//! The torch that an interpreter would import, and whether it is the fork. Nothing of it is run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use super::finding::Finding;
use crate::build_wheel::compile::LIBRARY;
use crate::wheel::metadata::TorchVersion;

/// What the probe prints. Not `-I`: a program sees the user's site and PYTHONPATH too, but the
/// folder that we happen to be called in is no place to look.
const PROBE: &str = "
import sys
sys.path = [it for it in sys.path if it]
import importlib.metadata, importlib.util, json
def folder(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    return list(spec.submodule_search_locations or [''])[0] if spec else None
def version(*names):
    for name in names:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
print(json.dumps({
    'torch': folder('torch'),
    'runtime': version('nvidia-cuda-runtime', 'nvidia-cuda-runtime-cu12'),
    'pip': [it for it in ('venv', 'ensurepip', 'pip') if folder(it) is not None],
}))
";

/// What an interpreter finds.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Found {
    /// Where torch is.
    torch: Option<PathBuf>,
    /// The CUDA runtime from PyPI: `13.2.86`.
    pub runtime: Option<String>,
    /// Of `venv`, `ensurepip` and `pip`, what is there.
    pub pip: Vec<String>,
}

/// An installed torch.
#[derive(Debug, Serialize)]
pub struct Torch {
    /// `2.15.0+cu132`; none where it does not say.
    pub version: Option<String>,
    /// The CUDA that it was built for.
    pub cuda: Option<String>,
    /// Whether our library is in it.
    pub library: bool,
    /// Where it is.
    pub folder: PathBuf,
}

impl Found {
    /// Asks an interpreter.
    pub fn ask(python: &Path) -> Result<Self> {
        let shell = Shell::new()?;
        let answer = cmd!(shell, "{python} -c {PROBE}")
            .quiet()
            .ignore_stderr()
            .read()
            .with_context(|| format!("asking {} what is installed", python.display()))?;
        // A site can print what it likes before us.
        let last = answer.lines().last().unwrap_or_default();
        serde_json::from_str(last).context("what the interpreter printed")
    }

    /// The torch that it found.
    pub fn torch(&self) -> Option<Torch> {
        let folder = self.torch.clone()?;
        let text = fs::read_to_string(folder.join("version.py")).unwrap_or_default();
        let says = TorchVersion::parse(&text).ok();
        Some(Torch {
            version: says.as_ref().map(|it| it.version.clone()),
            cuda: says.and_then(|it| it.cuda),
            library: folder.join("lib").join(LIBRARY).is_file(),
            folder,
        })
    }
}

impl Torch {
    /// One line for what an interpreter has; `python` as the user named it.
    pub fn finding(torch: Option<&Self>, python: &str) -> Finding {
        let name = "torch";
        let ours = concat!("pinbuddy.", env!("CARGO_PKG_VERSION"));
        let build = "cargo xtask build-wheel";
        let install = format!("{python} -m pip install dist/torch-*.whl");
        let Some(torch) = torch else {
            return Finding::note(name, format!("none for {python}"))
                .run(format!("{build} && {install}"));
        };
        let Some(version) = &torch.version else {
            return Finding::missing(name, format!("{} is not whole", torch.folder.display()))
                .run(format!("{build} && {install} --force-reinstall"));
        };
        let value = |what: &str| format!("{version}, {what}, in {}", torch.folder.display());
        match (version.contains("pinbuddy"), torch.library) {
            (true, true) if version.ends_with(ours) => Finding::ok(name, value("the fork")),
            (true, true) => Finding::note(name, value("a fork of another release of ours"))
                .run(format!("{build} && {install}")),
            (false, false) => {
                Finding::note(name, value("stock")).run(format!("{build} && {install}"))
            }
            _ => Finding::missing(name, value("half a fork"))
                .run(format!("{build} && {install} --force-reinstall")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    fn installed(version: &str, library: bool) -> Finding {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("version.py"), version).unwrap();
        if library {
            fs::write(folder.path().join("lib").join(LIBRARY), "").unwrap();
        }
        let found = Found {
            torch: Some(folder.path().into()),
            ..Found::default()
        };
        Torch::finding(found.torch().as_ref(), "python3")
    }

    #[test]
    fn stock_fork_and_neither() {
        let fork = format!(
            "__version__ = '2.15.0+cu132.pinbuddy.{}'\n",
            env!("CARGO_PKG_VERSION")
        );
        let old = "__version__ = '2.15.0+cu132.pinbuddy.0.0.1'\n";
        let stock = "__version__ = '2.15.0+cu132'\ncuda: Optional[str] = '13.2'\n";
        for (version, library, status, what) in [
            (fork.as_str(), true, Status::Ok, "the fork"),
            (fork.as_str(), false, Status::Missing, "half a fork"),
            (old, true, Status::Note, "another release"),
            (stock, false, Status::Note, "stock"),
            (stock, true, Status::Missing, "half a fork"),
            ("", false, Status::Missing, "not whole"),
        ] {
            let finding = installed(version, library);
            assert_eq!(finding.status, status, "{version}");
            assert!(finding.value.contains(what), "{}", finding.value);
        }
    }
}
