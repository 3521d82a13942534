//! Every target for a second: its corpus, changed copies of that, and bytes at random.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pinbuddy_fuzz::{TARGETS, mutate};
use pinbuddy_model::choices::{Choices, random_bytes};

/// For each target.
const TIME: Duration = Duration::from_millis(800);

fn run(name: &str) {
    let found = TARGETS.iter().find(|it| it.0 == name);
    let target = found.unwrap_or_else(|| panic!("no target {name}")).1;
    let seeds = corpus(name);
    assert!(!seeds.is_empty(), "no corpus for {name}");
    seeds.iter().for_each(|bytes| target(bytes));
    let start = Instant::now();
    let mut seed = 0;
    while start.elapsed() < TIME {
        let script = random_bytes(seed, 1024);
        // One in eight is nothing but noise.
        let bytes = if seed.is_multiple_of(8) { script } else { mutate::mutated(&seeds, &mut Choices::new(&script)) };
        let failed = std::panic::catch_unwind(|| target(&bytes)).is_err();
        if failed {
            panic!("{name} fails on what {} holds", keep(name, &bytes).display());
        }
        seed += 1;
    }
    println!("{name}: {seed} executions");
}

/// Keeps `bytes` in a new file that only this user reads.
fn keep(name: &str, bytes: &[u8]) -> PathBuf {
    let mut file = tempfile::Builder::new().prefix(&format!("pinbuddy-fuzz-{name}-")).tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.into_temp_path().keep().unwrap()
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A test for each target, by its name.
macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                run(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_its_test() {
            assert_eq!([$(stringify!($name)),*], TARGETS.map(|it| it.0));
        }
    };
}

targets! {
    engine
    provisioner
    trace
    snapshot
    settings
    patch
    record
    metadata
    zip
    machine
    kernel_lists
    plan
    device_plan
    live_page
    table
}
