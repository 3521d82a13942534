//! A virtual environment with torch that sees a GPU, and the paths of its parts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::python::environment::clear_settings;
use crate::runtime::Runtime;
use crate::support::refusal::refuse;
use crate::support::stamp::Inputs;

/// Asks torch itself, also whether it sees a GPU: without one, upstream's C++ tests would pass by doing nothing.
const PROBE: &str = "
import glob, json, pathlib, torch
folder = pathlib.Path(torch.__file__).parent
major = (torch.version.cuda or '').split('.')[0]
runtimes = sorted(glob.glob(str(folder.parent / 'nvidia' / '*' / 'lib' / f'libcudart.so.{major}')))
print(json.dumps({
    'version': torch.__version__,
    'torch': str(folder),
    'cuda': torch.version.cuda or '',
    'include': sorted(glob.glob(str(folder.parent / 'nvidia' / '*' / 'include'))),
    'cuda_runtime': runtimes[0] if runtimes else '',
    'available': torch.cuda.is_available(),
}))
";

#[derive(Clone, Debug)]
pub struct Environment {
    /// For messages: `the official wheel`, `the fork`.
    pub name: &'static str,
    /// Its interpreter.
    pub python: PathBuf,
    /// `torch.__version__`.
    pub version: String,
    /// The package's folder.
    pub torch: PathBuf,
    /// `13.2`.
    pub cuda: String,
    /// The header folders of the CUDA packages that came with torch.
    pub include: Vec<PathBuf>,
    /// libcudart.so.
    pub cuda_runtime: PathBuf,
}

#[derive(Deserialize)]
struct Answer {
    version: String,
    torch: PathBuf,
    cuda: String,
    include: Vec<PathBuf>,
    cuda_runtime: PathBuf,
    available: bool,
}

impl Environment {
    /// Inspects a virtual environment.
    pub fn probe(name: &'static str, folder: &Path, runtime: &Runtime) -> Result<Self> {
        let python = folder.join("bin/python");
        let mut command = runtime.command(&python)?;
        clear_settings(&mut command);
        // The probe must not warm up.
        let output = command
            .args(["-c", PROBE])
            .env("BUDDY_DISABLE", "1")
            .output();
        let output = output.with_context(|| format!("running {}", python.display()))?;
        let answer: Option<Answer> = serde_json::from_slice(&output.stdout).ok();
        let Some(answer) = answer.filter(|it| it.available) else {
            let sim = if runtime.is_real() {
                ""
            } else {
                "cargo xtask sim -- "
            };
            return Err(refuse(format!("{name} sees no GPU {}", runtime.place()))
                .found(String::from_utf8_lossy(&output.stderr).trim())
                .expected("torch.cuda.is_available()")
                .remedy(format!(
                    "{sim}{} -c 'import torch; torch.cuda.init()'",
                    python.display()
                ))
                .into());
        };
        anyhow::ensure!(
            answer.cuda_runtime.is_file(),
            "{} has no libcudart beside it (nvidia/*/lib)",
            answer.torch.display()
        );
        let Answer {
            version,
            torch,
            cuda,
            include,
            cuda_runtime,
            ..
        } = answer;
        Ok(Self {
            name,
            python,
            version,
            torch,
            cuda,
            include,
            cuda_runtime,
        })
    }
}

impl Environment {
    /// The inputs of compiling against it: its release, and the header that differs between forks and releases.
    pub fn inputs(&self) -> Result<Inputs> {
        Inputs::default()
            .text(&self.torch.display().to_string())?
            .file(&self.torch.join("version.py"))?
            .file(&self.torch.join("include/ATen/core/CachingHostAllocator.h"))
    }
}
