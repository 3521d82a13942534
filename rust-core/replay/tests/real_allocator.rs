//! The model of PyTorch's device allocator reserves what the allocator itself reserves, act by act.
//!
//! Programs run with stock PyTorch in the simulator (`tests/programs/device_programs.py`, `device_trainings.py`); the model replays their
//! snapshots. No device is full in them: what was given back for a request, a snapshot does not tell from an emptied
//! cache. Needs `PINBUDDY_STOCK_PYTHON`, the official wheel's Python (2.15), and `PINBUDDY_SIM_FOLDER`, the folder of
//! the simulator's libraries. Ignored without them; asked for, a missing one fails.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use pinbuddy_events::Whose;
use pinbuddy_plan::Options;
use pinbuddy_plan::device::DeviceRecord;
use pinbuddy_replay::device::Kind;
use pinbuddy_replay::device::history::{Agreement, History};
use pinbuddy_replay::device::replay::Replay;
use pinbuddy_snapshot::Snapshot;

/// Acts of a program that is worth a comparison.
const ACTS: usize = 1000;

#[test]
#[ignore = "needs PINBUDDY_STOCK_PYTHON and PINBUDDY_SIM_FOLDER, which `cargo xtask test` sets"]
fn a_training_and_requests_in_any_order_reserve_what_the_model_reserves() {
    let all = std::env::var("PINBUDDY_TEST_ALL").is_ok_and(|it| it == "1");
    // Programs of each kind, of which each has a seed.
    for (program, ordinary, whole) in [("training", 1, 3), ("random", 2, 4)] {
        (1..=if all { whole } else { ordinary }).for_each(|seed| check(program, seed));
    }
}

#[test]
#[ignore = "needs PINBUDDY_STOCK_PYTHON and PINBUDDY_SIM_FOLDER, which `cargo xtask test` sets"]
fn a_plan_of_a_training_as_users_write_it_is_full() {
    let arguments = ["device_trainings.py", "gpt2-recompute"];
    let history = compared("gpt2-recompute", Kind::Torch, &arguments);
    let options = Options { threads: 1, ..Options::default() };
    let plan = DeviceRecord::of(&history.acts).plan(&options, &|| false);
    let model = plan.before(0, Kind::Torch.model()).unwrap();
    let mut replay = Replay::new(model);
    history.acts.iter().for_each(|act| replay.step(*act));
    let efficiency = replay.outcome().efficiency.unwrap();
    assert!(efficiency >= 0.99, "{efficiency}");
}

/// A program with and without expandable segments.
fn check(program: &str, seed: u32) {
    for kind in Kind::ALL {
        let name = format!("{program}-{seed}-{}", kind.name());
        let arguments = ["device_programs.py", program, &seed.to_string()];
        compared(&name, kind, &arguments);
    }
}

/// What a program did, which the model follows to the byte.
fn compared(name: &str, kind: Kind, arguments: &[&str]) -> History {
    let (history, reported) = run(name, kind, arguments);
    assert!(history.acts.len() > ACTS, "{name}");
    let agreement = history.compare(kind);
    let Agreement { peak, end, .. } = agreement;
    assert_eq!([peak.1, end.1], reported, "{name}: the history is whole");
    assert_eq!(agreement.differs, None, "{name}");
    assert_eq!((peak.0, end.0), (peak.1, end.1), "{name}");
    history
}

/// What the program did, and the bytes that PyTorch says were reserved, at most and at the end.
fn run(name: &str, kind: Kind, arguments: &[&str]) -> (History, [u64; 2]) {
    let variable = |name: &str| {
        let value = std::env::var_os(name).map(PathBuf::from);
        value.unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask test`"))
    };
    let python = variable("PINBUDDY_STOCK_PYTHON");
    let simulator = variable("PINBUDDY_SIM_FOLDER");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pickle"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let setting = match kind {
        Kind::Torch => "False",
        Kind::TorchExpandable => "True",
    };
    let setting = format!("expandable_segments:{setting}");
    let library = simulator.join("libpinbuddy_cuda_sim.so");
    let mut command = Command::new(python);
    let script = command.arg(folder.join(arguments[0])).args(&arguments[1..]);
    script.arg(&path).env("PINBUDDY_SIM_DEVICE_MB", "80000");
    script.env("LD_PRELOAD", library).env("LD_LIBRARY_PATH", &simulator);
    script.env("PYTORCH_CUDA_ALLOC_CONF", setting).env("PINBUDDY_SIM_QUIET", "1");
    let output = command.output().expect("the program starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{complaint}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let line = printed.trim().lines().last().unwrap_or_default();
    let numbers = line.trim_matches(['[', ']']).split(", ");
    let numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
    let reported = [numbers[0], numbers[1]];
    let file = BufReader::new(File::open(&path).expect("a snapshot"));
    let snapshot = Snapshot::read(file).expect("a snapshot that can be read");
    std::fs::remove_file(&path).expect("the snapshot is removed");
    (History::of(snapshot.entries(Whose::Device(0))), reported)
}
