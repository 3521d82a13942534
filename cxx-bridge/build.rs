//! Compiles and links the C++ side when the feature `torch` is on.
//!
//! Reads, from `cargo xtask build-wheel` or from the CMake of a PyTorch that is built from source:
//! `PINBUDDY_TORCH_INCLUDE` (folders separated by colons, the patched headers first),
//! `PINBUDDY_TORCH_LIB` and `PINBUDDY_CUDA_INCLUDE` (folders likewise), `PINBUDDY_CUDART` (libcudart;
//! unset, it is in the sibling `lib` of CUDA's first folder), `PINBUDDY_FORK_VERSION` and, for tests, `PINBUDDY_DEBUG`,
//! `PINBUDDY_COVERAGE` (the C++ side counts its lines), `PINBUDDY_SANITIZE` (what g++ is told to have a sanitizer in
//! the C++ side) and `PINBUDDY_CPP` (the folder of the C++ side; unset, it is `cpp`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 14] = [
    "block_table.cpp",
    "buddy_allocator.cpp",
    "buddy_frees.cpp",
    "buddy_reports.cpp",
    "cuda_backend.cpp",
    "cuda_cache.cpp",
    "device/device_allocator.cpp",
    "device/device_history.cpp",
    "device/stream_memory.cpp",
    "event_pool.cpp",
    "host_allocator.cpp",
    "host_memory.cpp",
    "in_place.cpp",
    "block_cache.cpp",
];

/// Counts lines for gcov.
const COVERAGE: &str = "--coverage";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    compile();
    link();
}

fn compile() {
    let torch_include = input("PINBUDDY_TORCH_INCLUDE");
    let cuda_include = input("PINBUDDY_CUDA_INCLUDE");
    println!("cargo::rerun-if-env-changed=PINBUDDY_CPP");
    let cpp = PathBuf::from(env::var_os("PINBUDDY_CPP").unwrap_or_else(|| "cpp".into()));
    let mut build = cxx_build::bridge("src/lib.rs");
    build
        .files(SOURCES.map(|it| cpp.join(it)))
        .include(&cpp)
        .std("c++20")
        // Not 3, with which upstream's paths take 4 % longer than in the official wheel.
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .flag("-fvisibility-inlines-hidden")
        .flag("-pthread")
        // A pair of allocate and free takes some fifty nanoseconds, with dozens of calls into libc and libc10.
        // Direct calls and aligned functions save 12 % of that.
        .flag("-fno-plt")
        .flag("-falign-functions=32")
        .warnings(true)
        .extra_warnings(true)
        // In source builds other compilers may warn of other things.
        .warnings_into_errors(env::var_os("PINBUDDY_CUDART").is_none())
        .define("USE_CUDA", None);
    // Asserts invariant I5; `cargo xtask test` builds such a library and runs its tests with it.
    println!("cargo::rerun-if-env-changed=PINBUDDY_DEBUG");
    if env::var("PINBUDDY_DEBUG").is_ok_and(|value| value == "1") {
        build.define("PINBUDDY_DEBUG", None);
    } else {
        // PyTorch's own libraries are built with it, too.
        build.define("NDEBUG", None);
    }
    for flag in sanitizer().split_whitespace() {
        build.flag(flag);
    }
    if counts_lines() {
        build.flag(COVERAGE).flag("-fprofile-update=atomic");
    }
    // As system headers, without upstream's warnings.
    for folder in folders(&torch_include).chain(folders(&cuda_include)) {
        build.flag("-isystem").flag(folder);
    }
    build.compile("pinbuddy_cpp");
    println!("cargo::rerun-if-changed={}", cpp.display());
    input("PINBUDDY_FORK_VERSION");
}

fn link() {
    println!("cargo::rerun-if-env-changed=PINBUDDY_CUDART");
    let cuda_include = input("PINBUDDY_CUDA_INCLUDE");
    let first = folders(&cuda_include).next().unwrap_or_default();
    let cudart =
        env::var_os("PINBUDDY_CUDART").map_or_else(|| cudart(&Path::new(first).with_file_name("lib")), PathBuf::from);
    for folder in folders(&input("PINBUDDY_TORCH_LIB")) {
        println!("cargo::rustc-link-search=native={folder}");
    }
    // Not torch_cuda, which in a build from source is linked with us.
    for library in ["torch_cpu", "c10_cuda", "c10"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    for argument in [
        cudart.to_str().expect("a path of text"),
        "-Wl,-soname,libtorch_pinbuddy.so",
        // Beside libtorch.so, where the wheel puts us.
        "-Wl,-rpath,$ORIGIN",
        // A symbol that none of the libraries has is an error here rather than at import.
        "-Wl,-z,defs",
        // Our own references stay ours, whatever other libraries of the process export.
        "-Wl,-Bsymbolic",
        "-Wl,--as-needed",
    ]
    .into_iter()
    // A sanitizer's runtime comes with the program: rustc has the linker leave out what it would add.
    .chain((!sanitizer().is_empty()).then_some("-Wl,-z,undefs"))
    .chain(counts_lines().then_some(COVERAGE))
    {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}

fn sanitizer() -> String {
    println!("cargo::rerun-if-env-changed=PINBUDDY_SANITIZE");
    env::var("PINBUDDY_SANITIZE").unwrap_or_default()
}

fn counts_lines() -> bool {
    println!("cargo::rerun-if-env-changed=PINBUDDY_COVERAGE");
    env::var("PINBUDDY_COVERAGE").is_ok_and(|value| value == "1")
}

fn folders(list: &str) -> impl Iterator<Item = &str> {
    list.split(':').filter(|it| !it.is_empty())
}

/// libcudart carries its major version in its name, and the folder has one of them.
fn cudart(folder: &Path) -> PathBuf {
    fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("libcudart.so.")))
        .unwrap_or_else(|| panic!("no libcudart.so.* in {}", folder.display()))
}

fn input(name: &str) -> String {
    println!("cargo::rerun-if-env-changed={name}");
    env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set; `cargo xtask build-wheel` sets it, and builds this crate for you")
    })
}
