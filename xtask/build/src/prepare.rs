//! Everything before compiling, for fork wheels and plug-ins: tools, the verified official wheel, CUDA's headers,
//! the patched headers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::fetch::Base;
use crate::plan::Plan;
use crate::{compile, defaults, fetch, inputs, tree};
use xtask_patchkit::apply::{self, Headers};
use xtask_python::tools::{self, Tools};
use xtask_support::hash::Digest;
use xtask_support::paths;
use xtask_support::progress::{Progress, Step};
use xtask_support::scratch::Scratch;
use xtask_wheel::metadata::fork_version;
use xtask_wheel::platform::Floors;
use xtask_wheel::provenance::{Inputs, Provenance};
use xtask_wheel::verify::{Expected, Facts};

/// How many steps [`prepare`] reports.
pub const STEPS: usize = 5;

/// Ready to compile against.
pub struct Prepared {
    /// pip and patchelf.
    pub tools: Tools,
    /// The official wheel.
    pub base: Base,
    /// What was extracted from it.
    pub tree: PathBuf,
    /// Its facts.
    pub facts: Facts,
    /// The patched headers.
    pub headers: Headers,
    /// What the fork is made of.
    pub inputs: Inputs,
    /// `torch.__version__` of the fork without defaults, links and number, which the library says as its own.
    pub fork_version: String,
    /// CUDA's headers; the first folder has the libraries beside it.
    pub cuda: Vec<PathBuf>,
    /// The patched headers, laid out as in the wheel.
    pub overlay: PathBuf,
}

impl Prepared {
    /// `torch.__version__` of the fork.
    pub fn version(&self) -> String {
        let it = &self.inputs;
        defaults::version(&self.fork_version, it.build, &it.defaults, &it.links)
    }

    /// The provenance of a library that was compiled against this, with the patched `header`.
    pub fn provenance(&self, header: &str, library: &[u8], floors: &Floors) -> Provenance {
        let after = Digest::of(&self.headers[header]).hex();
        Provenance::of(
            (&self.version(), &self.facts.torch_version),
            self.inputs.clone(),
            (self.facts.header_sha256.clone(), after),
            library,
            floors,
        )
    }

    /// What is compiled needs no more than the official wheel promises. Returns its needs.
    pub fn require(&self, files: &[(&str, &[u8])]) -> Result<Floors> {
        let mut torch = Floors::default();
        for library in ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so"] {
            let path = self.tree.join("torch/lib").join(library);
            torch = torch.merge(&Floors::read(&path)?);
        }
        let mut needs = Floors::default();
        for (name, bytes) in files {
            let own = Floors::of(bytes).with_context(|| format!("reading the symbol versions of {name}"))?;
            own.require(name, &self.base.name.platform, &torch)?;
            needs = needs.merge(&own);
        }
        Ok(needs)
    }
}

/// Prepares everything, and reuses earlier results after a check. The caller holds the lock `build`, since all
/// builds share one overlay.
pub fn prepare(plan: &Plan, progress: &Progress) -> Result<Prepared> {
    let (compilers, tools) = progress
        .step("check the compilers and tools", |_| Ok((compile::compilers()?, tools::ensure(&plan.python)?)))?;
    let base = progress.step("get the official wheel", |step| base(plan, &tools, step))?;
    let expected = Expected {
        name: &base.name,
        release: &plan.release.version,
        header: &plan.header,
        header_sha256: &plan.release.header_sha256,
        cache: &plan.cache,
    };
    let (tree, facts) = progress.step("verify it", |step| tree::ensure(&plan.cache, &base, &expected, step))?;
    let pinned = plan.versions.cuda(&facts.cuda)?;
    let cuda = progress.step("get CUDA's headers", |step| tree::ensure_cuda(&plan.cache, pinned, &tools, step))?;
    // Its path must not change, or cargo would recompile.
    let overlay = paths::target().join("wheel/overlay");
    let headers = progress.step("apply the series", |_| {
        let headers = apply::to_headers(&plan.series, &tree, &plan.header, &plan.release)?;
        lay_over(&overlay, &headers)?;
        Ok(headers)
    })?;
    let inputs = inputs::gather(plan, &base, pinned, &compilers, &tools)?;
    let fork_version = fork_version(&facts.torch_version, &inputs.pinbuddy);
    Ok(Prepared { tools, base, tree, facts, headers, inputs, fork_version, cuda, overlay })
}

/// Gets the official wheel.
fn base(plan: &Plan, tools: &Tools, step: &Step) -> Result<Base> {
    match &plan.base {
        Some(path) if plan.given => {
            let (path, name) = fetch::at_hand(path, &plan.python)?;
            step.say("hashing");
            Base::of(path, name)
        }
        _ => fetch::official(plan, tools, step),
    }
}

/// Writes the patched headers, touching only what changed.
fn lay_over(overlay: &Path, headers: &Headers) -> Result<()> {
    let same = headers.iter().all(|(name, bytes)| fs::read(overlay.join(name)).is_ok_and(|present| present == *bytes));
    let mut present = BTreeMap::new();
    inputs::collect(overlay, "torch", &mut present)?;
    if same && present.len() == headers.len() {
        return Ok(());
    }
    let scratch = Scratch::folder(overlay)?;
    for (name, bytes) in headers {
        let file = scratch.path().join(name);
        fs::create_dir_all(file.parent().unwrap_or(scratch.path()))?;
        fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    }
    scratch.publish(overlay)
}
