//! The torch that an interpreter would import, and whether it is the fork. Does not import it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use xshell::{Shell, cmd};

use super::finding::Finding;
use crate::build_wheel::compile::LIBRARY;
use crate::wheel::metadata::TorchVersion;

/// The probe's output. Not with `-I`, since programs also see the user's site-packages and PYTHONPATH; the current
/// folder is not searched.
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
    'plugin': version('pinbuddy'),
    'pip': [it for it in ('venv', 'ensurepip', 'pip') if folder(it) is not None],
}))
";

#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Found {
    /// Where torch is.
    torch: Option<PathBuf>,
    /// The CUDA runtime from PyPI: `13.2.86`.
    pub runtime: Option<String>,
    /// The plug-in's version, where pip has installed it.
    pub plugin: Option<String>,
    /// The available ones of `venv`, `ensurepip` and `pip`.
    pub pip: Vec<String>,
}

/// An installed torch.
#[derive(Debug, Serialize)]
pub struct Torch {
    /// `2.15.0+cu132`, if known.
    pub version: Option<String>,
    /// The CUDA that it was built for.
    pub cuda: Option<String>,
    /// Whether it contains our library.
    pub library: bool,
    /// The version of the plug-in beside it.
    pub plugin: Option<String>,
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
        // site-packages may print before the probe.
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
            plugin: self.plugin.clone(),
            folder,
        })
    }
}

impl Torch {
    /// Judges what an interpreter has; `python` as the user named it.
    pub fn findings(torch: Option<&Self>, python: &str) -> Vec<Finding> {
        let mut findings = vec![Self::finding(torch, python)];
        let stock = torch.filter(|it| !it.library && it.plugin.is_none());
        let version = stock.and_then(|it| it.version.as_deref());
        if version.is_some_and(overflows) {
            let value = format!(
                "stock overflows its heap where pinned_max_round_threshold_mb is below \
                 pinned_max_cached_size_mb ({}); not through pinbuddy",
                OVERFLOWING.join(", ")
            );
            let fork =
                format!("cargo xtask build-wheel && {python} -m pip install dist/torch-*.whl");
            findings.push(Finding::note("pytorch#192722", value).run(fork));
        }
        findings
    }

    fn finding(torch: Option<&Self>, python: &str) -> Finding {
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
            // Both contain the Python package; the later one has overwritten it.
            (true, true) if torch.plugin.is_some() => Finding::note(
                name,
                value("the fork, and the plug-in beside it"),
            )
            .run(format!(
                "{python} -m pip uninstall --yes pinbuddy && {install} --force-reinstall --no-deps"
            )),
            (true, true) if version.ends_with(ours) => Finding::ok(name, value("the fork")),
            (true, true) => Finding::note(name, value("a fork of another release of ours"))
                .run(format!("{build} && {install}")),
            (false, false) if torch.plugin.is_some() => {
                let plugin = torch.plugin.as_deref().unwrap_or_default();
                Finding::note(name, value(&format!("stock with the plug-in {plugin}")))
                    .run(format!("{python} -m pinbuddy doctor  # whether it fits"))
            }
            (false, false) => {
                Finding::note(name, value("stock")).run(format!("{build} && {install}"))
            }
            _ => Finding::missing(name, value("half a fork"))
                .run(format!("{build} && {install} --force-reinstall")),
        }
    }
}

/// Releases in which a cached block may be shorter than its request (pytorch/pytorch#192722), with their patch releases: later
/// releases compare, earlier ones round all sizes.
const OVERFLOWING: [&str; 1] = ["2.13"];

fn overflows(version: &str) -> bool {
    let minor = |it: &&str| {
        let rest = version.strip_prefix(*it);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+']))
    };
    OVERFLOWING.iter().any(minor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    fn installed(version: &str, library: bool) -> Finding {
        beside(version, library, None).swap_remove(0)
    }

    fn beside(version: &str, library: bool, plugin: Option<&str>) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("lib")).unwrap();
        fs::write(folder.path().join("version.py"), version).unwrap();
        if library {
            fs::write(folder.path().join("lib").join(LIBRARY), "").unwrap();
        }
        let found = Found {
            torch: Some(folder.path().into()),
            plugin: plugin.map(str::to_owned),
            ..Found::default()
        };
        Torch::findings(found.torch().as_ref(), "python3")
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

    #[test]
    fn a_fork_and_the_plug_in_in_one_environment() {
        let fork = concat!(
            "__version__ = '2.15.0+cu132.pinbuddy.",
            env!("CARGO_PKG_VERSION"),
            "'\n"
        );
        let both = beside(fork, true, Some("0.1.0")).swap_remove(0);
        assert_eq!(both.status, Status::Note);
        assert!(both.value.contains("the fork, and the plug-in beside it"));
        assert_eq!(
            both.fixes[0].command,
            "python3 -m pip uninstall --yes pinbuddy && python3 -m pip install dist/torch-*.whl \
             --force-reinstall --no-deps"
        );
        let stock = "__version__ = '2.15.0+cu132'\n";
        let plugin = beside(stock, false, Some("0.1.0")).swap_remove(0);
        assert!(
            plugin.value.contains("stock with the plug-in 0.1.0"),
            "{}",
            plugin.value
        );
    }

    #[test]
    fn stocks_overflow_is_named_where_stock_serves() {
        for (version, library, plugin, named) in [
            ("2.13.0+cu130", false, None, true),
            ("2.13.0+cu130", false, Some("0.1.0"), false),
            ("2.13.0+cu130.pinbuddy.0.1.0", true, None, false),
            ("2.13.1+cu130", false, None, true),
            ("2.14.0+cu130", false, None, false),
            ("2.12.1+cu130", false, None, false),
            ("2.1.0", false, None, false),
        ] {
            let text = format!("__version__ = '{version}'\n");
            let findings = beside(&text, library, plugin);
            let overflow = findings.iter().find(|it| it.name == "pytorch#192722");
            assert_eq!(overflow.is_some(), named, "{version}");
            assert!(overflow.is_none_or(|it| it.value.contains("(2.13)")));
        }
    }

    #[test]
    fn the_library_and_the_python_package_mean_the_same_releases() {
        let quoted = OVERFLOWING.map(|it| format!("\"{it}\"")).join(", ");
        let python = include_str!("../../../cxx-bridge/python/pinbuddy/_doctor.py");
        assert!(python.contains(&format!("_OVERFLOWING = ({quoted},)\n")));
        let [minor] = OVERFLOWING.map(|it| it.strip_prefix("2.").unwrap().parse::<u32>().unwrap());
        let next = minor + 1;
        let defined = format!(
            "#define PINBUDDY_IGNORES_SIZES (PINBUDDY_TORCH_FROM({minor}) && !PINBUDDY_TORCH_FROM({next}))\n"
        );
        assert!(include_str!("../../../cxx-bridge/cpp/upstream.h").contains(&defined));
    }
}
