//! Three invented machines, and this one.

mod machine;

use std::path::Path;

use super::driver::{CudaVersion, Driver, Gpu};
use super::{Asked, Machine};
use machine::{Root, asked};

fn check(name: &str, machine: &Machine) {
    let report = machine.report();
    insta::assert_snapshot!(name, report.display(false).to_string());
    insta::assert_snapshot!(format!("{name}_json"), machine.json(&report).unwrap());
}

#[test]
fn a_laptop_with_no_gpu() {
    let root = Root::new()
        .file("usr/bin/apt-get", "")
        .file("proc/sys/kernel/osrelease", "5.10.0-28-amd64")
        .memory(15, 9)
        .lock("8388608", "unlimited", "0000000000000000")
        .file("proc/self/cgroup", "0::/user.slice")
        .file("sys/fs/cgroup/user.slice/memory.max", "max")
        .pool("sys/kernel/mm/hugepages", 2048, 0, 0)
        .transparent(
            "always madvise [never]",
            "always defer defer+madvise madvise [never]",
        )
        .node(0, "0-7", 15, 3);
    let machine = Machine::read(root.path(), asked());
    check("laptop", &machine);
    assert!(!machine.report().ready, "no GPU");
}

#[test]
fn a_server_with_eight_gpus_on_two_nodes() {
    let mut root = Root::new()
        .file("usr/bin/dnf", "")
        .file("proc/sys/kernel/osrelease", "5.14.0-427.13.1.el9_4.x86_64")
        .file(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build",
        )
        .memory(2015, 1800)
        .lock("unlimited", "unlimited", "0000000000000000")
        .file("proc/self/cgroup", "0::/slurm/job_7")
        .file("sys/fs/cgroup/slurm/memory.max", "1649267441664")
        .file("sys/fs/cgroup/slurm/memory.current", "21474836480")
        .file(
            "sys/fs/cgroup/slurm/memory.stat",
            "anon 1\ninactive_file 4294967296",
        )
        .pool("sys/kernel/mm/hugepages", 2048, 65536, 65024)
        .pool("sys/kernel/mm/hugepages", 1_048_576, 64, 0)
        .file(
            "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages",
            "512",
        )
        .transparent(
            "[always] madvise never",
            "always defer defer+madvise [madvise] never",
        )
        .file(
            "sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "always within_size advise [never] deny force",
        )
        .node(0, "0-55,112-167", 1007, 800)
        .node(1, "56-111,168-223", 1008, 900);
    for (node, pages, free) in [("node0", 65536, 65024), ("node1", 0, 0)] {
        let folder = format!("sys/devices/system/node/{node}/hugepages");
        root = root
            .pool(&folder, 2048, pages, free)
            .pool(&folder, 1_048_576, 32, 0);
    }
    let addresses = ["1a", "40", "53", "66", "9c", "c0", "d2", "e4"];
    let gpus = addresses.map(|bus| Gpu {
        name: "NVIDIA H100 80GB HBM3".into(),
        memory: 85_029_158_912,
        address: format!("0000:{bus}:00.0"),
        shares_memory: false,
    });
    for (number, gpu) in gpus.iter().enumerate() {
        // The firmware does not say the node of the last one.
        let node = if number == 7 { -1 } else { number as i64 / 4 };
        root = root.gpu(&gpu.address, node);
    }
    let mut asked = asked();
    asked.driver = Driver::Works {
        cuda: CudaVersion(13000),
        gpus: gpus.into(),
    };
    let machine = Machine::read(root.path(), asked);
    check("server", &machine);
    assert!(machine.report().ready);
}

#[test]
fn a_small_container() {
    let root = Root::new()
        .file(".dockerenv", "")
        .file("usr/bin/apt-get", "")
        .file("proc/sys/kernel/osrelease", "6.8.0-45-generic")
        .file(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue",
        )
        .memory(503, 400)
        .lock("65536", "65536", "00000000a80425fb")
        .file("proc/self/cgroup", "5:cpu:/docker/x\n4:memory:/docker/x")
        .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296")
        .file("sys/fs/cgroup/memory/memory.usage_in_bytes", "3221225472")
        .file(
            "sys/fs/cgroup/memory/memory.stat",
            "total_inactive_file 1073741824",
        )
        .pool("sys/kernel/mm/hugepages", 2048, 1024, 0)
        .pool("sys/kernel/mm/hugepages", 1_048_576, 0, 0)
        .transparent(
            "always [madvise] never",
            "always [defer] defer+madvise madvise never",
        )
        .file(
            "sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "always within_size advise [never] deny force",
        )
        .node(0, "0-31", 503, 380)
        .gpu("0000:00:04.0", -1);
    let mut asked = asked();
    asked.driver = Driver::Works {
        cuda: CudaVersion(12040),
        gpus: vec![Gpu {
            name: "NVIDIA A10G".into(),
            memory: 23_609_475_072,
            address: "0000:00:04.0".into(),
            shares_memory: false,
        }],
    };
    let machine = Machine::read(root.path(), asked);
    check("container", &machine);
    assert!(!machine.report().ready, "an old driver");
}

#[test]
fn a_gpu_that_has_its_memory_from_the_hosts() {
    let report = |shares_memory| {
        let root = Root::new()
            .memory(120, 100)
            .file("proc/self/cgroup", "0::/job")
            .file("sys/fs/cgroup/job/memory.max", "21474836480")
            .file("sys/fs/cgroup/job/memory.current", "0");
        let mut asked = asked();
        asked.driver = Driver::Works {
            cuda: CudaVersion(13000),
            gpus: vec![Gpu {
                name: "NVIDIA GB10".into(),
                memory: 120 << 30,
                address: "000f:01:00.0".into(),
                shares_memory,
            }],
        };
        let report = Machine::read(root.path(), asked).report();
        let text = report.display(false).to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (apart, shared) = (report(false), report(true));
    for (text, lines) in [
        (
            apart,
            [
                "NVIDIA GB10, 120 GiB, 000f:01:00.0",
                "10 GiB may be pinned, half of what the cgroup leaves",
            ],
        ),
        (
            shared.clone(),
            [
                "NVIDIA GB10, 120 GiB of the host's, 000f:01:00.0",
                "5 GiB may be pinned, a quarter of what the cgroup leaves, as it is the GPU's, too; the warm-up's 8 blocks",
            ],
        ),
    ] {
        for line in lines {
            assert!(text.contains(line), "{text}");
        }
    }
    assert!(
        shared.contains("export BUDDY_BLOCK_COUNT=5") && shared.contains("echo 32G >"),
        "{shared}"
    );
}

/// Every failure of libcuda, and the simulator.
#[test]
fn drivers_that_serve_nothing() {
    let root = Root::new().gpu("0000:00:04.0", 0);
    let mut lines = Vec::new();
    for error in [
        "CUDA_ERROR_NO_DEVICE",
        "CUDA_ERROR_STUB_LIBRARY",
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "simulated",
    ] {
        let mut asked = asked();
        asked.simulated = (error == "simulated").then_some(2);
        asked.driver = Driver::Refuses {
            error: error.into(),
        };
        let machine = Machine::read(root.path(), asked);
        let finding = &machine.gpus.findings(machine.setting, None, 1)[0];
        let command = finding.fixes.first().map_or("", |it| it.command.as_str());
        lines.push(format!(
            "{:?}: {}: {command}",
            finding.status, finding.value
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn this_machine() {
    let machine = Machine::read(Path::new("/"), Asked::here(None));
    let report = machine.report();
    assert!(machine.memory.available.is_some() && machine.kernel.release.is_some());
    let text = report.display(false).to_string();
    assert!(
        text.contains("\nMemory\n") && !text.contains('\x1b'),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&machine.json(&report).unwrap()).unwrap();
    assert_eq!(json["ready"], report.ready);
    assert!(json["machine"]["memory"]["total"].as_u64() > Some(0));
}
