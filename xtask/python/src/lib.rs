//! Interpreters, virtual environments, and the CUDA that programs with torch run on.
//!
//! Makes and inspects environments. Knows nothing of our wheels and builds nothing.

pub mod environment;
pub mod pip;
pub mod simulator;
pub mod tools;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Deserialize;
use xshell::{Shell, cmd};

use xtask_support::refusal::refuse;

/// The probe's output. `-I` keeps the user's site-packages from printing into it.
const PROBE: &str = "
import json, os, platform, sys, sysconfig
try:
    libc = os.confstr('CS_GNU_LIBC_VERSION') or ''
except (AttributeError, ValueError, OSError):
    libc = ''
print(json.dumps({
    'executable': sys.executable,
    'version': list(sys.version_info[:3]),
    'implementation': sys.implementation.name,
    'free_threaded': bool(sysconfig.get_config_var('Py_GIL_DISABLED')),
    'system': platform.system(),
    'machine': platform.machine(),
    'libc': libc,
    'headers': os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')),
}))
";

/// What official CUDA wheels are for, as Python's `platform.machine` and Rust's `ARCH` name it.
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];

/// A Python interpreter.
#[derive(Clone, Debug, Deserialize)]
pub struct Python {
    /// The real interpreter, with shims resolved.
    pub executable: PathBuf,
    /// Major, minor, micro.
    pub version: (u32, u32, u32),
    /// `cpython`, or an implementation that torch has no wheels for.
    pub implementation: String,
    /// Free-threaded build, with its own ABI tag.
    pub free_threaded: bool,
    /// `Linux`, or an unsupported system.
    pub system: String,
    /// `x86_64` or `aarch64`.
    pub machine: String,
    /// `glibc 2.36`, or empty.
    pub libc: String,
    /// Whether C extensions can be compiled: some systems have Python.h in a separate package.
    pub headers: bool,
}

impl Python {
    /// Inspects `interpreter`, and refuses one that no CUDA wheel of torch supports.
    pub fn probe(interpreter: &Path) -> Result<Self> {
        let shell = Shell::new()?;
        let output = cmd!(shell, "{interpreter} -I -c {PROBE}").quiet().ignore_status().output();
        let shown = interpreter.display();
        let answer = match output {
            Ok(output) if output.status.success() => output.stdout,
            Ok(output) => {
                return Err(refuse(format!("{shown} does not run"))
                    .found(String::from_utf8_lossy(&output.stderr).trim())
                    .expected("a working Python 3 interpreter")
                    .remedy("pass another one with --python")
                    .into());
            }
            Err(_) => {
                return Err(refuse(format!("there is no Python called {shown}"))
                    .expected("a Python 3 interpreter on the PATH")
                    .remedy("apt-get install python3 python3-venv, or dnf install python3, or pass --python PY")
                    .into());
            }
        };
        let python: Self = serde_json::from_slice(&answer)?;
        python.check()?;
        Ok(python)
    }

    fn check(&self) -> Result<()> {
        let fits = self.implementation == "cpython"
            && self.system == "Linux"
            && MACHINES.contains(&self.machine.as_str())
            && self.libc.starts_with("glibc ")
            && self.version >= (3, 9, 0);
        if fits {
            return Ok(());
        }
        let (major, minor, _) = self.version;
        let libc = if self.libc.is_empty() { "no glibc" } else { &self.libc };
        Err(refuse("torch has no CUDA wheel for this Python")
            .found(format!("{} {major}.{minor} on {} {} ({libc})", self.implementation, self.system, self.machine))
            .expected("CPython 3.9 or newer on Linux x86_64 or aarch64 with glibc")
            .remedy("pass another interpreter with --python")
            .into())
    }

    /// `cp311`.
    pub fn python_tag(&self) -> String {
        format!("cp{}{}", self.version.0, self.version.1)
    }

    /// `cp311`; `cp313t` if free-threaded.
    pub fn abi_tag(&self) -> String {
        format!("cp{}", self.short().replace('.', ""))
    }

    /// `3.11`; `3.13t` if free-threaded.
    pub fn short(&self) -> String {
        let (major, minor, _) = self.version;
        let threads = if self.free_threaded { "t" } else { "" };
        format!("{major}.{minor}{threads}")
    }

    /// glibc's version: major and minor.
    pub fn glibc(&self) -> (u32, u32) {
        let mut parts = self.libc.trim_start_matches("glibc ").split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    /// For a message: `Python 3.11.7 (cp311-cp311, glibc 2.36, x86_64)`.
    pub fn describe(&self) -> String {
        let (major, minor, micro) = self.version;
        format!(
            "Python {major}.{minor}.{micro} ({}-{}, {}, {})",
            self.python_tag(),
            self.abi_tag(),
            self.libc,
            self.machine
        )
    }
}

/// CPython 3.11 on Debian 12, whatever this machine has: for tests.
pub fn python311() -> Python {
    Python {
        executable: "/usr/bin/python3".into(),
        version: (3, 11, 7),
        implementation: "cpython".into(),
        free_threaded: false,
        system: "Linux".into(),
        machine: "x86_64".into(),
        libc: "glibc 2.36".into(),
        headers: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        let mut python = python311();
        assert_eq!((python.abi_tag().as_str(), python.glibc()), ("cp311", (2, 36)));
        python.version = (3, 14, 0);
        python.free_threaded = true;
        assert_eq!(python.abi_tag(), "cp314t");
        assert_eq!(python.describe(), "Python 3.14.0 (cp314-cp314t, glibc 2.36, x86_64)");
    }

    #[test]
    fn others_are_refused() {
        for (machine, fits) in [("x86_64", true), ("aarch64", true), ("ppc64le", false)] {
            let machine = machine.to_owned();
            let python = Python { machine, ..python311() };
            assert_eq!(python.check().is_ok(), fits, "{}", python.machine);
        }
        let mut python = python311();
        python.libc = String::new();
        insta::assert_snapshot!(python.check().unwrap_err(), @"
        torch has no CUDA wheel for this Python
          found     cpython 3.11 on Linux x86_64 (no glibc)
          expected  CPython 3.9 or newer on Linux x86_64 or aarch64 with glibc
          to do     pass another interpreter with --python
        ");
        insta::assert_snapshot!(Python::probe(Path::new("/nowhere/python9")).unwrap_err(), @"
        there is no Python called /nowhere/python9
          expected  a Python 3 interpreter on the PATH
          to do     apt-get install python3 python3-venv, or dnf install python3, or pass --python PY
        ");
    }
}
