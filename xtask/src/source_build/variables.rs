//! The environment of PyTorch's own build: our variables, and the caller's that are passed on or removed.
//!
//! Pure. Invariant: the caller's variables are kept, except those that would change the promised wheel or lead the
//! build out of its environment.

use std::collections::BTreeMap;
use std::path::Path;

/// Variables by name.
pub type Environment = BTreeMap<String, String>;

/// The variables of compiler launchers: caches and distributors.
pub const LAUNCHERS: [&str; 3] = [
    "CMAKE_C_COMPILER_LAUNCHER",
    "CMAKE_CXX_COMPILER_LAUNCHER",
    "CMAKE_CUDA_COMPILER_LAUNCHER",
];

/// Removed variables: other Python packages, and cargo's variables for this program.
const REMOVED: [&str; 12] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "CARGO_TARGET_DIR",
    "LD_PRELOAD",
    "MAKEFLAGS",
    "PYTHONHOME",
    "PYTHONPATH",
    "RUSTFLAGS",
    "VIRTUAL_ENV",
];

/// Variables that PyTorch's build, its CMake and the compilers read.
const READ: [&str; 13] = [
    "BUILD_", "CMAKE_", "CUDA", "CUDNN_", "NCCL_", "NVCC_", "PYTORCH_", "TORCH_", "USE_", "CFLAGS",
    "CXXFLAGS", "CPPFLAGS", "LDFLAGS",
];
const READ_WHOLE: [&str; 8] = [
    "BLAS",
    "CC",
    "CXX",
    "DEBUG",
    "MAX_JOBS",
    "WERROR",
    "PATH",
    "_GLIBCXX_USE_CXX11_ABI",
];
/// Settings of compiler caches and farms. They may contain passwords, so only their names are shown.
const SECRET: [&str; 6] = [
    "AWS_", "CCACHE_", "DISTCC_", "GOOGLE_", "ICECC_", "SCCACHE_",
];

/// The inputs.
pub struct Wanted<'a> {
    /// `torch.__version__` of the result.
    pub version: &'a str,
    /// The checkout of this project.
    pub root: &'a Path,
    /// The toolkit, if there is one.
    pub cuda: Option<(&'a Path, &'a Path)>,
    /// `TORCH_CUDA_ARCH_LIST`.
    pub arch: Option<&'a str>,
    /// A compiler cache.
    pub launcher: Option<&'a str>,
    /// Parallel compilers.
    pub jobs: u32,
    /// The folder of the environment's programs.
    pub programs: &'a Path,
}

/// The variables of the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables {
    /// Variables that we set.
    pub set: Environment,
    /// The caller's variables that the build reads; the value is None if it must not be shown.
    pub passed: BTreeMap<String, Option<String>>,
    /// The caller's variables that are removed.
    pub removed: Vec<&'static str>,
}

impl Variables {
    /// Chooses the variables.
    pub fn of(wanted: &Wanted<'_>, environment: &Environment) -> Self {
        let mut set = Environment::new();
        let mut put = |name: &str, value: String| set.insert(name.to_owned(), value);
        put("PYTORCH_BUILD_VERSION", wanted.version.to_owned());
        put("PYTORCH_BUILD_NUMBER", "1".to_owned());
        put("USE_CUDA", "1".to_owned());
        put("USE_PINBUDDY", "1".to_owned());
        put("PINBUDDY_ROOT", wanted.root.display().to_string());
        put("PINBUDDY_FORK_VERSION", wanted.version.to_owned());
        put("MAX_JOBS", wanted.jobs.to_string());
        put("CMAKE_GENERATOR", "Ninja".to_owned());
        put("PYTHONNOUSERSITE", "1".to_owned());
        let path = environment.get("PATH").map_or("", String::as_str);
        put("PATH", format!("{}:{path}", wanted.programs.display()));
        if let Some((home, nvcc)) = wanted.cuda {
            put("CUDA_HOME", home.display().to_string());
            put("CUDACXX", nvcc.display().to_string());
        }
        if let Some(arch) = wanted.arch {
            put("TORCH_CUDA_ARCH_LIST", arch.to_owned());
        }
        if let Some(launcher) = wanted.launcher {
            for name in LAUNCHERS {
                put(name, launcher.to_owned());
            }
        }
        // PyTorch's C++ tests are half of the work, so they are built only if requested.
        if !environment.contains_key("BUILD_TEST") {
            put("BUILD_TEST", "0".to_owned());
        }
        let passed = environment
            .iter()
            .filter(|(name, _)| !set.contains_key(*name));
        let passed = passed.filter_map(|(name, value)| {
            let begins = |all: &[&str]| all.iter().any(|it| name.starts_with(it));
            if begins(&SECRET) {
                return Some((name.clone(), None));
            }
            let read = begins(&READ) || READ_WHOLE.contains(&name.as_str());
            (read && !REMOVED.contains(&name.as_str())).then(|| (name.clone(), Some(value.clone())))
        });
        let passed = passed.collect();
        Self {
            set,
            passed,
            removed: REMOVED.to_vec(),
        }
    }

    /// The program of the compiler launcher.
    pub fn launcher(&self) -> Option<&str> {
        let passed = |name| self.passed.get(name).and_then(Option::as_deref);
        let value = |name| self.set.get(name).map(String::as_str).or(passed(name));
        let found = LAUNCHERS.into_iter().find_map(value)?;
        found.split(';').next().filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(environment: &[(&str, &str)], launcher: Option<&str>) -> Variables {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let wanted = Wanted {
            version: "2.6.0+cu124.pinbuddy.0.1.0",
            root: Path::new("/pinbuddy"),
            cuda: None,
            arch: None,
            launcher,
            jobs: 2,
            programs: Path::new("/venv/bin"),
        };
        Variables::of(&wanted, &environment.iter().map(own).collect())
    }

    #[test]
    fn a_farms_launcher_passes_through() {
        let farm = [
            ("CMAKE_CXX_COMPILER_LAUNCHER", "/opt/farm/run;-v"),
            ("PATH", "/bin"),
        ];
        let passed = variables(&farm, None);
        assert_eq!(passed.launcher(), Some("/opt/farm/run"));
        assert!(!passed.set.contains_key("CMAKE_CXX_COMPILER_LAUNCHER"));
        let chosen = variables(&farm, Some("ccache"));
        assert_eq!(
            chosen.launcher(),
            Some("ccache"),
            "the command line decides"
        );
        assert_eq!(variables(&[], None).launcher(), None);
    }

    #[test]
    fn secrets_are_passed_and_not_shown() {
        let of = variables(
            &[("SCCACHE_REDIS_PASSWORD", "hidden"), ("HOME", "/root")],
            None,
        );
        assert_eq!(of.passed["SCCACHE_REDIS_PASSWORD"], None);
        assert!(
            !of.passed.contains_key("HOME"),
            "nothing to do with the build"
        );
        assert!(!format!("{of:?}").contains("hidden"));
    }

    #[test]
    fn who_wants_pytorchs_tests_has_them() {
        assert_eq!(variables(&[], None).set["BUILD_TEST"], "0");
        assert!(
            !variables(&[("BUILD_TEST", "1")], None)
                .set
                .contains_key("BUILD_TEST")
        );
    }
}
