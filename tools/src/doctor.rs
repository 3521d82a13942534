//! `doctor`: what this machine offers for pinned memory, with a command for each possible improvement.
//!
//! Two independent steps. Looking: each subject's `read` takes files below a root, and the driver is asked. Judging: each
//! subject's `finding` or `findings` turns the facts into lines, without side effects, so that tests can judge invented
//! machines. Invariant: changes nothing on the machine.
//!
//! The torch of an environment, and whether pinbuddy is in place in it, are what the Python package looks at; it prints
//! this above.

#[allow(unsafe_code, reason = "CUDA's driver is a C library")]
mod driver;
mod finding;
mod gpu;
mod kernel;
mod memory;
mod numa;
mod pages;
mod report;
mod setting;
mod shared;
#[cfg(test)]
mod tests;
mod transparent;

use std::env;
use std::io::{IsTerminal as _, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use pinbuddy_machine::Files;
use serde::Serialize;

use crate::{cli, output};
pub use driver::CudaVersion;
use driver::Driver;
use gpu::Gpus;
use kernel::Kernel;
use memory::Memory;
use pages::HugePages;
use report::Report;
use setting::Setting;
use shared::Shared;
use transparent::Transparent;

/// The command.
///
/// # Errors
///
/// Standard output cannot be written.
pub fn run(args: &cli::Doctor) -> Result<ExitCode> {
    let machine = Machine::read(Path::new("/"), Asked::here(args.cuda));
    let report = machine.report();
    let text = if args.json {
        machine.json(&report)? + "\n"
    } else {
        let colours = stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
        report.display(colours).to_string()
    };
    output::print(&text)?;
    Ok(output::ends(report.ready))
}

/// Facts that are not in files below a root.
struct Asked {
    driver: Driver,
    simulated: Option<u32>,
    needed: Option<CudaVersion>,
}

impl Asked {
    /// Asks this machine.
    fn here(needed: Option<CudaVersion>) -> Self {
        let simulated = env::var("PINBUDDY_SIM_DEVICES");
        Self { driver: Driver::ask(), simulated: simulated.ok().and_then(|it| it.parse().ok()), needed }
    }
}

/// All facts.
#[derive(Serialize)]
struct Machine {
    setting: Setting,
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
        let gpus = Gpus::read(files, asked.driver, asked.simulated);
        Self {
            setting: Setting::read(files),
            needed_cuda: asked.needed,
            memory: Memory::read(files, gpus.share_memory()),
            gpus,
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
        let nodes = self.nodes.len();
        let transparent = self.transparent.usable();
        let mut pages = vec![self.kernel.finding(setting)];
        pages.extend(self.huge_pages.findings(&self.memory, setting, transparent));
        pages.push(self.transparent.finding(setting));
        pages.push(self.shared.finding(setting, &self.kernel, transparent));
        let gpus = self.gpus.findings(setting, self.needed_cuda, nodes);
        Report::new(vec![
            ("GPU", gpus),
            ("Memory", self.memory.findings(setting, self.gpus.count())),
            ("Pages", pages),
            ("NUMA", numa::findings(&self.nodes, &self.gpus)),
        ])
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
