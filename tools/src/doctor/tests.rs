//! Three invented machines, and this one.

use std::path::Path;

use pinbuddy_machine::made_up;
use tempfile::TempDir;

use super::driver::{CudaVersion, Driver, Gpu};
use super::{Asked, Machine};

/// The files of a made-up machine.
fn root(text: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    made_up(root.path(), text);
    root
}

/// A machine with no driver.
fn asked() -> Asked {
    Asked { driver: Driver::Absent, simulated: None, needed: "13.2".parse().ok() }
}

/// A driver that serves this version.
fn works(cuda: i32, gpus: Vec<Gpu>) -> Asked {
    let cuda = CudaVersion(cuda);
    Asked { driver: Driver::Works { cuda, gpus }, ..asked() }
}

fn gpu(name: &str, memory: u64, address: &str) -> Gpu {
    Gpu { name: name.into(), memory, address: address.into(), shares_memory: false }
}

#[test]
fn a_laptop_with_no_gpu_a_server_with_eight_and_a_small_container_with_an_old_driver() {
    let h100 = |bus| gpu("NVIDIA H100 80GB HBM3", 85_029_158_912, &format!("0000:{bus}:00.0"));
    let eight = ["1a", "40", "53", "66", "9c", "c0", "d2", "e4"].map(h100);
    let a10g = gpu("NVIDIA A10G", 23_609_475_072, "0000:00:04.0");
    for (name, files, asked, is_ready) in [
        ("laptop", include_str!("tests/laptop.txt"), asked(), false),
        ("server", include_str!("tests/server.txt"), works(13000, eight.into()), true),
        ("container", include_str!("tests/container.txt"), works(12040, vec![a10g]), false),
    ] {
        let root = root(files);
        let machine = Machine::read(root.path(), asked);
        let report = machine.report();
        insta::assert_snapshot!(name, report.display(false).to_string());
        insta::assert_snapshot!(format!("{name}_json"), machine.json(&report).unwrap());
        assert_eq!(report.ready, is_ready, "{name}");
    }
}

#[test]
fn a_gpu_that_has_its_memory_from_the_hosts() {
    let report = |shares_memory| {
        let root = root(
            "proc/meminfo = MemTotal: 125829120 kB\nproc/meminfo = MemAvailable: 104857600 kB\n\
             proc/self/cgroup = 0::/job\nsys/fs/cgroup/job/memory.max = 21474836480\n\
             sys/fs/cgroup/job/memory.current = 0",
        );
        let mut gpu = gpu("NVIDIA GB10", 120 << 30, "000f:01:00.0");
        gpu.shares_memory = shares_memory;
        let report = Machine::read(root.path(), works(13000, vec![gpu])).report();
        report.display(false).to_string()
    };
    insta::assert_snapshot!([false, true].map(report).join("\n"));
}

/// Every failure of libcuda, and the simulator.
#[test]
fn drivers_that_serve_nothing() {
    let device = "sys/bus/pci/devices/0000:00:04.0";
    let files = ["vendor = 0x10de", "class = 0x030200", "numa_node = 0"];
    let root = root(&files.map(|it| format!("{device}/{it}\n")).concat());
    let mut lines = Vec::new();
    for error in ["NO_DEVICE", "STUB_LIBRARY", "SYSTEM_NOT_READY", "SYSTEM_DRIVER_MISMATCH", "simulated"] {
        let mut asked = asked();
        asked.simulated = (error == "simulated").then_some(2);
        let error = if error == "simulated" { error.to_owned() } else { format!("CUDA_ERROR_{error}") };
        asked.driver = Driver::Refuses { error };
        let machine = Machine::read(root.path(), asked);
        let finding = &machine.gpus.findings(machine.setting, None, 1)[0];
        let command = finding.fixes.first().map_or("", |it| it.command.as_str());
        let (status, value) = (finding.status, &finding.value);
        lines.push(format!("{status:?}: {value}: {command}"));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn this_machine() {
    let machine = Machine::read(Path::new("/"), Asked::here(None));
    let report = machine.report();
    assert!(machine.memory.limits.available.is_some() && machine.kernel.release.is_some());
    let text = report.display(false).to_string();
    assert!(text.contains("\nMemory\n") && !text.contains('\x1b'));
    let json: serde_json::Value = serde_json::from_str(&machine.json(&report).unwrap()).unwrap();
    assert_eq!(json["ready"], report.ready);
    assert!(json["machine"]["memory"]["total"].as_u64() > Some(0));
}
