//! Finds the CUDA toolkit that PyTorch's build would use, and its version.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::variables::Environment;

/// A toolkit with a compiler that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    /// Its root.
    pub home: PathBuf,
    /// Its compiler.
    pub nvcc: PathBuf,
    /// Major and minor.
    pub version: (u32, u32),
}

impl Toolkit {
    /// The toolkit from the environment variables, from the PATH, or in the usual folder.
    pub fn find(environment: &Environment) -> Option<Self> {
        let variable = |name: &str| environment.get(name).filter(|it| !it.is_empty());
        let below = |home: &String| Path::new(home).join("bin/nvcc");
        let named = variable("CUDACXX").map(PathBuf::from);
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable);
        let folders = variable("PATH").into_iter().flat_map(|it| it.split(':'));
        let mut places = named
            .into_iter()
            .chain(homes.map(below))
            .chain(folders.map(|it| Path::new(it).join("nvcc")))
            .chain([PathBuf::from("/usr/local/cuda/bin/nvcc")]);
        places.find_map(|nvcc| Self::at(&nvcc))
    }

    fn at(nvcc: &Path) -> Option<Self> {
        let output = Command::new(nvcc).arg("--version").output().ok()?;
        let version = version(&String::from_utf8_lossy(&output.stdout))?;
        // A distribution's /usr/bin/nvcc may be a link into the toolkit.
        let real = std::fs::canonicalize(nvcc).ok()?;
        Some(Self {
            home: real.parent()?.parent()?.to_path_buf(),
            nvcc: nvcc.to_path_buf(),
            version,
        })
    }

    /// `12.4`.
    pub fn shown(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }

    /// `cu124`, as PyTorch's versions have it.
    pub fn tag(&self) -> String {
        format!("cu{}{}", self.version.0, self.version.1)
    }

    /// Whether it has cuDNN's header.
    pub fn has_cudnn(&self) -> bool {
        self.home.join("include/cudnn.h").exists()
    }
}

/// Of `Cuda compilation tools, release 12.4, V12.4.131`.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor = rest.split(|it: char| !it.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvcc_says() {
        let said = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n";
        assert_eq!(version(said), Some((12, 4)));
        assert_eq!(version("no compiler"), None);
    }
}
