//! `cargo xtask doctor`: says what this machine offers, with a command for each possible improvement.
//!
//! Two independent steps. Looking: each subject's `read` takes files below a root; the driver, the interpreter and
//! the build programs are asked directly. Judging: each subject's `finding` or `findings` turns the facts into
//! lines, without side effects, so that tests can judge invented machines. Invariant: changes nothing on the
//! machine.

pub mod building;
mod driver;
pub mod finding;
mod gpu;
mod kernel;
pub mod memory;
mod numa;
mod pages;
pub mod report;
mod room;
pub mod setting;
mod shared;
mod size;
#[cfg(test)]
mod tests;
mod torch;
mod transparent;

use std::env;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::cli;
use crate::support::paths;
use crate::support::refusal::refuse;
use building::Building;
use driver::{CudaVersion, Driver};
use finding::{Finding, Status};
use gpu::Gpus;
use kernel::Kernel;
use memory::Memory;
use pages::HugePages;
use pinbuddy_machine::Files;
use report::Report;
use setting::Setting;
use shared::Shared;
use torch::{Found, Torch};
use transparent::Transparent;
use xtask_patchkit::release::Versions;

pub fn run(args: &cli::Doctor) -> Result<()> {
    let machine = Machine::read(Path::new("/"), Asked::here(&args.python));
    let report = machine.report();
    let mut out = std::io::stdout();
    let text = if args.json {
        machine.json(&report)? + "\n"
    } else {
        let colours = out.is_terminal() && env::var_os("NO_COLOR").is_none();
        report.display(colours).to_string()
    };
    // A reader such as `head` may close the pipe early.
    let _ = out.write_all(text.as_bytes());
    if report.ready && args.gpu {
        return machine.require_gpu();
    }
    if report.ready {
        return Ok(());
    }
    Err(refuse("this machine is not ready")
        .remedy("run the command below each line that says missing")
        .into())
}

/// Refuses a machine without a usable GPU, with the report's reason.
pub fn require_gpu(python: &Path) -> Result<()> {
    Machine::read(Path::new("/"), Asked::here(python)).require_gpu()
}

/// Facts that are not in files below a root.
struct Asked {
    python: String,
    driver: Driver,
    runtime: Option<CudaVersion>,
    simulated: Option<u32>,
    installed: Option<Found>,
    building: Building,
    needed: Option<CudaVersion>,
}

impl Asked {
    /// Asks this machine.
    fn here(python: &Path) -> Self {
        let versions = Versions::read(paths::root()).ok();
        let release = versions.as_ref().and_then(|it| it.find(None).ok());
        let cuda = versions.as_ref().map(|it| it.cuda.keys());
        Self {
            python: python.display().to_string(),
            driver: Driver::ask(),
            runtime: driver::runtime(),
            simulated: env::var("PINBUDDY_SIM_DEVICES")
                .ok()
                .and_then(|it| it.parse().ok()),
            installed: Found::ask(python).ok(),
            building: Building::look(python, versions.as_ref().zip(release)),
            needed: cuda.and_then(|it| it.filter_map(|text| CudaVersion::parse(text)).max()),
        }
    }
}

/// All facts.
#[derive(Serialize)]
struct Machine {
    setting: Setting,
    building: Building,
    python: String,
    installed: Option<Found>,
    torch: Option<Torch>,
    gpus: Gpus,
    needed_cuda: Option<CudaVersion>,
    memory: Memory,
    kernel: Kernel,
    huge_pages: HugePages,
    transparent: Transparent,
    shared: Shared,
    nodes: Vec<pinbuddy_machine::Node>,
}

impl Machine {
    /// Reads the files below `root` and adds `asked`.
    fn read(root: &Path, asked: Asked) -> Self {
        let files = &Files::below(root);
        Self {
            setting: Setting::read(files),
            building: asked.building,
            python: asked.python,
            torch: asked.installed.as_ref().and_then(Found::torch),
            installed: asked.installed,
            gpus: Gpus::read(files, asked.driver, asked.runtime, asked.simulated),
            needed_cuda: asked.needed,
            memory: Memory::read(files),
            kernel: Kernel::read(files),
            huge_pages: HugePages::read(files),
            transparent: Transparent::read(files),
            shared: Shared::read(files),
            nodes: pinbuddy_machine::nodes(files),
        }
    }

    /// Judges the facts.
    fn report(&self) -> Report {
        let setting = self.setting;
        let found = self.installed.as_ref();
        let runtime = found.and_then(|it| it.runtime.as_deref());
        let nodes = self.nodes.len();
        let transparent = self.transparent.usable();
        let mut pages = vec![self.kernel.finding(setting)];
        pages.extend(self.huge_pages.findings(&self.memory, setting, transparent));
        pages.push(self.transparent.finding(setting));
        pages.push(self.shared.finding(setting, &self.kernel, transparent));
        let torch = found.map(|_| Torch::findings(self.torch.as_ref(), &self.python));
        Report::new(vec![
            (
                "Building",
                self.building.findings(setting, found, &self.python),
            ),
            ("PyTorch", torch.unwrap_or_default()),
            (
                "GPU",
                self.gpus
                    .findings(setting, self.needed_cuda, runtime, nodes),
            ),
            ("Memory", self.memory.findings(setting, self.gpus.count())),
            ("Pages", pages),
            ("NUMA", numa::findings(&self.nodes, &self.gpus)),
        ])
    }

    fn require_gpu(&self) -> Result<()> {
        let runtime = self.installed.as_ref().and_then(|it| it.runtime.as_deref());
        let findings =
            self.gpus
                .findings(self.setting, self.needed_cuda, runtime, self.nodes.len());
        let real = self.gpus.simulated.is_none() && self.gpus.count() > 0;
        let usable = findings.iter().all(|it| it.status != Status::Missing);
        if real && usable {
            return Ok(());
        }
        let said = |it: &Finding| format!("{}: {}", it.name, it.value);
        let missing = findings.iter().find(|it| it.status == Status::Missing);
        let found = missing.or(findings.first());
        Err(refuse("there is no GPU that programs can use here")
            .found(found.map_or_else(String::new, said))
            .expected("an NVIDIA driver that serves torch's CUDA, and a GPU, not the simulator's")
            .remedy(
                "cargo xtask doctor, for what is missing; without --real the simulator stands in for one",
            )
            .into())
    }

    /// The report, and the facts that it was made from.
    fn json(&self, report: &Report) -> Result<String> {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            report: &'a Report,
            machine: &'a Machine,
        }
        let machine = self;
        Ok(serde_json::to_string_pretty(&Document { report, machine })?)
    }
}
