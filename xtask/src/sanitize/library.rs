//! The library that people get, under real torch in the simulator, with a sanitizer in its C++ side and in the
//! program that uses it.
//!
//! Rust, torch and libstdc++ are not instrumented: a stable toolchain cannot, and official wheels are what they are. So
//! ThreadSanitizer sees the C++ side's own reads and writes, and all threads, mutexes, forks and mappings, which go
//! through libc; it does not see what Rust reads and writes, nor that Rust's own locks order anything. Safe Rust has no
//! races; what it allocates behind its locks is suppressed (`tests/sanitize/suppressions`). AddressSanitizer sees all of
//! the heap, Rust's included, and accesses of our C++ to it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::compile::{self, Unit};
use super::program;
use super::{Sanitizer, suppressions};
use crate::build_wheel::compile::{Flavour, compile as cargo_build};
use crate::build_wheel::plan::Plan;
use crate::build_wheel::prepare;
use crate::cli;
use crate::python::environment::Environment;
use crate::python::simulator::before;
use crate::support::progress::Progress;
use crate::support::{lock, paths};
use crate::{sim, venv};

/// Programs, where they are, and what they are told before the seed.
const PROGRAMS: [(&str, &str, &str); 2] = [
    ("blocks", "tests/stress/blocks.cpp", "8 400"),
    ("churn", "tests/sanitize/churn.cpp", "6 4 100"),
];

/// Small enough for a few gigabytes with what a sanitizer takes; the threshold below the large blocks.
const SETTINGS: [(&str, &str); 3] = [
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
    let library = library(sanitizer, python)?;
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
    ];
    variables.extend(SETTINGS.map(|(name, value)| (name, value.into())));
    let mut seen = suppressions::Seen::read(sanitizer)?;
    for (name, source, arguments) in PROGRAMS {
        let program = compile_with_torch(name, source, &stock, sanitizer)?;
        let words = format!("{arguments} {seed}");
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let ended = program::run_well(&program, &words, sanitizer, &variables)?;
        seen.take(&ended.said);
    }
    seen.finish()?;
    Ok(PROGRAMS.len() as u64)
}

/// The library with the sanitizer in it.
fn library(sanitizer: Sanitizer, python: &Path) -> Result<PathBuf> {
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
    Ok(path)
}

/// The path of the runtime.
fn runtime(sanitizer: Sanitizer) -> Result<PathBuf> {
    let argument = format!("-print-file-name={}", sanitizer.runtime());
    let output = Command::new("g++")
        .arg(&argument)
        .output()
        .context("running g++")?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    ensure!(path.is_absolute(), "g++ has no {}", sanitizer.runtime());
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
    stock: &Environment,
    sanitizer: Sanitizer,
) -> Result<PathBuf> {
    let torch = stock.torch().display();
    let object = Unit {
        name: &format!("{name}-torch-main"),
        sources: vec![
            paths::root().join(source),
            paths::root().join("tests/sanitize/clocklock.cpp"),
        ],
        // Not among what is hashed: with the version it is all the same.
        include: Vec::new(),
        flags: vec![
            format!("-isystem{torch}/include"),
            format!("-isystem{torch}/include/torch/csrc/api/include"),
        ],
    }
    .object(sanitizer)?;
    let linked = [
        &format!("-L{torch}/lib"),
        "-Wl,--no-as-needed",
        "-ltorch",
        "-ltorch_cuda",
        "-ltorch_cpu",
        "-lc10",
        "-Wl,--allow-shlib-undefined",
    ];
    compile::link(
        &format!("{name}-torch"),
        &[object],
        &linked.map(str::to_owned),
        sanitizer,
    )
}
