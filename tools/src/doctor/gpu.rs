//! GPUs and their driver: the kernel's view (PCI, the loaded module) and the driver's.

use serde::Serialize;

use super::driver::{CudaVersion, Driver};
use super::finding::Finding;
use super::setting::Setting;
use crate::show::size;
use pinbuddy_machine::{Files, field};

const PCI: &str = "sys/bus/pci/devices";

#[derive(Debug, Serialize)]
pub(super) struct Gpus {
    /// `580.65.06`: the kernel module's version.
    pub module: Option<String>,
    /// NVIDIA's display controllers by PCI address, with or without a driver.
    pub devices: Vec<Device>,
    /// The number of simulated GPUs, under the simulator.
    pub simulated: Option<u32>,
    /// libcuda's answer.
    pub driver: Driver,
}

/// One PCI device.
#[derive(Debug, Serialize)]
pub(super) struct Device {
    /// `0000:1a:00.0`.
    pub address: String,
    /// Its NUMA node; none if the firmware does not say.
    pub node: Option<u32>,
}

impl Gpus {
    /// Reads the kernel's view and adds the driver's.
    pub(super) fn read(files: &Files, driver: Driver, simulated: Option<u32>) -> Self {
        let devices = files.names(PCI).into_iter().filter_map(|address| {
            let text = |name: &str| files.text(&format!("{PCI}/{address}/{name}"));
            // NVIDIA's display or 3D controllers; not their audio devices and bridges.
            let gpu = text("vendor")? == "0x10de" && text("class")?.starts_with("0x03");
            let node = text("numa_node").and_then(|it| it.parse().ok());
            gpu.then_some(Device { address, node })
        });
        let mut devices: Vec<_> = devices.collect();
        devices.sort_by(|a, b| a.address.cmp(&b.address));
        Self {
            module: files.text("proc/driver/nvidia/version").and_then(|it| module_version(&it)),
            devices,
            simulated,
            driver,
        }
    }

    /// How many this process may use.
    pub(super) fn count(&self) -> usize {
        match &self.driver {
            Driver::Works { gpus, .. } => gpus.len(),
            _ => 0,
        }
    }

    /// Whether one of them has its memory from the host's.
    pub(super) fn share_memory(&self) -> bool {
        matches!(&self.driver, Driver::Works { gpus, .. } if gpus.iter().any(|it| it.shares_memory))
    }

    /// The node of the GPU at a PCI address.
    fn node(&self, address: &str) -> Option<u32> {
        self.devices.iter().find(|it| it.address == address)?.node
    }

    /// CUDA's numbers of the GPUs on a node.
    pub(super) fn beside(&self, node: u32) -> Vec<usize> {
        let Driver::Works { gpus, .. } = &self.driver else {
            return Vec::new();
        };
        (0..gpus.len()).filter(|it| self.node(&gpus[*it].address) == Some(node)).collect()
    }

    /// Judges the driver and each GPU. `needed` is torch's version of CUDA, `nodes` the number of NUMA nodes.
    pub(super) fn findings(&self, setting: Setting, needed: Option<CudaVersion>, nodes: usize) -> Vec<Finding> {
        let mut findings = vec![self.driver_finding(setting, needed)];
        let Driver::Works { gpus, .. } = &self.driver else {
            return findings;
        };
        for (number, gpu) in gpus.iter().enumerate() {
            let of = if gpu.shares_memory { " of the host's" } else { "" };
            let value = format!("{}, {}{of}, {}", gpu.name, size(gpu.memory), gpu.address);
            let name = format!("GPU {number}");
            findings.push(match self.node(&gpu.address) {
                Some(node) => Finding::ok(name, format!("{value}, node {node}")),
                None if nodes < 2 => Finding::ok(name, value),
                None => Finding::note(name, format!("{value}, node unknown")).run("nvidia-smi topo --matrix"),
            });
        }
        findings
    }

    fn driver_finding(&self, setting: Setting, needed: Option<CudaVersion>) -> Finding {
        let name = "driver";
        match self.simulated {
            Some(0) => return Finding::missing(name, "simulated, with no GPU"),
            Some(gpus) => {
                return Finding::ok(name, format!("simulated, as are its GPUs ({gpus})"));
            }
            None => {}
        }
        match &self.driver {
            Driver::Works { cuda, .. } => {
                let module = self.module.as_ref().map(|it| format!("{it}, "));
                let value = format!("{}serves CUDA {cuda}", module.unwrap_or_default());
                match needed {
                    // A newer runtime works on an older driver of the same major version.
                    Some(needed) if cuda.major() < needed.major() => {
                        let value = format!("{value}; torch needs {}.0", needed.major());
                        Finding::missing(name, value).machine_root(setting, newer(setting))
                    }
                    _ => Finding::ok(name, value),
                }
            }
            Driver::Absent if self.devices.is_empty() => {
                Finding::missing(name, "none, and no NVIDIA GPU: nothing can be pinned")
            }
            Driver::Absent => {
                let value = format!("none for the NVIDIA GPUs ({})", self.devices.len());
                let finding = Finding::missing(name, value);
                match (setting.container, self.module.is_some()) {
                    (true, _) => finding.host("docker run --gpus all …"),
                    // The module is loaded, but the loader does not find its library.
                    (false, true) => finding.root("ldconfig"),
                    (false, false) => finding.root(newer(setting)),
                }
            }
            Driver::Refuses { error } => self.refused(error, setting),
        }
    }

    fn refused(&self, error: &str, setting: Setting) -> Finding {
        let name = "driver";
        let value = format!("libcuda says {error}");
        match error {
            "CUDA_ERROR_NO_DEVICE" => {
                let finding = Finding::missing(name, value);
                match (self.devices.is_empty(), setting.container) {
                    (true, _) => finding,
                    (false, false) => finding.run("unset CUDA_VISIBLE_DEVICES; nvidia-smi"),
                    (false, true) => finding.host("docker run --gpus all …"),
                }
            }
            "CUDA_ERROR_STUB_LIBRARY" => {
                Finding::missing(name, format!("{value}: the toolkit's stub hides the driver"))
                    .run("unset LD_LIBRARY_PATH")
            }
            "CUDA_ERROR_SYSTEM_NOT_READY" => {
                Finding::missing(name, value).machine_root(setting, "systemctl restart nvidia-fabricmanager")
            }
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" => {
                let module = self.module.as_deref().unwrap_or("this kernel module");
                Finding::missing(name, format!("{value} with {module}")).machine_root(setting, "reboot")
            }
            _ => Finding::missing(name, value).run("nvidia-smi"),
        }
    }
}

/// The metapackage in NVIDIA's own repositories.
fn newer(setting: Setting) -> String {
    setting.install("cuda-drivers", "cuda-drivers")
}

/// `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  …` has it as the first word of digits
/// and dots.
fn module_version(text: &str) -> Option<String> {
    let line = field(text, "NVRM version:")?;
    let version = line
        .split_whitespace()
        .find(|word| word.contains('.') && word.bytes().all(|it| it == b'.' || it.is_ascii_digit()))?;
    Some(version.to_owned())
}
