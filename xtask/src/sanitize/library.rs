//! The library that people get, under real torch in the simulator, with a sanitizer in its C++ side and in the
//! program that uses it.
//!
//! Rust, torch and libstdc++ are not instrumented: a stable toolchain cannot, and official wheels are what they are. So
//! ThreadSanitizer sees the C++ side's own reads and writes, and all threads, mutexes, forks and mappings, which go
//! through libc; it does not see what Rust reads and writes, nor that Rust's own locks order anything. Safe Rust has no
//! races; what it allocates behind its locks is suppressed (`tests/sanitize/suppressions`). AddressSanitizer sees all of
//! the heap, Rust's included, and accesses of our C++ to it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::compile::{self, Unit};
use super::program::{self, Ended};
use super::{Sanitizer, suppressions};
use crate::build_wheel::compile::{Flavour, compile as cargo_build};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare;
use crate::cli;
use crate::python::environment::Environment;
use crate::python::simulator::before;
use crate::support::progress::Progress;
use crate::support::refusal::refuse;
use crate::support::{lock, paths};
use crate::{sim, venv};

/// A variable and its value.
type Setting = (&'static str, &'static str);

/// Programs, where they are, what they are told before the seed, and the variables of theirs.
const PROGRAMS: [(&str, &str, &str, &[Setting]); 3] = [
    ("blocks", "tests/stress/blocks.cpp", "8 400", &[]),
    ("churn", "tests/sanitize/churn.cpp", "6 4 100", &[]),
    (
        "churn",
        "tests/sanitize/churn.cpp",
        "6 2 100",
        &[("BUDDY_GUARD", "1")],
    ),
];
/// The one whose device memory is planned. Events seem to be outstanding for a while, so that memory waits for them.
const DEVICE: &str = "tests/sanitize/device.cpp";
const DEVICE_ARGUMENTS: &str = "6 150";
const DEVICE_SETTINGS: [Setting; 2] = [
    ("PINBUDDY_SIM_DEVICE_MB", "1024"),
    ("PINBUDDY_SIM_EVENT_LAG_MS", "2"),
];

/// Small enough for a few gigabytes with what a sanitizer takes; the threshold below the large blocks.
const SETTINGS: [Setting; 3] = [
    ("BUDDY_BLOCK_SIZE_MB", "32"),
    ("BUDDY_BLOCK_COUNT", "2"),
    ("BUDDY_THRESHOLD_MB", "1"),
];

impl Sanitizer {
    fn flavour(self) -> Flavour {
        Flavour::Sanitized {
            flags: self.flags(),
            target: match self {
                Self::Thread => "wheel/cargo-thread",
                Self::Address => "wheel/cargo-address",
            },
        }
    }

    /// What instrumented code calls.
    fn called(self) -> &'static str {
        match self {
            Self::Thread => "__tsan_func_entry",
            Self::Address => "__asan_report_load8",
        }
    }

    /// The runtime, as g++ calls it.
    fn runtime(self) -> &'static str {
        match self {
            Self::Thread => "libtsan.so",
            Self::Address => "libasan.so",
        }
    }
}

/// Runs each program once; how many there are.
pub fn once(sanitizer: Sanitizer, seed: u64) -> Result<u64> {
    let python = Path::new("python3");
    let stock = venv::ensure(None, true, python)?;
    let (library, cuda) = library(sanitizer, python)?;
    let simulator = sim::build()?;
    let [preload, paths, devices] = simulator.env(1)?;
    let preloaded = before(library.as_os_str(), Some(preload.1));
    let folders = libraries(&stock)?;
    let mut variables = vec![
        (
            "LD_PRELOAD",
            before(runtime(sanitizer)?.as_os_str(), Some(preloaded)),
        ),
        (
            "LD_LIBRARY_PATH",
            before(&env::join_paths(&folders)?, Some(paths.1)),
        ),
        devices,
        // PyTorch's own start leaks, and what Rust keeps is out of sight.
        ("LSAN_OPTIONS", "detect_leaks=0".into()),
    ];
    variables.extend(SETTINGS.map(|(name, value)| (name, value.into())));
    let mut seen = suppressions::Seen::read(sanitizer)?;
    for (name, source, arguments, own) in PROGRAMS {
        let program = compile_with_torch(name, source, &[], &stock, sanitizer)?;
        let mut all = variables.clone();
        all.extend(own.iter().map(|&(name, value)| (name, value.into())));
        let words = words(arguments, seed);
        let ended = program::run_well(&program, &words, sanitizer, &all)?;
        seen.take(&ended.said);
    }
    let program = compile_with_torch("device", DEVICE, &cuda, &stock, sanitizer)?;
    seen.take(&planned(&program, variables, sanitizer, seed)?.said);
    seen.finish()?;
    Ok(PROGRAMS.len() as u64 + 1)
}

fn words(arguments: &str, seed: u64) -> Vec<String> {
    let seed = seed.to_string();
    let all = arguments.split_whitespace().chain([seed.as_str()]);
    all.map(str::to_owned).collect()
}

/// Runs the program once to have a plan of it, and once with that.
fn planned(
    program: &Path,
    mut variables: Vec<(&str, OsString)>,
    sanitizer: Sanitizer,
    seed: u64,
) -> Result<Ended> {
    let folder = tempfile::tempdir().context("creating a folder for a plan")?;
    let plan = folder.path().join("device.json");
    variables.push(("BUDDY_DEVICE_PLAN", plan.into_os_string()));
    variables.extend(DEVICE_SETTINGS.map(|(name, value)| (name, value.into())));
    program::run_well(program, &[], sanitizer, &variables)?;
    let ended = program::run_well(
        program,
        &words(DEVICE_ARGUMENTS, seed),
        sanitizer,
        &variables,
    )?;
    let mut numbers = ended.said.lines().filter_map(|it| it.parse::<u64>().ok());
    ensure!(
        numbers.any(|served| served > 0),
        "no request was served as planned: {}",
        ended.said
    );
    Ok(ended)
}

/// The library with the sanitizer in it, and CUDA's headers.
fn library(sanitizer: Sanitizer, python: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let _lock = lock::take("build")?;
    let args = cli::BuildWheel::plain(None, python, &paths::root().join("dist"));
    let plan = Plan::make(&args)?;
    let progress = Progress::new(prepare::STEPS + 1);
    let ready = prepare::prepare(&plan, &progress)?;
    let flavour = sanitizer.flavour();
    let path = progress.step("compile the library with a sanitizer", |step| {
        let target = paths::target().join(flavour.target());
        cargo_build(paths::root(), &target, &ready.against(), flavour, step)
    })?;
    let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let called = sanitizer.called().as_bytes();
    ensure!(
        bytes.windows(called.len()).any(|it| it == called),
        "{} has no sanitizer in it",
        path.display()
    );
    Ok((path, ready.against().cuda.to_vec()))
}

/// The path of the runtime.
fn runtime(sanitizer: Sanitizer) -> Result<PathBuf> {
    let argument = format!("-print-file-name={}", sanitizer.runtime());
    let output = Command::new("g++")
        .arg(&argument)
        .output()
        .context("running g++")?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    // g++ repeats the name of a library that it does not have.
    if !path.is_absolute() {
        return Err(refuse(format!("g++ has no {}", sanitizer.runtime()))
            .remedy(sanitizer.remedy())
            .into());
    }
    fs::canonicalize(&path).with_context(|| format!("finding {}", path.display()))
}

/// Where torch and the CUDA that it needs are.
fn libraries(stock: &Environment) -> Result<Vec<PathBuf>> {
    let packages = stock.torch().parent().context("torch is in no folder")?;
    let cuda = packages.join("nvidia");
    let mut folders = vec![stock.torch().join("lib")];
    for library in compile::files(&cuda, "")? {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libcudart.so.") {
            folders.extend(library.parent().map(Path::to_path_buf));
        }
    }
    Ok(folders)
}

fn compile_with_torch(
    name: &str,
    source: &str,
    cuda: &[PathBuf],
    stock: &Environment,
    sanitizer: Sanitizer,
) -> Result<PathBuf> {
    let torch = stock.torch().display();
    let api = format!("-isystem{torch}/include/torch/csrc/api/include");
    let mut flags = vec![format!("-isystem{torch}/include"), api];
    flags.extend(cuda.iter().map(|it| format!("-isystem{}", it.display())));
    let object = Unit {
        name: &format!("{name}-torch-main"),
        sources: vec![
            paths::root().join(source),
            paths::root().join("tests/sanitize/clocklock.cpp"),
        ],
        // Not among what is hashed: with the version it is all the same.
        include: Vec::new(),
        flags,
    }
    .object(sanitizer)?;
    let linked = [
        &format!("-L{torch}/lib"),
        "-Wl,--no-as-needed",
        "-ltorch",
        "-ltorch_cuda",
        "-ltorch_cpu",
        "-lc10",
        "-lc10_cuda",
        "-Wl,--allow-shlib-undefined",
    ];
    compile::link(
        &format!("{name}-torch"),
        &[object],
        &linked.map(str::to_owned),
        sanitizer,
    )
}
