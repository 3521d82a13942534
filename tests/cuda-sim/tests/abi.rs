//! A C program compiled against real CUDA headers gets from the simulator what the headers promise.
//!
//! It is linked to the simulator and to an empty library named as the libcudart of that version,
//! because the simulator decides by the loaded libcudart what some names mean. The variables are
//! those of `bindings_current.rs`; without them the tests are ignored, and asked for they fail.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
#[ignore = "needs PINBUDDY_CUDA_INCLUDE and PINBUDDY_CUDA12_INCLUDE, which `cargo xtask test` sets"]
fn programs_of_cuda_13_and_12() {
    check("PINBUDDY_CUDA_INCLUDE", "libcudart.so.13");
    check("PINBUDDY_CUDA12_INCLUDE", "libcudart.so.12");
}

fn check(variable: &str, runtime: &str) {
    let include =
        std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: name the CUDA header folders"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(runtime);
    std::fs::create_dir_all(&folder).expect("a folder for the program");
    let (library, program) = (folder.join(runtime), folder.join("abi"));
    let mut compile = Command::new("gcc");
    compile.args(["-shared", "-x", "c", "/dev/null", "-o"]).arg(&library);
    succeed(compile.arg(format!("-Wl,-soname,{runtime}")));
    let mut compile = Command::new("gcc");
    compile.args(["-Wall", "-Wno-deprecated-declarations", "-o"]).arg(&program);
    compile.args(include.split(':').map(|folder| format!("-I{folder}")));
    compile.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/abi.c"));
    compile.args(["-x", "none", "-Wl,--no-as-needed"]).arg(simulator()).arg(&library);
    succeed(compile.arg(format!("-Wl,-rpath,{}", folder.display())));
    let mut run = Command::new(&program);
    run.env("LD_LIBRARY_PATH", simulator().parent().expect("a folder"));
    let printed = succeed(run.env("PINBUDDY_SIM_DEVICES", "2"));
    assert_eq!(printed, "ok\n");
}

/// The shared library that was built along with this test.
fn simulator() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test.parent().expect("it is in a folder");
    folder.join("libpinbuddy_cuda_sim.so")
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{printed}{complaint}");
    printed
}
