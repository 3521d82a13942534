//! Tests in a process of their own, for limits that would end the others.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::process::Command;

use pinbuddy_machine::kib_field;

/// Runs the test of this path in a child, by itself and with this variable. It ends well there; returns what it said.
pub(crate) fn run(test: &str, variable: &str, value: impl AsRef<OsStr>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    // A trace takes memory, too.
    let output = child.env(variable, value).env("RUST_BACKTRACE", "0").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// So many bytes are the most from now on.
pub(crate) fn limit(of: libc::__rlimit_resource_t, bytes: u64) {
    let most = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it reads `most`.
    let set = unsafe { libc::setrlimit(of, &raw const most) };
    assert_eq!(set, 0);
}

/// What /proc says that this process has of it, in bytes.
pub(crate) fn used(field: &str) -> u64 {
    kib_field(&std::fs::read_to_string("/proc/self/status").unwrap(), field).unwrap()
}
